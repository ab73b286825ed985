"""Who is the runtime of a home, and how another takes its place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anubis.adapters.clock.system import SystemClock
from anubis.domain.errors import EngineUnavailable, NotPossible, StoreUnusable
from anubis.runtime import succession
from anubis.runtime.locking import RuntimeLock
from anubis.runtime.succession import Seat

HOLDER = """
import pathlib, signal, sys, time
from anubis.runtime.locking import RuntimeLock
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
lock = RuntimeLock(pathlib.Path(sys.argv[1]))
assert lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def seat(tmp_path: Path) -> Seat:
    return Seat(
        lock=tmp_path / "runtime.lock",
        pid=tmp_path / "runtime.pid",
        service=tmp_path / "service.json",
    )


def holder(seat: Seat, *words: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(seat.lock), *words], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    process.stdout.close()
    seat.pid.write_text(f"{process.pid}\n")
    return process


def somebody() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


async def test_a_free_seat_is_taken(seat: Seat) -> None:
    lock = await succession.take(seat, SystemClock())
    assert not RuntimeLock(seat.lock).acquire()
    lock.release()


async def test_a_background_runtime_is_asked_to_leave(seat: Seat) -> None:
    process = holder(seat)
    lock = await succession.take(seat, SystemClock())
    assert process.wait(10) == -signal.SIGTERM
    lock.release()


async def test_a_runtime_that_does_not_leave_is_not_killed(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(succession, "PATIENCE", 0.3)
    process = holder(seat, "stubborn")
    try:
        with pytest.raises(EngineUnavailable, match=str(process.pid)):
            await succession.take(seat, SystemClock())
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


async def test_a_service_is_named_and_left_alone(seat: Seat) -> None:
    process = holder(seat)
    try:
        note = {"pid": process.pid, "address": "http://127.0.0.1:8080"}
        seat.service.write_text(json.dumps(note))
        with pytest.raises(NotPossible, match=rf"{process.pid} at http://127\.0\.0\.1:8080"):
            await succession.take(seat, SystemClock())
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


async def test_a_number_that_belongs_to_somebody_else_by_now_is_not_signaled(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime died without removing its file, and its number was given out again."""
    monkeypatch.setattr(succession, "PATIENCE", 0.3)
    process = holder(seat)
    bystander = somebody()
    try:
        seat.pid.write_text(f"{bystander.pid}\n")
        with pytest.raises(EngineUnavailable):
            await succession.take(seat, SystemClock())
        assert bystander.poll() is None
    finally:
        for one in (process, bystander):
            one.kill()
            one.wait()


@pytest.mark.parametrize(
    "note", ["", "{", "[]", '{"pid": "x", "address": 1}', '{"pid": 999999999, "address": "x"}']
)
def test_what_a_killed_service_left_means_nothing(seat: Seat, note: str) -> None:
    seat.service.write_text(note)
    assert succession.incumbent(seat) is None


def test_a_service_is_announced_while_it_lives(seat: Seat) -> None:
    lock = RuntimeLock(seat.lock)
    assert lock.acquire()
    with succession.announced(seat, "http://127.0.0.1:1"):
        found = succession.incumbent(seat)
        assert found == succession.Incumbent(pid=os.getpid(), address="http://127.0.0.1:1")
    assert succession.incumbent(seat) is None
    assert not seat.pid.exists()
    lock.release()


def test_a_home_that_cannot_say_who_serves_it_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    seat = Seat(lock=missing / "lock", pid=missing / "pid", service=missing / "service.json")
    with pytest.raises(StoreUnusable, match=r"service\.json"), succession.announced(seat, "x"):
        pytest.fail("it was announced")


async def test_a_background_runtime_can_be_dismissed_and_nobody_else_is(seat: Seat) -> None:
    process = holder(seat)
    assert succession.background(seat) == process.pid
    assert await succession.dismiss(seat, process.pid, SystemClock())
    assert process.wait() == -signal.SIGTERM
    assert succession.background(seat) is None
    assert await succession.dismiss(seat, process.pid, SystemClock())


async def test_a_service_is_no_background_runtime(seat: Seat) -> None:
    with holder(seat) as process:
        seat.service.write_text("{}")
        assert succession.background(seat) is None
        process.kill()


async def test_who_does_not_leave_is_not_waited_for_for_ever(
    seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(succession, "PATIENCE", 0.1)
    with holder(seat, "stubborn") as process:
        assert not await succession.dismiss(seat, process.pid, SystemClock())
        process.kill()
