"""At most one runtime per home, however many want to start it, and none left for dead."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from anubis.domain.errors import EngineUnavailable
from anubis.runtime import launching, locking
from anubis.runtime.locking import RuntimeLock

SLEEPER = (
    sys.executable,
    "-S",
    "-c",
    "import sys,time; open(sys.argv[1],'a').write('x'); time.sleep(60)",
)


@pytest.fixture
def ensure(tmp_path: Path) -> Callable[[], None]:
    def call() -> None:
        launching.ensure(
            (*SLEEPER, str(tmp_path / "started")),
            os.environ,
            lock=RuntimeLock(tmp_path / "lock"),
            log=tmp_path / "log",
        )

    return call


def wait_for(path: Path) -> None:
    give_up = time.monotonic() + 20
    while not path.exists() and time.monotonic() < give_up:
        time.sleep(0.01)


def test_a_thousand_calls_start_one_process_that_holds_the_lock(
    ensure: Callable[[], None], tmp_path: Path
) -> None:
    for _ in range(1000):
        ensure()
    wait_for(tmp_path / "started")
    assert not RuntimeLock(tmp_path / "lock").acquire()
    children = _children()
    assert len(children) == 1
    assert (tmp_path / "started").read_text() == "x"
    _end(children)
    assert RuntimeLock(tmp_path / "lock").acquire()


def test_a_program_that_does_not_exist_is_explained_and_leaves_the_lock_free(
    tmp_path: Path,
) -> None:
    lock = RuntimeLock(tmp_path / "lock")
    with pytest.raises(EngineUnavailable, match="cannot be started"):
        launching.ensure(("/no/such/python",), {}, lock=lock, log=tmp_path / "log")
    assert RuntimeLock(tmp_path / "lock").acquire()


def test_looking_for_the_holder_does_not_touch_the_lock(tmp_path: Path) -> None:
    assert not locking.is_held(tmp_path / "lock")
    lock = RuntimeLock(tmp_path / "lock")
    assert lock.acquire()
    assert locking.is_held(tmp_path / "lock")
    lock.release()
    assert not locking.is_held(tmp_path / "lock")


def test_the_lock_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys,time; from pathlib import Path\n"
        "from anubis.runtime.locking import RuntimeLock\n"
        "lock = RuntimeLock(Path(sys.argv[1])); print(lock.acquire(), flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        assert not RuntimeLock(tmp_path / "lock").acquire()
        process.kill()
    assert RuntimeLock(tmp_path / "lock").acquire()


def _children() -> list[int]:
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [
        int(pid)
        for pid in path.read_text().split()
        if b"time.sleep(60)" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def _end(children: list[int]) -> None:
    for pid in children:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_a_runtime_that_dies_at_once_again_and_again_is_told_with_its_last_words(
    tmp_path: Path,
) -> None:
    patience = launching.Patience(tmp_path / "log")
    for now in range(launching.MOST_QUICK_ENDS):
        patience.note_start(float(now))
        with (tmp_path / "log").open("a") as log:
            log.write("one\nno such table: run\n\n")
    with pytest.raises(EngineUnavailable, match=r"right after its start.*no such table: run"):
        patience.note_start(float(launching.MOST_QUICK_ENDS))


@pytest.mark.parametrize("pause", [0.1, launching.QUICK_END + 1])
def test_a_runtime_that_is_killed_is_started_for_ever(tmp_path: Path, pause: float) -> None:
    """Whoever is killed says nothing; and what was said long ago is no sign either."""
    patience = launching.Patience(tmp_path / "log")
    for number in range(100):
        patience.note_start(number * pause)
        if pause > launching.QUICK_END:
            with (tmp_path / "log").open("a") as log:
                log.write("a warning\n")
