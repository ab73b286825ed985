"""A launcher's lines are those of the ranks it speaks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from anubis.domain.observation import Stream
from anubis.stages.collection import ranks


def split(block: bytes) -> list[tuple[str, Stream, bytes]]:
    launcher = ranks.Ranks("launcher", Stream.STDOUT)
    return [*launcher.add(block), *launcher.finish()]


def test_lines_without_a_tag_are_the_launchers_own() -> None:
    assert split(b"a\nb\n") == [("launcher", Stream.STDOUT, b"a\nb\n")]


def test_the_tag_says_who_and_on_which_stream() -> None:
    block = b"[1,12]<stdout>:a\n[1,3]<stderr>:b\n[1,3]<stddiag>:c\nd\n"
    assert split(block) == [
        ("rank-12", Stream.STDOUT, b"a\n"),
        ("rank-3", Stream.STDERR, b"b\nc\n"),
        ("launcher", Stream.STDOUT, b"d\n"),
    ]


def test_a_rank_that_is_interrupted_by_another_keeps_its_line() -> None:
    """As Open MPI 4.1 writes it when it has read half of a line."""
    block = b"[1,1]<stdout>:one[1,0]<stdout>:zero\n[1,1]<stdout>:\n[1,0]<stdout>:x[1,0]<stdout>:\n"
    assert split(block) == [
        ("rank-0", Stream.STDOUT, b"zero\n"),
        ("rank-1", Stream.STDOUT, b"one\n"),
        ("rank-0", Stream.STDOUT, b"x\n"),
    ]


def test_a_line_too_long_for_one_block_stays_with_its_rank() -> None:
    launcher = ranks.Ranks("launcher", Stream.STDOUT)
    blocks = (b"[1,1]<stdout>:aaa", b"bbb", b"ccc\n", b"d\n")
    assert [said for block in blocks for said in launcher.add(block)] == [
        ("rank-1", Stream.STDOUT, b"aaabbbccc\n"),
        ("launcher", Stream.STDOUT, b"d\n"),
    ]


def test_a_rank_that_never_ends_its_line_does_not_fill_our_memory() -> None:
    launcher = ranks.Ranks("launcher", Stream.STDOUT)
    piece = b"x" * ranks.LONGEST_REST
    given = [*launcher.add(b"[1,0]<stdout>:" + piece), *launcher.add(piece)]
    assert given == [("rank-0", Stream.STDOUT, piece + piece)]
    assert list(launcher.finish()) == []


def test_a_tag_counts_only_in_a_line_that_begins_with_one() -> None:
    assert split(b"see [1,0]<stdout>:x\n") == [
        ("launcher", Stream.STDOUT, b"see [1,0]<stdout>:x\n")
    ]


def test_carriage_returns_do_not_end_lines() -> None:
    assert split(b"[1,0]<stdout>:10%\r20%\n") == [("rank-0", Stream.STDOUT, b"10%\r20%\n")]


def test_a_last_line_without_newline_is_kept_as_it_is() -> None:
    assert split(b"[1,0]<stdout>:half") == [("rank-0", Stream.STDOUT, b"half")]


_SPEECH = some.lists(
    some.tuples(
        some.sampled_from([None, 0, 1, 7]),
        some.binary(max_size=20).filter(lambda text: b"\n" not in text and b"]<std" not in text),
    ),
    max_size=20,
)


@given(_SPEECH)
def test_nothing_is_lost_and_each_keeps_its_order(speech: list[tuple[int | None, bytes]]) -> None:
    def tagged(rank: int | None, text: bytes) -> bytes:
        return text + b"\n" if rank is None else b"[1,%d]<stdout>:%s\n" % (rank, text)

    block = b"".join(tagged(rank, text) for rank, text in speech)
    found: dict[str, bytes] = {}
    for unit, _, lines in split(block) if block else ():
        found[unit] = found.get(unit, b"") + lines
    expected: dict[str, bytes] = {}
    for rank, text in speech:
        unit = "launcher" if rank is None else f"rank-{rank}"
        expected[unit] = expected.get(unit, b"") + text + b"\n"
    assert found == expected
