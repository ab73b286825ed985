"""Chunks cut anywhere become whole lines, byte for byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anubis.domain.observation import Stream
from anubis.stages.collection.assembling import LineAssembler
from anubis.stages.collection.ending import LastLines

chunks = st.lists(
    st.lists(st.sampled_from([b"a", b"b", b"\n", b"c" * 7]), max_size=12).map(b"".join), max_size=12
)


def assembled(parts: list[bytes], longest: int) -> list[bytes]:
    assembler = LineAssembler(longest)
    blocks = [block for part in parts for block in assembler.add(part)]
    rest = assembler.finish()
    return [*blocks, rest] if rest else blocks


@given(chunks, st.integers(2, 20))
def test_nothing_is_lost_added_or_moved(parts: list[bytes], longest: int) -> None:
    assert b"".join(assembled(parts, longest)) == b"".join(parts)


@given(chunks, st.integers(2, 20))
def test_blocks_end_with_a_line_except_pieces_of_long_lines(
    parts: list[bytes], longest: int
) -> None:
    assembler = LineAssembler(longest)
    for part in parts:
        for block in assembler.add(part):
            *lines, last = block.split(b"\n")
            assert all(len(line) < longest for line in lines)
            assert last == b"" or (not lines and len(block) == longest)


@given(chunks)
def test_lines_that_are_not_too_long_are_never_cut(parts: list[bytes]) -> None:
    *blocks, _ = [*assembled(parts, 1_000), b""]

    assert all(block.endswith(b"\n") for block in blocks[:-1])


@given(chunks, st.integers(2, 20))
def test_an_endless_line_does_not_pile_up(parts: list[bytes], longest: int) -> None:
    assembler = LineAssembler(longest)
    for part in parts:
        assembler.add(part.replace(b"\n", b"x"))

    assert len(assembler.finish()) <= longest


def test_the_last_lines_show_a_long_line_once() -> None:
    last = LastLines()
    last.add("u", Stream.STDOUT, b"first\n")
    last.add("u", Stream.STDOUT, b"x" * 4_000)
    last.add("u", Stream.STDERR, b"between\n")
    last.add("u", Stream.STDOUT, b"x" * 4_000)
    last.add("u", Stream.STDOUT, b"end of it\n")
    last.add("u", Stream.STDOUT, b"after\r\n")

    assert last.decoded() == {"u": ("first", "x" * 500, "between", "after")}


@given(st.lists(st.lists(st.sampled_from([b"a", b"bb", b""]), min_size=1), max_size=12))
def test_the_last_twenty_lines_are_kept(blocks: list[list[bytes]]) -> None:
    last = LastLines()
    for lines in blocks:
        last.add("u", Stream.STDOUT, b"".join(line + b"\n" for line in lines))

    everything = [line.decode() for lines in blocks for line in lines]
    assert last.decoded().get("u", ()) == tuple(everything[-20:])
