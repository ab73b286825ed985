"""No byte of a program's output is lost or told twice, whatever becomes of the log's files."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import pathlib
import tempfile
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine_kubernetes.node_logs import NodeLog, stamp

from anubis.adapters.engine.kubernetes.recorder import cri_line, cri_log
from anubis.adapters.engine.kubernetes.recorder.cri_log import Log, Piece, Place
from anubis.adapters.engine.kubernetes.recording import Kind

Reading = Callable[..., Log]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read looks for new files, and takes an older one for finished."""
    monkeypatch.setattr(cri_log, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(cri_log, "SETTLE_SECONDS", 0.0)


@pytest.fixture
def node(tmp_path: pathlib.Path) -> NodeLog:
    return NodeLog(tmp_path / "benchmark")


@pytest.fixture
def reading(node: NodeLog) -> Iterator[Reading]:
    """Makes readers of the log."""
    with contextlib.ExitStack() as stack:

        def read(place: Place | None = None) -> Log:
            return stack.enter_context(contextlib.closing(Log(str(node.folder), place)))

        yield read


def drained(log: Log) -> list[Piece]:
    """All there is now."""
    found: list[Piece] = []
    while more := list(log.read()):
        found += more
    return found


def text(pieces: list[Piece], kind: Kind = Kind.STDOUT) -> bytes:
    return b"".join(piece.data for piece in pieces if piece.kind is kind)


def place(pieces: list[Piece]) -> Place:
    """Where a reader stood after these, as the journal tells the next one."""
    [*_, file] = [piece for piece in pieces if piece.kind is Kind.FILE]
    return Place.unpacked(json.loads(file.data))._replace(position=pieces[-1].position)


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999_999))
def test_times_are_read_to_the_nanosecond(seconds: int, rest: int) -> None:
    at_ns = seconds * 10**9 + rest
    assert cri_line.Clock().nanoseconds(stamp(at_ns).encode()) == at_ns


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (b"2024-02-29T12:00:00.5+01:00", "2024-02-29T11:00:00.5+00:00"),
        (b"2024-02-29T12:00:00-05:30", "2024-02-29T17:30:00+00:00"),
        (b"2000-12-31T23:59:59.000001Z", "2000-12-31T23:59:59.000001+00:00"),
    ],
)
def test_times_of_any_zone_are_understood(told: bytes, meant: str) -> None:
    expected = dt.datetime.fromisoformat(meant)
    assert cri_line.Clock().nanoseconds(told) == round(expected.timestamp() * 1e6) * 1000


@pytest.mark.parametrize(
    "line", [b"", b"x", b"a b c d", b"2024-02-29T12:00:00Z stdin F x", b"  F "]
)
def test_what_is_no_line_of_a_log_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - nobody sees the words
        cri_line.parse(line, cri_line.Clock())


def test_parts_of_a_line_are_put_together_and_a_last_one_without_an_end_stays_so(
    node: NodeLog, reading: Reading
) -> None:
    node.write(b"a" * 16, tag="P")
    node.write(b"b" * 3)
    node.write(b"")
    node.write(b"\x00\xff no end", tag="P")
    found = drained(reading())
    assert text(found) == b"a" * 16 + b"bbb\n\n\x00\xff no end"


def test_the_streams_stay_apart_and_in_order(node: NodeLog, reading: Reading) -> None:
    for number in range(6):
        node.write(b"%d" % number, stream="stderr" if number % 2 else "stdout")
    found = drained(reading())
    assert text(found, Kind.STDERR) == b"1\n3\n5\n"
    assert [piece.data for piece in found[1:]] == [b"%d\n" % number for number in range(6)]


def test_lines_of_one_moment_are_one_piece_and_others_keep_their_times(
    node: NodeLog, reading: Reading
) -> None:
    first = node.write(b"a")
    node.write(b"b")
    later = node.write(b"c", ns=2_000_000)
    _, *found = drained(reading())
    assert [(piece.at_ns, piece.data) for piece in found] == [(first, b"a\nb\n"), (later, b"c\n")]


def test_half_a_line_is_waited_for(node: NodeLog, reading: Reading) -> None:
    log = reading()
    line = f"{stamp(10**18)} stdout F whole\n".encode()
    for end in (len(line) // 2, len(line)):
        node.current.write_bytes(line[:end])
        found = drained(log)
        assert text(found) == (b"whole\n" if end == len(line) else b"")


def test_a_file_that_was_put_away_is_read_to_its_end_before_the_next(
    node: NodeLog, reading: Reading
) -> None:
    log = reading()
    node.write(b"1")
    found = drained(log)
    node.write(b"2")
    node.rotate()
    node.write(b"3")
    assert text(found + drained(log)) == b"1\n2\n3\n"


def test_many_changes_of_the_file_while_somebody_reads_slowly_lose_nothing(
    node: NodeLog, reading: Reading
) -> None:
    log = reading()
    node.write(b"0")
    found = list(log.read())
    for number in range(1, 20):
        node.rotate()
        node.write(b"%d" % number)
        log._look()  # as often as it does, and reads nothing meanwhile
    found += drained(log)
    assert text(found) == b"".join(b"%d\n" % number for number in range(20))
    assert log.is_whole


def test_a_reader_that_comes_late_finds_all_files_that_are_left(
    node: NodeLog, reading: Reading
) -> None:
    for number in range(4):
        node.write(b"%d" % number)
        if number < 3:
            node.rotate()
    assert len(list(node.folder.glob("*.gz"))) == 2
    log = reading()
    assert text(drained(log)) == b"0\n1\n2\n3\n"
    assert log.is_whole


def test_who_finds_its_place_deleted_says_that_something_is_missing(
    node: NodeLog, reading: Reading
) -> None:
    node.write(b"0")
    first = reading()
    before = drained(first)
    first.close()
    for number in range(1, 10):
        node.write(b"%d" % number)
        node.rotate()
    node.write(b"10")
    log = reading(place(before))
    assert text(drained(log)).endswith(b"8\n9\n10\n")
    assert not log.is_whole


def test_a_line_that_the_runtime_did_not_finish_is_counted(node: NodeLog, reading: Reading) -> None:
    log = reading()
    node.write(b"1")
    with node.current.open("ab") as file:
        file.write(b"2024-01-01T00:00:00Z std")
    node.rotate()
    node.write(b"2")
    assert text(drained(log)) == b"1\n2\n"
    assert log.unreadable == 1


ACTIONS = st.lists(st.sampled_from(["write", "rotate", "read", "restart"]), max_size=40)


@settings(deadline=None)
@given(ACTIONS)
def test_no_line_is_lost_or_told_twice_over_changes_of_files_and_of_readers(
    actions: list[str],
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cri_log, "LOOK_SECONDS", 0.0)
        patch.setattr(cri_log, "SETTLE_SECONDS", 0.0)
        node = NodeLog(pathlib.Path(folder, "benchmark"))
        wrote, found, log = 0, list[Piece](), Log(str(node.folder))
        for action in [*actions, "read"]:
            if action == "write":
                node.write(b"line %d" % wrote)
                wrote += 1
            elif action == "rotate" and node.current.exists() and node.current.stat().st_size:
                node.rotate(keep=100)
            elif action == "restart":
                log.close()
                known = any(piece.kind is Kind.FILE for piece in found)
                log = Log(str(node.folder), place(found) if known else None)
            elif action == "read":
                found += drained(log)
        log.close()
    assert text(found) == b"".join(b"line %d\n" % number for number in range(wrote))
    assert log.is_whole
