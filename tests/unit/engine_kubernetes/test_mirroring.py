"""The copy of a journal holds whole frames only, and grows to the very bytes of the original."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.engine.kubernetes import mirroring, recording
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.mirroring import Mirror, Reader
from anubis.adapters.engine.kubernetes.recording import Kind
from anubis.domain.errors import EngineUnavailable
from anubis.domain.observation import EndCause

JOURNAL = b"".join(
    [
        recording.packed_output(Kind.STDOUT, 4, b"one\n", 1),
        recording.packed(Kind.EMITTED, b'{"loss": 1}\n', 2),
        recording.packed_json(Kind.STOPPED, {"cause": "canceled"}, 3),
        recording.packed_output(Kind.STDERR, 9, b"oh no\n", 4),
        recording.packed_json(Kind.SEALED, {"is_whole": True}, 5),
    ]
)


class Pod:
    """A recorder that sends its journal, and breaks off where it is told to."""

    def __init__(self, breaks_at: Sequence[int] = ()) -> None:
        self._breaks = list(breaks_at)
        self.asked: list[str] = []

    @contextlib.asynccontextmanager
    async def exec(
        self, pod: str, container: str, command: Sequence[str]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        assert (pod, container) == ("pod", "recorder")
        self.asked.append(command[2])
        yield self._sent(int(command[2]) - 1)

    async def _sent(self, start: int) -> AsyncIterator[bytes]:
        end = start + self._breaks.pop(0) if self._breaks else len(JOURNAL)
        for place in range(start, min(end, len(JOURNAL)), 7):
            yield JOURNAL[place : min(place + 7, end)]
        if end < len(JOURNAL):
            raise EngineUnavailable("the stream broke")


async def copied(path: Path, pod: Pod) -> Mirror:
    """A copy that goes on, with a new copier each time, until the journal is sealed."""
    while True:
        mirror = Mirror(path)
        await mirror.open()
        try:
            await mirroring.follow(cast("Cluster", pod), "pod", mirror, lambda: None)
        except EngineUnavailable:
            continue
        finally:
            mirror.close()
        return mirror


@given(breaks=st.lists(st.integers(0, len(JOURNAL)), max_size=12))
def test_however_often_it_breaks_the_copy_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, breaks: list[int]
) -> None:
    path = tmp_path_factory.mktemp("copy") / "journal"
    mirror = asyncio.run(copied(path, Pod(breaks)))
    assert path.read_bytes() == JOURNAL
    assert mirror.size == len(JOURNAL)
    assert (mirror.stopped, mirror.sealed) == (EndCause.CANCELED, {"is_whole": True})


async def test_a_copy_never_holds_half_a_frame(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "journal")
    await mirror.open()
    await mirror.add(JOURNAL[:30])
    assert mirror.size == (tmp_path / "journal").stat().st_size
    assert recording.frames((tmp_path / "journal").read_bytes())[1] == b""
    mirror.close()


async def test_readers_see_no_further_than_what_is_known_to_be_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(JOURNAL)
    first = recording.HEADER.size + 8 + 4
    reader = Reader(path)
    assert [frame.data for frames in reader.turn(first) for frame in frames] == [b"one\n"]
    assert [frame.kind for frames in reader.turn(len(JOURNAL)) for frame in frames] == [3, 6, 2, 7]
    reader.close()


async def test_bytes_that_are_no_journal_are_refused(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "journal")
    await mirror.open()
    with pytest.raises(recording.Damaged):
        await mirror.add(b"tail: cannot open this or that, and so on")
    assert mirror.size == 0
    mirror.close()


async def test_what_a_power_cut_turned_to_nothing_is_fetched_again(tmp_path: Path) -> None:
    """File systems put zeros where they had only the size of a file on disk."""
    path = tmp_path / "journal"
    path.write_bytes(JOURNAL[:21] + bytes(100))
    mirror = await copied(path, Pod())
    assert path.read_bytes() == JOURNAL
    assert mirror.sealed == {"is_whole": True}


async def test_a_full_disk_of_this_machine_is_not_called_trouble_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = Mirror(tmp_path / "journal")
    await mirror.open()

    def full(_: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(mirror, "_append", full)
    with pytest.raises(EngineUnavailable, match="on this machine: No space left"):
        await mirroring.follow(cast(Cluster, Pod()), "pod", mirror, lambda: None)
    mirror.close()


async def test_a_copier_that_is_canceled_leaves_no_thread_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = Mirror(tmp_path / "journal")
    await mirror.open()
    began, go_on, done = threading.Event(), threading.Event(), []

    def slow(_: bytes) -> None:
        began.set()
        done.append(go_on.wait(10))

    monkeypatch.setattr(mirror, "_append", slow)
    large = recording.packed(Kind.EMITTED, bytes(1 << 17))
    task = asyncio.create_task(mirror.add(large))
    await asyncio.to_thread(began.wait, 10)
    task.cancel()
    asyncio.get_running_loop().call_later(0.05, go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [True]
    mirror.close()
