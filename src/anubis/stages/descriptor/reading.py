"""From bytes to plain values, or a problem that says where the text stops being TOML."""

from __future__ import annotations

import re
import tomllib
from typing import Final

from anubis.domain.document import Document
from anubis.domain.errors import DescriptorInvalid
from anubis.domain.problem import Problem
from anubis.stages.descriptor import syntax
from anubis.stages.descriptor.layout import Layout, Lines, Position
from anubis.stages.descriptor.locating import TooMuch, locate

MAX_BYTES: Final = 1024 * 1024
"""A descriptor is written by hand; a megabyte is somebody's data under the wrong name."""

_START: Final = Position(1, 1)
_PLACE: Final = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


def read(document: Document) -> tuple[dict[str, object], Layout]:
    """The values as ``tomllib`` gives them, and where each of them stands.

    Raises DescriptorInvalid with a single problem: after a syntax error nothing can be trusted.
    """
    text = _decode(document)
    try:
        layout = locate(text)
    except TooMuch as error:
        raise _invalid(document, error.position, error.found, error.expected) from None
    try:
        return tomllib.loads(text), layout
    except tomllib.TOMLDecodeError as error:
        raise DescriptorInvalid([_syntax_problem(document, text, layout, error)]) from None
    except (ValueError, RecursionError):
        # The scanner refuses what is known to bring tomllib here; this is for what is not known.
        raise _invalid(document, _START, "a value that cannot be read", "a descriptor") from None


def _decode(document: Document) -> str:
    content = document.content
    if len(content) > MAX_BYTES:
        found = f"a file of {len(content):,} bytes"
        raise _invalid(document, _START, found, f"a descriptor of at most {MAX_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(document, error) from None
    text = text.replace("\r\n", "\n")
    if "\0" in text:
        at = Lines(text).position(text.index("\0"))
        raise _invalid(document, at, "a NUL character", "text", "is this really a TOML file?")
    if not text.strip():
        hint = "'anubis init' writes one to start from"
        raise _invalid(document, _START, "an empty file", "a descriptor", hint)
    return text


def _not_utf8(document: Document, error: UnicodeDecodeError) -> DescriptorInvalid:
    good = document.content[: error.start].decode("utf-8-sig", "replace").replace("\r\n", "\n")
    at = Lines(good).position(len(good))
    is_wide = document.content.startswith((b"\xff\xfe", b"\xfe\xff"))
    hint = "the file looks like UTF-16; " if is_wide else ""
    found = f"the byte 0x{document.content[error.start]:02x}, which is not UTF-8"
    return _invalid(document, at, found, "text in UTF-8", f"{hint}save the file as UTF-8")


def _syntax_problem(
    document: Document, text: str, layout: Layout, error: tomllib.TOMLDecodeError
) -> Problem:
    place = _PLACE.fullmatch(str(error))
    message = place[1] if place else str(error)
    offset = len(text.rstrip())
    if place and place[2]:
        offset = _offset(text, int(place[2]), int(place[3]))
    mistake = syntax.explain(text, layout, message, offset)
    at = layout.lines.position(min(mistake.offset, len(text)))
    return Problem(
        file=document.name,
        line=at.line,
        column=at.column,
        field=mistake.field,
        found=mistake.found,
        expected=mistake.expected,
        hint=mistake.hint,
    )


def _offset(text: str, line: int, column: int) -> int:
    before = text.split("\n")[: line - 1]
    return sum(len(part) + 1 for part in before) + column - 1


def _invalid(
    document: Document, at: Position, found: str, expected: str, hint: str = ""
) -> DescriptorInvalid:
    problem = Problem(
        file=document.name,
        line=at.line,
        column=at.column,
        field="",
        found=found,
        expected=expected,
        hint=hint,
    )
    return DescriptorInvalid([problem])
