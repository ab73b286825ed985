"""Finding samples in blocks equals trying every pattern on every line by itself."""

from __future__ import annotations

import re
from unittest import mock

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anubis.domain.errors import UserError
from anubis.domain.metric import MetricDefinition
from anubis.stages.collection import matching, number
from anubis.stages.collection.literal import required_literal
from anubis.stages.collection.matching import Matcher

CHARACTERS = ["a", "b", "c", "loss", "los", "ss=", "=", " ", "1", "2.5", "é", "K", "k", "\t"]
ATOMS = [*CHARACTERS, ".", r"\d+", r"\s", r"\S", "[^a]", "[]x]", "[[:alpha:]]", r"\b", "^", "$"]
UNUSUAL = [r"\A", r"\z", r"\C", "(?i)", "(?s)", "(?-m)", "(?U)", r"\n", r"\x61", r"\Qa.\E", r"\."]
REPEATS = ["", "", "", "*", "+", "?", "{2}", "{0,1}", "{1,}", "*?", "+?", "{", "{,2}"]

atoms = st.sampled_from(ATOMS) | st.sampled_from(UNUSUAL)
patterns = st.recursive(
    atoms,
    lambda inner: (
        st.tuples(inner, st.sampled_from(REPEATS)).map("".join)
        | st.lists(inner, min_size=2, max_size=4).map("".join)
        | st.tuples(inner, inner).map("|".join)
        | inner.map("(?:{})".format)
    ),
    max_leaves=8,
)
metrics = st.tuples(patterns, st.sampled_from(["{}", "({})", r"{}=(\S*)", r"loss={}"])).map(
    lambda parts: parts[1].format(parts[0]) if parts[1] != "{}" else parts[0]
)
texts = st.lists(
    st.sampled_from(
        [*[text.encode() for text in CHARACTERS], b"\n", b"\n", b"\xff", b"\xc3", b"{"]
    ),
    max_size=60,
).map(b"".join)


def definition(pattern: str, name: str = "m") -> MetricDefinition:
    return MetricDefinition(name=name, units="", pattern=pattern)


