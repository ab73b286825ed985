"""The recorder beside real processes, real pipes and real files, without a cluster."""

from __future__ import annotations

import errno
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator

import pytest
from tests.unit.engine_kubernetes.recorder_process import Beside, output, told

from anubis.adapters.engine.kubernetes.recorder import __main__ as door
from anubis.adapters.engine.kubernetes.recorder import emitting, processes, stopping
from anubis.adapters.engine.kubernetes.recorder.specifying import Spec
from anubis.adapters.engine.kubernetes.recorder.stopping import Request, Stopping
from anubis.adapters.engine.kubernetes.recording import Frame, Journal, Kind


@pytest.fixture
def beside(tmp_path: pathlib.Path) -> Iterator[Beside]:
    made = Beside(tmp_path)
    yield made
    made.close()


def emitted(beside: Beside, text: bytes) -> None:
    """Write to the pipe as a program does."""
    while not beside.fifo.exists():
        time.sleep(0.01)
    pipe = os.open(beside.fifo, os.O_WRONLY)
    os.write(pipe, text)
    os.close(pipe)


def test_all_of_a_program_is_recorded_in_the_order_in_which_it_came(beside: Beside) -> None:
    recorder = beside.start_recorder()
    program = beside.start_program("sleep", "60")
    at_ns = beside.log.write(b"hello")
    emitted(beside, b'{"loss": 1}\n')
    beside.until(Kind.EMITTED)
    beside.until(Kind.STDOUT)
    beside.until(Kind.READING)
    program.kill()
    program.wait()
    frames = beside.sealed(recorder)
    assert output(frames, Kind.STDOUT) == b"hello\n"
    assert output(frames, Kind.EMITTED) == b'{"loss": 1}\n'
    [hello] = [frame for frame in frames if frame.kind == Kind.STDOUT]
    assert hello.at_ns == at_ns
    [sealed] = told(frames, Kind.SEALED)
    assert (sealed["stdout_bytes"], sealed["emitted_bytes"]) == (6, 12)
    assert sealed["is_whole"] is True
    assert frames[-1].kind == Kind.SEALED


def test_nothing_is_measured_before_the_program_begins(beside: Beside) -> None:
    recorder = beside.start_recorder()
    beside.log.write(b"hello")
    beside.until(Kind.STDOUT)
    assert told(beside.sealed(recorder), Kind.READING) == []


def test_one_that_was_killed_is_followed_by_one_that_goes_on_exactly(beside: Beside) -> None:
    beside.start_program("sleep", "60")
    for number in range(100):
        beside.log.write(b"%d" % number)
        if number % 10 == 0:
            recorder = beside.start_recorder()
            beside.until(Kind.STDOUT, b"%d\n" % number)
            recorder.kill()
            recorder.wait()
    frames = _sealed_after_a_kill(beside)
    assert output(frames, Kind.STDOUT) == b"".join(b"%d\n" % number for number in range(100))


def _sealed_after_a_kill(beside: Beside) -> list[Frame]:
    """The last life of a recorder, whose program has ended meanwhile."""
    [program, *_] = beside._started
    program.kill()
    program.wait()
    return beside.sealed(beside.start_recorder())


def test_a_program_that_ended_before_its_recorder_was_there_is_recorded_whole(
    beside: Beside,
) -> None:
    beside.log.write(b"short")
    assert output(beside.sealed(beside.start_recorder()), Kind.STDOUT) == b"short\n"


def test_one_that_comes_after_the_seal_only_waits(beside: Beside) -> None:
    recorder = beside.start_recorder()
    beside.log.write(b"hello")
    beside.until(Kind.STDOUT)
    before = beside.sealed(recorder)
    again = beside.start_recorder()
    assert again.wait(30) == 0, "it was released"
    assert beside.journal() == before


def test_one_whose_program_never_began_goes_at_once(beside: Beside) -> None:
    """Its pod was deleted on its way; who deleted it may not even have seen it."""
    pathlib.Path(beside.places.logs).rmdir()
    recorder = beside.start_recorder()
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(30) == 0
    assert beside.journal()[-1].kind == Kind.SEALED


