"""What every log store must do.

Subclass ``LogStoreContract`` and give it a fixture ``store`` with a fresh, empty store, and a
fixture ``reader`` with a store that reads the same logs from elsewhere (it may be the same).
"""

# ruff: noqa: D102 - the name of a test is its claim, in a sentence

from __future__ import annotations

from datetime import timedelta

from anubis.domain.logline import LogLine
from anubis.domain.observation import Stream
from anubis.ports.log_store import LogQuery, LogStore
from anubis.testing import builders
from anubis.testing.clock import NOON

RUN = builders.a_run_id(1)
OTHER = builders.a_run_id(2)
OUT, ERR = Stream.STDOUT, Stream.STDERR


async def read(store: LogStore, query: LogQuery | None = None) -> list[LogLine]:
    """All lines of the run that match."""
    return [line async for line in store.lines(RUN, query or LogQuery())]


async def texts(store: LogStore, query: LogQuery | None = None) -> list[bytes]:
    """The texts of the lines that match."""
    found = [line.text for line in await read(store, query)]
    # Whatever a test asks for, the other way of asking must say the same.
    pieces = [piece async for piece in store.text(RUN, query or LogQuery())]
    assert b"".join(pieces) == b"".join(found)
    return found


async def write(store: LogStore, *parts: tuple[str, Stream, bytes], seal: bool = True) -> None:
    """Write a log, one part per second."""
    writer = await store.writer(RUN)
    for second, (unit, stream, text) in enumerate(parts):
        await writer.append(unit, stream, NOON + timedelta(seconds=second), text)
    await (writer.seal() if seal else writer.flush())