def is_valid(pattern: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    try:
        return bool(re2.compile(pattern, options).groups <= 1)
    except re2.error:
        return False


def naive_matches(pattern: str, line: bytes) -> list[bytes]:
    """Every match in one line, with the plainest use of RE2 there is."""
    compiled = re2.compile(pattern)
    text = line.decode("utf-8", "replace").encode()
    found = []
    empty_at = -1
    for match in compiled.finditer(text):
        start, end = match.span()
        if start == end == empty_at:
            continue
        empty_at = start if start == end else -1
        found.append(match.group(compiled.groups) or b"")
    return found


def naive(pattern: str, block: bytes) -> tuple[list[float], int, tuple[bytes, int] | None]:
    values, bad = [], []
    for index, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
        for text in naive_matches(pattern, line):
            value = number.number(text)
            if value is None:
                bad.append((text, index))
            else:
                values.append(value)
    return values, len(bad), bad[0] if bad else None


def ours(
    matcher: Matcher, block: bytes, name: str
) -> tuple[list[float], int, tuple[bytes, int] | None]:
    values: list[float] = []
    count, first = 0, None
    for found in matcher.find(block):
        if found.definition.name != name:
            continue
        values.extend(found.values)
        if found.rejected:
            first = first or (found.rejected.example, found.rejected.line)
            count += found.rejected.count
    return values, count, first


@settings(max_examples=400, deadline=None)
@given(st.lists(metrics.filter(is_valid), min_size=1, max_size=4), texts, st.integers(1, 60))
@example(["loss=(.*)", "los"], b"loss=1\nlos\n", 4)
@example(["abcb", "bcb=(.)"], b"abcb=1\n", 60)
@example(["^"], b"a\nb\n\n", 60)
@example([r"\C+"], b"1\n2", 60)
@example([r"(?s)1.*"], b"1\n2", 60)
def test_blocks_and_lines_agree(sources: list[str], block: bytes, chunk: int) -> None:
    definitions = [definition(source, str(index)) for index, source in enumerate(sources)]
    with (
        mock.patch.object(matching, "CHUNK", chunk),
        mock.patch.object(matching, "PREFILTER_FROM", 0),
    ):
        matcher = Matcher(definitions)
        for index, source in enumerate(sources):
            assert ours(matcher, block, str(index)) == naive(source, block), source


@settings(max_examples=400, deadline=None)
@given(metrics.filter(is_valid), texts)
def test_a_required_literal_is_in_every_line_that_matches(pattern: str, block: bytes) -> None:
    literal = required_literal(pattern)
    for line in block.split(b"\n"):
        if literal is not None and naive_matches(pattern, line):
            assert literal in line


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"loss=([0-9.]+)", b"loss="),
        (r'"loss": ([^,]+),', b'"loss": '),
        (r'{"acc": (\d+)}', b'{"acc": '),
        (r"ab?cdef", b"cdef"),
        (r"abc+d", b"abc"),
        (r"abcd{2}x", b"abc"),
        (r"(?:loss|acc)=(\d+) it/s", b" it/s"),
        (r"(foo(?:barx)baz)+", b"barx"),
        (r"(?P<value>\d+) images", b" images"),
        (r"\bstep\s+(\d+)", b"step"),
        (r"a\.b\.c", b"a.b.c"),
        (r"µs=(\d+)", "µs=".encode()),
        (r"[[:alpha:]]xyz", b"xyz"),
        (r"(?i)loss", None),
        (r"loss|acc", None),
        (r"(?:loss)?(\d+)", None),
        (r"(loss)*", None),
        (r"\Qloss\E", None),
        (r"\x41loss", None),
        (r"ab(\d)", None),
        ("a\ufffdloss", None),
    ],
)
def test_the_longest_certain_literal_is_found(pattern: str, literal: bytes | None) -> None:
    assert required_literal(pattern) == literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"1", 1.0),
        (b"-1.5e-3", -0.0015),
        (b" 7 ", 7.0),
        (b".5", 0.5),
        (b"nan", None),
        (b"inf", None),
        (b"-Infinity", None),
        (b"1e999", None),
        (b"1,000", None),
        (b"1_000", None),
        (b"0x10", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_what_is_a_number(text: bytes, value: float | None) -> None:
    assert number.number(text) == value
    assert number.all_numbers([b"1", text]) == (None if value is None else [1.0, value])


def test_a_group_that_took_no_part_is_reported() -> None:
    [found] = Matcher([definition("loss(=1)?")]).find(b"a loss b")

    assert found.rejected == matching.Rejected(count=1, example=b"", line=0)


def test_undecodable_bytes_are_one_character_each() -> None:
    [found] = Matcher([definition("loss=.{2}([0-9]+)")]).find(b"loss=\xff\xfe12\n")

    assert found.values == [12.0]


def test_a_pattern_that_matches_nothing_everywhere_is_given_up() -> None:
    matcher = Matcher([definition(r"(\d*)"), definition(r"v=(\d+)", "v")])
    block = b"x" * 999 + b"\n" + b"v=1 12\n"

    results = [found for _ in range(1_000) for found in matcher.find(block)]

    assert sum(found.gave_up for found in results) == 1
    assert sum(len(found.values) for found in results if found.definition.name == "v") == 1_000
    count = sum(found.rejected.count for found in results if found.rejected)
    assert count == matching.MOST_EMPTY - 1


def test_a_required_text_that_is_everywhere_does_not_hide_matches() -> None:
    definitions = [definition(r"(\d+)   x", "table"), definition(r"loss=(\d+)", "loss")]
    block = b"   " * 40_000 + b"\n" + b"loss=1 2   x\n" * 3
    matcher = Matcher(definitions)

    for _ in range(3):
        assert ours(matcher, block, "table")[0] == [2.0] * 3
        assert ours(matcher, block, "loss")[0] == [1.0] * 3


def test_an_invalid_pattern_is_explained() -> None:
    with pytest.raises(UserError, match=re.escape("'m' is not valid: missing )")):
        Matcher([definition("(")])


def test_several_groups_are_refused() -> None:
    with pytest.raises(UserError, match="2 groups"):
        Matcher([definition("(a)(b)")])


@pytest.mark.parametrize("prefilter_from", [0, 1_000, 1_000_000])
def test_many_patterns_find_their_own_values(
    prefilter_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "PREFILTER_FROM", prefilter_from)
    definitions = [definition(rf"metric{index}=(\d+)", str(index)) for index in range(40)]
    block = b"".join(b"metric%d=%d metric0=7\n" % (index, index) for index in range(40))

    matcher = Matcher(definitions)

    assert ours(matcher, block, "17")[0] == [17.0]
    assert ours(matcher, block, "0")[0] == [0.0, *[7.0] * 40]
