"""Put the syntax errors of ``tomllib`` into words that say what to do.

Its messages are short and its places are sometimes behind the mistake; where the cause can be
recognised, the explanation names it and points at it. A message that is not known here (a newer
Python may have others) is still told, with its place.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Final

from anubis.stages.descriptor import wording
from anubis.stages.descriptor.layout import Layout

_REPEATS: Final = ("Cannot overwrite", "Cannot declare", "Cannot mutate", "Cannot redefine")
_UNCLOSED: Final = (
    "Unterminated string",
    "Illegal character '\\n'",
    "Found invalid character '\\n'",
    'Expected "\'"',
    "Expected \"'''\"",
)
_WORD: Final = re.compile(r"[^\s#,\]}=]+")

_EXPECTED: Final = {
    "Invalid value": "a value: text in quotes, a number, true, false, a list or a table",
    "Invalid statement": "a key such as name = value, or a table header such as [info]",
    "Invalid date or datetime": "a date that exists",
    "Invalid initial character for a key part": "a key",
    "Invalid hex value": "hexadecimal digits after \\u or \\U",
    "Unclosed array": "',' or ']' in a list",
    "Unclosed inline table": "',' or '}' in a table on one line",
    "Unescaped '\\' in a string": "an escape that TOML knows",
    "Escaped character is not a Unicode scalar value": "the number of a character",
    "Expected newline or end of document after a statement": "the end of the line",
    "Expected '=' after a key in a key/value pair": "'=' after the key",
    "Expected ']' at the end of a table declaration": "']' at the end of the table's header",
    "Expected ']]' at the end of an array declaration": "']]' at the end of the header",
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """What is wrong, and where."""

    offset: int
    found: str
    expected: str
    hint: str = ""
    field: str = ""


def explain(text: str, layout: Layout, message: str, offset: int) -> Mistake:
    """The mistake behind a message of ``tomllib``."""
    if message.startswith((*_REPEATS, "Duplicate")):
        return _repeated(text, layout, offset)
    if message.startswith(_UNCLOSED):
        return _unclosed(layout, offset)
    expected = _EXPECTED.get(message) or _expected(message)
    hint = _HINTS[message](text, offset) if message in _HINTS else ""
    if message.startswith("Unescaped"):
        offset = max(text.rfind("\\", 0, offset), 0)
    return Mistake(offset=offset, found=_found(text, offset), expected=expected, hint=hint)


def _repeated(text: str, layout: Layout, offset: int) -> Mistake:
    if not layout.duplicates:
        expected = "a key that no other line has made something else"
        return Mistake(offset=offset, found=_found(text, offset), expected=expected)
    duplicate = layout.duplicates[0]
    line = layout.lines.position(duplicate.first).line
    return Mistake(
        offset=duplicate.second,
        field=wording.dotted(duplicate.path),
        found=f"{wording.quoted(str(duplicate.path[-1]))} a second time",
        expected="every key and table once",
        hint=f"the first is on line {line}",
    )


def _unclosed(layout: Layout, offset: int) -> Mistake:
    """A text without its closing quotes is noticed far behind; the opening ones are the place."""
    start = offset if layout.stopped_at is None else layout.stopped_at
    return Mistake(
        offset=start,
        found="text whose quotes are never closed",
        expected="closing quotes like the opening ones",
        hint="text over several lines needs three quotes on each side",
    )


def _expected(message: str) -> str:
    if message.startswith(("Illegal character", "Found invalid character")):
        return "no control characters"
    return f"valid TOML ({message.lower()})"


def _found(text: str, offset: int) -> str:
    if offset >= len(text.rstrip()):
        return "the end of the file"
    if text[offset] == "\n":
        return "the end of the line"
    word = _WORD.match(text, offset)
    return wording.quoted(word[0] if word else text[offset])


def _value_hint(text: str, offset: int) -> str:
    word = _WORD.match(text, offset)
    if not word:
        return ""
    if word[0].lower() in {"true", "false"}:
        return f"write {word[0].lower()}"
    if word[0].lower() in {"none", "null", "nil"}:
        return "TOML has no empty value; leave the key out"
    if word[0][0].isalpha() or word[0][0] in "/._@*$":
        return f"text needs quotes: {wording.quoted(word[0])}"
    return ""


def _equals_hint(text: str, offset: int) -> str:
    return "TOML writes '=', not ':'" if text.startswith(":", offset) else ""


def _escape_hint(_text: str, _offset: int) -> str:
    return "write the text in single quotes, or every backslash twice"


def _line_hint(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    is_number = re.search(r"=\s*[+-]?0\d*$", text[start:offset])
    return "numbers have no leading zeros" if is_number else ""


_HINTS: Final = {
    "Invalid value": _value_hint,
    "Expected '=' after a key in a key/value pair": _equals_hint,
    "Unescaped '\\' in a string": _escape_hint,
    "Expected newline or end of document after a statement": _line_hint,
}
