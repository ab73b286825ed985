"""Every value of a TOML text is found where it stands."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anubis.stages.descriptor.layout import Layout, Path
from anubis.stages.descriptor.locating import MAX_DEPTH, TooMuch, locate

bare_keys = st.text("abcxyz019_-", min_size=1, max_size=4)
characters = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))
words = st.text(characters, max_size=8)
blanks = st.sampled_from(["", " ", "\t", "  "])
gaps = st.sampled_from(["", " ", "\n", "\n  # note ] \" ' =\n\t"])


def escaped(text: str) -> str:
    return '"' + "".join(f"\\U{ord(c):08x}" if c in '"\\' else c for c in text) + '"'


def keys() -> st.SearchStrategy[str]:
    literal = st.text('ab .#=[]"ü', max_size=4).map(lambda text: f"'{text}'")
    return st.one_of(bare_keys, words.map(escaped), literal)


strings = st.one_of(
    words.map(escaped),
    st.text('ab #]"\\ü', max_size=6).map(lambda text: f"'{text}'"),
    st.text("ab'#]\nü", max_size=8).map(lambda text: f'"""{text}"""'),
    st.text("ab'#]\nü", max_size=8).map(lambda text: f'"""{text}\\"\\\n   x""y"""""'),
    st.text('ab"#]\nü', max_size=8).map(lambda text: f"'''{text}'x''y'''''"),
)
numbers = ["1", "0xBEEF", "+1_000", "1.5e-3", "inf", "-nan", "true", "false"]
times = ["1979-05-27", "07:32:00.5", "1979-05-27 07:32:00Z", "1979-05-27T07:32:00-07:00"]
plain = st.sampled_from([*numbers, *times])


def arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def joined(items: list[str], gap: str, comma: str) -> str:
        return f"[{gap}" + f"{gap},{gap}".join(items) + (comma if items else "") + f"{gap}]"

    return st.builds(joined, st.lists(values, max_size=3), gaps, st.sampled_from(["", ","]))


def inline_tables(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.builds(
        lambda key, blank, value: f"{key}{blank}={blank}{value}", keys(), blanks, values
    )
    return st.builds(
        lambda items, blank: "{" + blank + f"{blank},{blank}".join(items) + blank + "}",
        st.lists(pairs, max_size=3),
        blanks,
    )


values = st.recursive(
    st.one_of(strings, plain),
    lambda inner: st.one_of(arrays(inner), inline_tables(inner)),
    max_leaves=6,
)
dotted = st.builds(
    lambda parts, blank: f"{blank}.{blank}".join(parts),
    st.lists(keys(), min_size=1, max_size=3),
    blanks,
)
statements = st.one_of(
    st.builds(
        lambda key, blank, value: f"{blank}{key}{blank}={blank}{value}", dotted, blanks, values
    ),
    dotted.map(lambda key: f"[{key}]"),
    dotted.map(lambda key: f" [[ {key} ]]  # item"),
    st.sampled_from(["", "# [comment] = 'x", "\t"]),
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Lines that form valid TOML together: one that clashes with the others is left out."""
    text = ""
    for statement in draw(st.lists(statements, max_size=12)):
        try:
            tomllib.loads(text + statement + "\n")
        except tomllib.TOMLDecodeError:
            continue
        text += statement + "\n"
    return text


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    found = [(path, value)] if path else []
    for key, child in children:
        found.extend(leaves(child, (*path, key)))
    return found


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


def holds(text: str, layout: Layout, path: Path, value: Any) -> bool:
    """Whether what stands at the place of a path really is its value, and its key its key."""
    spot = layout.spots[path]
    written = text[spot.start : spot.end]
    if written.startswith("[") and isinstance(value, dict):
        return isinstance(path[-1], int) or tomllib.loads(written) != {}
    if not spot.is_written or not written:
        return isinstance(value, dict | list)
    return same(tomllib.loads(f"x = {written}")["x"], value)


