"""The local log store: searching equals a plain scan, and torn, replaced or growing files do
not confuse its readers.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import pathlib
import tempfile
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anubis.adapters.log_store.local import LocalLogStore, frame, reading, writing
from anubis.adapters.log_store.memory import MemoryLogStore
from anubis.domain.errors import LeaseLost, StoreUnavailable, StoreUnusable
from anubis.domain.logline import LogLine
from anubis.domain.observation import Stream
from anubis.ports.log_store import LogQuery, LogStore, LogWriter
from anubis.testing import builders
from anubis.testing.clock import NOON

RUN = builders.a_run_id(1)
OUT = Stream.STDOUT

words = st.sampled_from(
    ["loss", "Loss", "los", "step", "1", "0.5", " ", "=", "_", "é", "a-b", "\x00"]
)
sources = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(list(Stream)))
lines = st.lists(words, max_size=6).map("".join)
appends = st.lists(
    st.tuples(sources, st.lists(lines, min_size=1, max_size=8), st.booleans()), max_size=12
)
queries = st.builds(
    LogQuery,
    units=st.sampled_from([(), ("a",), ("a", "b"), ("c",)]),
    streams=st.sampled_from([(), (OUT,), tuple(Stream)]),
    contains=st.lists(words, max_size=4).map("".join),
    after=st.integers(0, 30),
    tail=st.none() | st.integers(0, 10),
)


async def read(store: LogStore, query: LogQuery | None = None) -> list[LogLine]:
    return [line async for line in store.lines(RUN, query or LogQuery())]


async def write(store: LogStore, texts: list[bytes], *, seal: bool = True) -> None:
    writer = await store.writer(RUN)
    for text in texts:
        await writer.append("u", OUT, NOON, text)
        await writer.flush()
    if seal:
        await writer.seal()


def the_file(root: pathlib.Path, suffix: str = ".log") -> pathlib.Path:
    [path] = root.rglob(f"*{suffix}")
    return path


Append = tuple[tuple[str, Stream], list[str], bool]


async def compare(root: pathlib.Path, parts: list[Append], asked: list[LogQuery]) -> None:
    """Write the same to both stores and ask them the same, before and after the seal."""
    local, memory = LocalLogStore(root), MemoryLogStore()
    writers: list[LogWriter] = [await local.writer(RUN), await memory.writer(RUN)]
    for (unit, stream), texts, flush in parts:
        text = "\n".join(texts).encode() + b"\n" * flush
        for writer in writers:
            if text:
                await writer.append(unit, stream, NOON, text)
            if flush:
                await writer.flush()
    for finish in ("flush", "seal"):
        for writer in writers:
            await getattr(writer, finish)()
        for query in asked:
            assert await read(local, query) == await read(memory, query)


@settings(max_examples=100, deadline=None)
@given(appends, st.lists(queries, min_size=1, max_size=5), st.sampled_from([10, 40, 100_000]))
def test_every_query_equals_a_plain_scan(
    parts: list[Append], asked: list[LogQuery], frame_size: int
) -> None:
    """With small frames, an index for every log, and compaction whenever there is a choice."""
    with (
        tempfile.TemporaryDirectory() as root,
        mock.patch.object(frame, "TARGET_SIZE", frame_size),
        mock.patch.object(writing, "INDEX_FROM", 1),
        mock.patch.object(writing, "MOST_SMALL_FRAMES", 2),
    ):
        asyncio.run(compare(pathlib.Path(root), parts, asked))


def counted_frames() -> contextlib.AbstractContextManager[mock.Mock]:
    """Count how many frames are decompressed."""
    original = reading.LogFile.content
    return mock.patch.object(reading.LogFile, "content", autospec=True, side_effect=original)


@pytest.mark.parametrize(
    ("wanted", "frames"),
    [
        (": out of mem", 1),  # a prefix
        (" memory ", 1),  # a word with both borders, which here is followed by a comma
        (" memo ", 0),  # no such word
        ("memory", 1),  # a whole word
        ("EMORY", 1),  # tokens know no letter case; the line is looked into, and does not match
        ("emor", 1),  # inside a word
        ("are: out", 1),  # the end of a word, then the beginning of another
        ("xemory", 0),
        ("größe", 1),
        ("ß", 1),
    ],
)
async def test_a_large_log_is_searched_by_its_index(
    tmp_path: pathlib.Path, wanted: str, frames: int
) -> None:
    block = b"".join(b"step %d of many, all is well\n" % number for number in range(50_000))
    store = LocalLogStore(tmp_path)
    rare = "rare: out of memory, größe\n"
    await write(store, [block, rare.encode(), block])

    with counted_frames() as looked_into:
        found = await read(store, LogQuery(contains=wanted))

    assert [line.text.decode() for line in found] == [rare] * (wanted in rare)
    assert looked_into.call_count == frames


async def test_the_tail_of_a_large_log_looks_into_few_frames(tmp_path: pathlib.Path) -> None:
    store = LocalLogStore(tmp_path)
    await write(store, [b"x" * 79 + b"\n"] * 3 + [b"".join([b"y" * 79 + b"\n"] * 20_000)])

    with counted_frames() as looked_into:
        assert len(await read(store, LogQuery(tail=10))) == 10
    assert looked_into.call_count == 1


async def test_following_reads_only_what_is_new(tmp_path: pathlib.Path) -> None:
    store = LocalLogStore(tmp_path)
    writer = await store.writer(RUN)
    for number in range(50):
        await writer.append("u", OUT, NOON, b"%d\n" % number)
        await writer.flush()
    await read(store)
    await writer.append("u", OUT, NOON, b"new\n")
    await writer.flush()

    with mock.patch.object(os, "pread", side_effect=os.pread) as reads:
        found = await read(store, LogQuery(after=50))

    assert [line.text for line in found] == [b"new\n"]
    assert reads.call_count == 3  # the file's name, one header, one frame


async def test_a_frame_that_is_not_complete_is_not_seen_yet(tmp_path: pathlib.Path) -> None:
    await write(LocalLogStore(tmp_path), [b"one\n", b"two\n"], seal=False)
    path = the_file(tmp_path)
    whole = path.read_bytes()
    [first, _] = reading.LogFile.opened(os.open(path, os.O_RDONLY)).headers()

    for size in range(first.end, len(whole)):
        path.write_bytes(whole[:size])
        assert [line.text for line in await read(LocalLogStore(tmp_path))] == [b"one\n"]
    path.write_bytes(whole[: first.end] + bytes(len(whole) - first.end))
    assert [line.text for line in await read(LocalLogStore(tmp_path))] == [b"one\n"]


async def test_a_damaged_frame_is_an_error_and_not_wrong_text(tmp_path: pathlib.Path) -> None:
    await write(LocalLogStore(tmp_path), [b"some text\n"])
    path = the_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    with pytest.raises(StoreUnusable, match="damaged"):
        await read(LocalLogStore(tmp_path))


async def test_a_foreign_file_is_an_error(tmp_path: pathlib.Path) -> None:
    await write(LocalLogStore(tmp_path), [b"x\n"])
    the_file(tmp_path).write_bytes(b"something else altogether")

    with pytest.raises(StoreUnusable, match="newer version"):
        await read(LocalLogStore(tmp_path))


async def test_sealing_merges_small_frames(tmp_path: pathlib.Path) -> None:
    store = LocalLogStore(tmp_path)
    texts = [b"line %d\n" % number for number in range(200)]
    await write(store, texts, seal=False)
    before = (await store.size(RUN))[1]
    await write(store, texts)

    assert (await store.size(RUN))[1] < before / 3
    assert [line.text for line in await read(store)] == texts
    assert len(list(tmp_path.rglob("*.*"))) == 1


async def test_a_writer_that_was_replaced_does_not_seal(tmp_path: pathlib.Path) -> None:
    store = LocalLogStore(tmp_path)
    late = await store.writer(RUN)
    await late.append("u", OUT, NOON, b"late\n")
    await late.flush()
    await write(store, [b"new\n"])

    with pytest.raises(LeaseLost):
        await late.seal()
    assert [line.text for line in await read(store)] == [b"new\n"]


async def test_a_damaged_index_costs_speed_only(tmp_path: pathlib.Path) -> None:
    store = LocalLogStore(tmp_path)
    await write(store, [b"word here\n" * 200_000])
    the_file(tmp_path, ".fts").write_bytes(b"nonsense" * 1_000)

    assert len(await read(store, LogQuery(contains=" here", tail=3))) == 3


async def test_nothing_is_left_behind_when_a_log_is_deleted(tmp_path: pathlib.Path) -> None:
    store = LocalLogStore(tmp_path)
    await write(store, [b"word here\n" * 200_000])
    assert len(list(tmp_path.rglob("*.*"))) == 2
    await store.delete(RUN)

    assert list(tmp_path.rglob("*.*")) == []


async def test_writers_that_are_dropped_close_their_files(tmp_path: pathlib.Path) -> None:
    before = len(list(pathlib.Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        await write(LocalLogStore(tmp_path), [b"x\n"], seal=False)

    assert len(list(pathlib.Path("/proc/self/fd").iterdir())) <= before + 1


async def test_a_disk_that_takes_nothing_is_told_in_words(tmp_path: pathlib.Path) -> None:
    writer = await LocalLogStore(tmp_path / "logs").writer(RUN)
    (tmp_path / "logs").write_text("in the way")
    await writer.append("u", OUT, NOON, b"x\n")

    with pytest.raises(StoreUnavailable, match="No log can be created"):
        await writer.flush()


async def test_a_full_disk_is_told_in_words(tmp_path: pathlib.Path) -> None:
    writer = await LocalLogStore(tmp_path).writer(RUN)
    await writer.append("u", OUT, NOON, b"x\n")
    full = OSError(errno.ENOSPC, "No space left on device")

    with (
        mock.patch.object(os, "write", side_effect=full),
        pytest.raises(StoreUnavailable, match="No space left"),
    ):
        await writer.flush()
