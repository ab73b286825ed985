"""Spans of bytes add up, in whichever order they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.dataset_cache.directory.ranges import Ranges

SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=12)


@given(SPANS, st.integers(0, 50), st.integers(1, 20))
def test_what_is_here_and_what_is_missing_make_the_whole(
    spans: list[tuple[int, int]], size: int, most: int
) -> None:
    here = Ranges(spans)
    bytes_here = {byte for start, end in spans for byte in range(start, end)}
    missing = list(here.missing(size, most))

    assert {byte for start, end in here for byte in range(start, end)} == bytes_here
    assert here.size == len(bytes_here)
    assert all(0 < end - start <= most for start, end in missing)
    lacks = [byte for start, end in missing for byte in range(start, end)]
    assert lacks == sorted(set(range(size)) - bytes_here)


@given(SPANS)
def test_the_beginning_ends_at_the_first_gap(spans: list[tuple[int, int]]) -> None:
    bytes_here = {byte for start, end in spans for byte in range(start, end)}

    first_gap = next(byte for byte in range(100) if byte not in bytes_here)
    assert Ranges(spans).begun == first_gap