@given(documents())
@settings(max_examples=400, deadline=None)
def test_the_text_at_every_place_parses_to_the_value_of_its_path(text: str) -> None:
    layout = locate(text)
    assert not layout.duplicates
    for path, value in leaves(tomllib.loads(text)):
        assert path in layout.spots
        assert holds(text, layout, path, value), (path, value)


@given(documents())
@settings(max_examples=200, deadline=None)
def test_every_key_stands_where_its_place_says(text: str) -> None:
    layout = locate(text)
    for path, _ in leaves(tomllib.loads(text)):
        if isinstance(path[-1], str):
            key = text[layout.spots[path].key :]
            name = path[-1]
            quoted = key.startswith(("'", '"'))
            assert quoted or key.startswith(name), (path, key[:20])


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_is_walked_to_an_end(text: str) -> None:
    layout = locate(text)
    for path in layout.spots:
        line, column = layout.of_value(path)
        assert 1 <= line <= text.count("\n") + 1
        assert 1 <= column <= len(text.split("\n")[line - 1]) + 1


EXAMPLE = """\
spec_version = "0.1.0"  # one
[info]
description = \"\"\"
two lines [not.a.table]
\"\"\"
labels = { "a b" = 'x', c.d = "y" }
[server.env]
ports = [
  8080,
  # why not
  8081 ]
[[data.sources]]
src = "ä"
[[data.sources]]
  src = "b"
  [data.sources.more]
  x = 1
"""


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ((), (1, 1), (1, 1)),
        (("spec_version",), (1, 1), (1, 16)),
        (("info",), (2, 2), (2, 1)),
        (("info", "description"), (3, 1), (3, 15)),
        (("info", "labels", "a b"), (6, 12), (6, 20)),
        (("info", "labels", "c", "d"), (6, 27), (6, 31)),
        (("server",), (7, 2), (7, 2)),
        (("server", "env"), (7, 9), (7, 1)),
        (("server", "env", "ports", 1), (11, 3), (11, 3)),
        (("data", "sources"), (12, 8), (12, 8)),
        (("data", "sources", 0), (12, 8), (12, 1)),
        (("data", "sources", 1, "src"), (15, 3), (15, 9)),
        (("data", "sources", 1, "more"), (16, 17), (16, 3)),
        (("data", "sources", 1, "more", "x"), (17, 3), (17, 7)),
        (("info", "nothing", "here"), (2, 2), (2, 1)),
    ],
)
def test_positions_are_those_an_editor_shows(
    path: Path, key: tuple[int, int], value: tuple[int, int]
) -> None:
    layout = locate(EXAMPLE)
    assert layout.of_key(path) == key
    assert layout.of_value(path) == value


def test_a_key_written_twice_is_noticed() -> None:
    (duplicate,) = locate("a = 1\n[b]\nc = 1\nc = 2\n").duplicates
    assert duplicate.path == ("b", "c")
    assert (duplicate.first, duplicate.second) == (10, 16)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "x = " + "{a=" * 100_000,
        ".".join("a" * 100_000) + " = 1",
        "[" + ".".join("a" * 100_000) + "]",
        "x = {" + ".".join("a" * 40) + " = {" + ".".join("b" * 40) + " = 1}}",
        "x = 1" + "0" * 5000,
    ],
)
def test_what_would_be_too_much_for_the_parser_is_refused_at_its_place(text: str) -> None:
    with pytest.raises(TooMuch) as caught:
        locate(text)
    assert caught.value.position.line == 1
    assert 1 <= caught.value.position.column <= len(text)


def test_the_deepest_allowed_nesting_is_read() -> None:
    depth = MAX_DEPTH - 1
    text = "x = " + "[" * depth + "]" * depth
    assert tomllib.loads(text)
    assert len(max(locate(text).spots, key=len)) == MAX_DEPTH - 1
