"""A program's begin, its end and what it used, as its recorder saw them, to the moment."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from tests.unit.engine_kubernetes.recorder_process import Beside, told

from anubis.adapters.engine.kubernetes.exact_times import exact
from anubis.adapters.engine.kubernetes.recorder.first_process import FirstProcess, first
from anubis.adapters.engine.kubernetes.recorder.processes import Process, Program
from anubis.adapters.engine.kubernetes.recorder.running import Recorder
from anubis.adapters.engine.kubernetes.recorder.specifying import Spec
from anubis.adapters.engine.kubernetes.recording import Frame, Kind
from anubis.adapters.engine.process.guardian import tree
from anubis.testing.clock import NOON

BUSY = "import sys, time\nwhile time.process_time() < float(sys.argv[1]): pass"


@pytest.fixture
def beside(tmp_path: pathlib.Path) -> Iterator[Beside]:
    made = Beside(tmp_path)
    yield made
    made.close()


def moments(frames: list[Frame], kind: Kind) -> list[int]:
    return [frame.at_ns for frame in frames if frame.kind == kind]


def seen(program: subprocess.Popen[bytes]) -> Process:
    fields = tree.stat(program.pid)
    assert fields is not None
    return Process(program.pid, fields)


def test_begin_and_end_are_between_the_moments_before_and_after(beside: Beside) -> None:
    recorder = beside.start_recorder()
    before = time.time_ns()
    program = beside.start_program("sleep", "60")
    [began] = moments(beside.until(Kind.BEGAN), Kind.BEGAN)
    assert before - 10**7 <= began <= time.time_ns(), "to a tick of the kernel"
    killed = time.time_ns()
    program.kill()
    frames = beside.until(Kind.ENDED)
    [ended] = moments(frames, Kind.ENDED)
    assert killed <= ended <= time.time_ns()
    program.wait()
    frames = beside.sealed(recorder)
    assert len(moments(frames, Kind.BEGAN)) == len(moments(frames, Kind.ENDED)) == 1


class _Missed(Program):
    """Of a program that begins while the first look at all processes is under way."""

    def __init__(self, beside: Beside) -> None:
        super().__init__()
        self._beside = beside
        self._program: subprocess.Popen[bytes] | None = None
        self.began_ns = 0

    def processes(self) -> list[Process]:
        if self._program is not None:
            return [seen(self._program)]
        self._program = self._beside.start_program("sleep", "60")
        self.began_ns = time.time_ns()
        time.sleep(0.1)
        return []


def test_a_program_does_not_begin_after_what_it_wrote_at_once(beside: Beside) -> None:
    spec = Spec("unit", 60, 5, 1 << 30, 60, places=beside.places)
    program = _Missed(beside)
    recorder = Recorder(spec, program)
    while not (began := moments(beside.journal(), Kind.BEGAN)):
        recorder._turn()
    assert began[0] <= program.began_ns


def test_what_a_program_used_after_the_last_reading_counts(beside: Beside) -> None:
    """It ends long before a second reading is due."""
    recorder = beside.start_recorder()
    program = beside.start_program(sys.executable, "-c", BUSY, "0.6")
    beside.until(Kind.ENDED)
    program.wait()
    [sealed] = told(beside.sealed(recorder), Kind.SEALED)
    assert float(str(sealed["cpu_seconds"])) > 0.5


def test_a_recorder_that_was_killed_is_followed_by_one_that_tells_the_rest(beside: Beside) -> None:
    recorder = beside.start_recorder()
    program = beside.start_program("sleep", "60")
    beside.until(Kind.BEGAN)
    recorder.kill()
    recorder.wait()
    again = beside.start_recorder()
    time.sleep(0.3)  # it has begun to look
    program.kill()
    beside.until(Kind.ENDED)
    program.wait()
    frames = beside.sealed(again)
    assert len(moments(frames, Kind.BEGAN)) == len(moments(frames, Kind.ENDED)) == 1


def test_what_was_used_is_known_to_who_comes_after_the_end(beside: Beside) -> None:
    recorder = beside.start_recorder()
    program = beside.start_program(sys.executable, "-c", BUSY, "0.6")
    beside.until(Kind.ENDED)
    program.wait()
    recorder.kill()
    recorder.wait()
    [sealed] = told(beside.sealed(beside.start_recorder()), Kind.SEALED)
    assert float(str(sealed["cpu_seconds"])) > 0.5


def test_one_whose_parent_was_quicker_counts_as_it_was_last_seen() -> None:
    program = subprocess.Popen(["sleep", "60"])
    last = seen(program)
    one = FirstProcess(last)
    program.kill()
    program.wait()
    one.note_end()
    assert one.last == last
    assert one.ended_ns is not None
    assert one.with_others([]) == [last]


def test_the_first_process_is_the_oldest() -> None:
    programs = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    try:
        found = [seen(program) for program in programs]
        assert first(found[::-1]) == min(found, key=lambda one: one.number)
    finally:
        for program in programs:
            program.kill()
            program.wait()


@pytest.mark.parametrize(
    ("saw", "counts"),
    [
        (NOON + timedelta(seconds=0.7), NOON + timedelta(seconds=0.7)),
        (NOON - timedelta(seconds=0.2), NOON - timedelta(seconds=0.2)),
        (NOON + timedelta(days=365), NOON),
        (None, NOON),
    ],
)
def test_a_recorder_is_believed_what_can_be_the_same_second(
    saw: datetime | None, counts: datetime
) -> None:
    assert exact(NOON, saw) == counts


PREPARING = """
import ctypes, os, pathlib, sys, time
ctypes.CDLL(None).prctl(15, b"runc:[2:INIT]")
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
os.execvp("sleep", ["sleep", sys.argv[3]])
"""


@pytest.mark.parametrize("seconds", ["60", "0"])
def test_while_its_process_is_the_runtime_a_program_has_not_begun(
    beside: Beside, tmp_path: pathlib.Path, seconds: str
) -> None:
    """That takes long where much is to be prepared, or the machine is busy."""
    recorder = beside.start_recorder()
    prepares, goes = tmp_path / "prepares", tmp_path / "goes"
    words = (str(prepares), str(goes), seconds)
    program = beside.start_program(sys.executable, "-c", PREPARING, *words)
    while not prepares.exists():
        time.sleep(0.01)
    prepared = time.time_ns()
    time.sleep(1)  # for many looks
    goes.touch()
    [began] = moments(beside.until(Kind.BEGAN), Kind.BEGAN)
    assert began >= prepared
    program.kill()
    program.wait()
    beside.sealed(recorder)