def test_a_request_that_a_full_disk_does_not_take_leaves_nothing_behind(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder tries again every second."""
    monkeypatch.setattr(stopping, "json", types.SimpleNamespace(dumps=_full))
    with pytest.raises(OSError, match="No space left"):
        stopping.ask(str(tmp_path), 1, "timed_out")
    assert list(tmp_path.iterdir()) == []


def _full(_: object) -> str:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_program_that_runs_too_long_is_asked_to_end_and_then_killed(beside: Beside) -> None:
    recorder = beside.start_recorder(running_seconds=0.5, grace_seconds=0.5)
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    program = beside.start_program(sys.executable, "-c", stubborn)
    assert program.wait(30) == -signal.SIGKILL
    assert [one["cause"] for one in told(beside.sealed(recorder), Kind.STOPPED)] == ["timed_out"]


def test_a_program_that_writes_too_much_is_stopped_and_cut_off_exactly(beside: Beside) -> None:
    recorder = beside.start_recorder(output_bytes=10)
    program = beside.start_program("sleep", "60")
    beside.log.write(b"12345")
    beside.log.write(b"67890")
    beside.log.write(b"too much", stream="stderr")
    assert program.wait(30) == -signal.SIGTERM
    frames = beside.sealed(recorder)
    assert output(frames, Kind.STDOUT) == b"12345\n6789"
    assert output(frames, Kind.STDERR) == b""
    assert [one["cause"] for one in told(frames, Kind.STOPPED)] == ["output_limit"]
    assert told(frames, Kind.SEALED)[0]["is_whole"] is False


def test_what_is_emitted_counts_towards_the_limit(beside: Beside) -> None:
    recorder = beside.start_recorder(output_bytes=10)
    program = beside.start_program("sleep", "60")
    emitted(beside, b"x" * 100_000)
    assert program.wait(30) == -signal.SIGTERM
    assert output(beside.sealed(recorder), Kind.EMITTED) == b"x" * 10


def test_a_request_to_stop_ends_all_processes_of_the_program(beside: Beside) -> None:
    recorder = beside.start_recorder()
    program = beside.start_program("sh", "-c", "(sleep 60 &) ; sleep 60; exit 3")
    beside.until(Kind.READING)
    stopping.ask(beside.places.record, 30, "canceled")
    assert program.wait(30) == -signal.SIGTERM
    frames = beside.sealed(recorder)
    assert [one["cause"] for one in told(frames, Kind.STOPPED)] == ["canceled"]


def test_a_stop_that_came_before_the_program_ends_it_as_soon_as_it_begins(beside: Beside) -> None:
    stopping.ask(beside.places.record, 0, "canceled")
    recorder = beside.start_recorder()
    beside.until(Kind.STOPPED)
    assert beside.start_program("sleep", "60").wait(30) == -signal.SIGKILL
    beside.sealed(recorder)


def test_a_server_is_asked_with_the_probes_of_every_engine(beside: Beside) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    probe = {"kind": "tcp", "port": server.server_port, "period": 0.1}
    recorder = beside.start_recorder(readiness=probe)
    beside.start_program("sleep", "60")
    frames = beside.until(Kind.CONDITION)
    assert told(frames, Kind.CONDITION) == [{"condition": "ready"}]
    server.server_close()
    frames = beside.until(Kind.CONDITION, b"unready")
    assert "connection refused" in str(told(frames, Kind.CONDITION)[-1]["message"])
    recorder.kill()


def test_data_that_a_run_needs_is_touched(beside: Beside, tmp_path: pathlib.Path) -> None:
    pins = tmp_path / "pins"
    pins.mkdir()
    os.utime(pins, (1, 1))
    beside.start_recorder(pins=str(pins))
    give_up = time.monotonic() + 30
    while pins.stat().st_mtime == 1:
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_the_pipe_is_open_to_every_user(tmp_path: pathlib.Path) -> None:
    found = emitting.Emitted(str(tmp_path))
    assert (tmp_path / "fifo").is_fifo()
    assert (tmp_path / "fifo").stat().st_mode & 0o777 == 0o666
    found.close()


@pytest.mark.parametrize("in_the_way", ["file", "folder", "link"])
def test_what_is_in_the_way_of_the_pipe_is_put_aside_and_a_files_content_kept(
    tmp_path: pathlib.Path, in_the_way: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    place = tmp_path / "fifo"
    if in_the_way == "file":
        place.write_bytes(b'{"early": 1}\n')
    elif in_the_way == "folder":
        place.mkdir()
    else:
        place.symlink_to(secret)
    found = emitting.Emitted(str(tmp_path))
    journal = Journal(str(tmp_path / "journal"))
    kept = found.keep(journal, 1000)
    found.close()
    journal.close()
    assert place.is_fifo()
    assert kept == (13 if in_the_way == "file" else 0)
    assert secret.stat().st_mode & 0o777 == 0o600


def test_the_first_cause_counts_and_the_shortest_patience(tmp_path: pathlib.Path) -> None:
    folder = str(tmp_path)
    assert stopping.asked(folder) is None
    stopping.ask(folder, 30, "canceled")
    stopping.ask(folder, 5, "dismissed")
    assert stopping.ask(folder, 60, "dismissed") == Request(5, "canceled")
    assert stopping.asked(folder) == Request(5, "canceled")
    assert [path.name for path in tmp_path.iterdir()] == ["stop"]


def test_of_many_who_ask_at_once_one_is_the_first(tmp_path: pathlib.Path) -> None:
    told: list[Request] = []
    causes = ["canceled", "dismissed"] * 4
    threads = [
        threading.Thread(target=lambda c=cause: told.append(stopping.ask(str(tmp_path), 5, c)))
        for cause in causes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({request.cause for request in told}) == 1


@pytest.mark.parametrize("words", [(5, "because"), (-1, "canceled"), (float("nan"), "canceled")])
def test_a_request_that_makes_no_sense_is_refused(
    tmp_path: pathlib.Path, words: tuple[float, str]
) -> None:
    with pytest.raises(ValueError, match="GRACE CAUSE"):
        stopping.ask(str(tmp_path), *words)


def test_signals_are_sent_once_until_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _, number: sent.append(number))
    fields = [b"S", *[b"0"] * 30]
    program = [processes.Process(12345, fields)]
    stop = Stopping()
    assert stop.begin(Request(10, "canceled"), now=0)
    for now in (0, 1, 9.9):
        stop.signal(program, now)
    assert sent == [signal.SIGTERM, signal.SIGCONT]
    stop.signal(program, 10)
    assert sent[2:] == [signal.SIGKILL]


def test_nothing_of_the_machine_is_taken_for_the_program_by_who_is_in_no_pod() -> None:
    """Without a pod there are no mounts to tell containers apart by, nor a group of our own."""
    found = processes._container("self")
    assert found == ""


def test_a_container_is_known_by_the_mount_of_its_last_words(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b"224 209 254:0 /var/lib/kubelet/pods/1-2/containers/%s/e836 /dev/termination-log rw - "
    content = {"self": b"recorder", "7": b"benchmark", "8": b"istio-proxy"}

    def read(path: str) -> bytes:
        _, _, process, file = path.split("/")
        if file == "cgroup":
            return {"self": b"ours", "10": b"ours"}.get(process, b"theirs")
        return (
            line % content[process] + b"\n" if process in content else b"1 2 0:1 / /proc rw - x\n"
        )

    monkeypatch.setattr(processes, "_read", read)
    container = processes._Container()
    assert container.belongs(7)
    assert not container.belongs(8), "somebody else's container"
    assert container.belongs(9), "a process with mounts of its own, in another group than we"
    assert not container.belongs(10), "one of ours"
    assert not container.belongs(1), "what holds the pod together"
    assert not container.belongs(os.getpid())


def test_a_spec_is_read_as_the_manifests_write_it() -> None:
    text = {
        "unit": "worker-0",
        "running_seconds": 1.5,
        "grace_seconds": 2,
        "output_bytes": 3,
        "drain_seconds": 4,
        "readiness": None,
    }
    spec = Spec.parse(json.dumps(text))
    assert (spec.unit, spec.running_seconds, spec.output_bytes) == ("worker-0", 1.5, 3)
    assert (spec.readiness, spec.pins) == (None, "")


@pytest.mark.parametrize("words", [["dance"], ["stop"], ["stop", "soon", "canceled"]])
def test_words_that_say_nothing_are_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match="expected"):
        door.main(words)


def test_it_says_what_is_missing_without_a_traceback() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ANUBIS_RECORDER"}
    module = "anubis.adapters.engine.kubernetes.recorder"
    done = subprocess.run(
        [sys.executable, "-m", module], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "ANUBIS_RECORDER is not set" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_loads_little_since_it_sits_beside_every_measurement() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "import anubis.adapters.engine.kubernetes.recorder.running\n"
        "print(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    heavy = {"asyncio", "dataclasses", "datetime", "inspect", "ssl", "socket", "pathlib", "logging"}
    assert heavy & set(done.stdout.split()) == set(), done.stderr