class LogStoreContract:
    """Inherit from this."""

    async def test_a_run_without_output_has_no_lines(self, store: LogStore) -> None:
        await (await store.writer(RUN)).seal()

        assert await read(store) == []
        assert await store.size(RUN) == (0, 0)

    async def test_lines_come_back_in_order_with_all_that_is_known(self, store: LogStore) -> None:
        await write(store, ("server", OUT, b"one\ntwo\n"), ("client", ERR, b"three\n"))

        assert await read(store) == [
            LogLine(number=1, at=NOON, unit="server", stream=OUT, text=b"one\n"),
            LogLine(number=2, at=NOON, unit="server", stream=OUT, text=b"two\n"),
            LogLine(
                number=3, at=NOON + timedelta(seconds=1), unit="client", stream=ERR, text=b"three\n"
            ),
        ]

    async def test_instants_keep_their_microseconds(self, store: LogStore) -> None:
        at = NOON + timedelta(microseconds=123_457)
        writer = await store.writer(RUN)
        await writer.append("u", OUT, at, b"x\n")
        await writer.seal()

        assert [line.at for line in await read(store)] == [at]

    async def test_every_byte_comes_back(self, store: LogStore) -> None:
        garbage = bytes(range(256)) * 10
        await write(store, ("u", OUT, b"\r\n\n"), ("u", OUT, garbage), ("u", OUT, b"\xff\n"))

        assert b"".join(await texts(store)) == b"\r\n\n" + garbage + b"\xff\n"

    async def test_only_a_newline_ends_a_line(self, store: LogStore) -> None:
        await write(store, ("u", OUT, b"10%\r20%\r\x0b\x0c\x1c\x85end\n"))

        assert await texts(store) == [b"10%\r20%\r\x0b\x0c\x1c\x85end\n"]

    async def test_pieces_without_newline_stay_pieces(self, store: LogStore) -> None:
        await write(store, ("u", OUT, b"a" * 10), ("u", OUT, b"b" * 10), ("u", OUT, b"c\nd"))

        assert await texts(store) == [b"a" * 10, b"b" * 10, b"c\n", b"d"]

    async def test_a_large_log_comes_back(self, store: LogStore) -> None:
        block = b"".join(b"line %d of the large log\n" % number for number in range(5_000))
        await write(store, *[("u", OUT, block)] * 20)

        lines = await read(store)

        assert b"".join(line.text for line in lines) == block * 20
        assert [line.number for line in lines] == list(range(1, 100_001))

    async def test_flushed_lines_are_visible_before_the_end(
        self, store: LogStore, reader: LogStore
    ) -> None:
        writer = await store.writer(RUN)
        await writer.append("u", OUT, NOON, b"one\n")
        await writer.flush()
        seen = await texts(reader)
        await writer.append("u", OUT, NOON, b"two\n")
        await writer.flush()

        assert seen == [b"one\n"]
        assert await texts(reader, LogQuery(after=1)) == [b"two\n"]

    async def test_a_reader_can_follow_from_start_to_seal(
        self, store: LogStore, reader: LogStore
    ) -> None:
        writer = await store.writer(RUN)
        followed: list[LogLine] = []
        for number in range(30):
            await writer.append("u", OUT, NOON, b"line %d\n" % number)
            await writer.flush()
            last = followed[-1].number if followed else 0
            followed += await read(reader, LogQuery(after=last))
        await writer.append("u", OUT, NOON, b"end")
        await writer.seal()
        followed += await read(reader, LogQuery(after=followed[-1].number))

        assert followed == await read(store)
        assert len(followed) == 31

    async def test_queries_select_by_unit_and_stream(self, store: LogStore) -> None:
        await write(store, ("a", OUT, b"1\n"), ("b", OUT, b"2\n"), ("a", ERR, b"3\n"))

        assert await texts(store, LogQuery(units=["a"])) == [b"1\n", b"3\n"]
        assert await texts(store, LogQuery(streams=[OUT])) == [b"1\n", b"2\n"]
        assert await texts(store, LogQuery(units=["a", "c"], streams=[ERR])) == [b"3\n"]

    async def test_queries_select_by_text(self, store: LogStore) -> None:
        await write(store, ("u", OUT, b"Loss 1\nloss 2\nno\n"), ("u", OUT, "größe 3\n".encode()))

        assert await texts(store, LogQuery(contains="loss")) == [b"loss 2\n"]
        assert await texts(store, LogQuery(contains="röß")) == ["größe 3\n".encode()]
        assert await texts(store, LogQuery(contains="2\nno")) == []

    async def test_queries_give_the_last_of_what_matches(self, store: LogStore) -> None:
        block = b"".join(b"%d\n" % number for number in range(1, 101))
        await write(store, ("u", OUT, block))

        assert await texts(store, LogQuery(tail=2)) == [b"99\n", b"100\n"]
        assert await texts(store, LogQuery(tail=2, contains="5")) == [b"85\n", b"95\n"]
        assert await texts(store, LogQuery(tail=0)) == []
        assert await texts(store, LogQuery(tail=5, after=98)) == [b"99\n", b"100\n"]
        assert len(await texts(store, LogQuery(tail=1_000))) == 100

    async def test_size_tells_the_bytes_written(self, store: LogStore) -> None:
        await write(store, ("u", OUT, b"12345\n"), ("u", ERR, b"678"))

        written, _ = await store.size(RUN)

        assert written == 9

    async def test_a_new_writer_replaces_what_was_there(
        self, store: LogStore, reader: LogStore
    ) -> None:
        await write(store, ("u", OUT, b"old old old\n"), seal=False)
        assert await texts(reader) == [b"old old old\n"]
        await write(store, ("u", OUT, b"new\n"))

        assert await texts(reader) == [b"new\n"]

    async def test_a_new_writer_forgets_the_old_log_at_once(self, store: LogStore) -> None:
        await write(store, ("u", OUT, b"old\n"))
        await store.writer(RUN)

        assert await read(store) == []

    async def test_a_deleted_log_is_gone_and_deleting_may_be_repeated(
        self, store: LogStore
    ) -> None:
        await write(store, ("u", OUT, b"x\n"))
        await store.delete(RUN)
        await store.delete(RUN)

        assert await read(store) == []
        assert await store.size(RUN) == (0, 0)

    async def test_runs_do_not_mix(self, store: LogStore) -> None:
        await write(store, ("u", OUT, b"mine\n"))
        other = await store.writer(OTHER)
        await other.append("u", OUT, NOON, b"other\n")
        await other.seal()
        await store.delete(OTHER)

        assert await texts(store) == [b"mine\n"]
