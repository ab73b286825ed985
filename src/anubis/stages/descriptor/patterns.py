"""Check the patterns of ``output.metrics``: they must be RE2, with at most one group.

Patterns come from users and run over every line of output, so they run on an engine whose time is
linear whatever the pattern (RE2). It has no look-around and no back references; the hints say what
to write instead.
"""

from __future__ import annotations

from typing import Final

import re2

from anubis.stages.descriptor import wording
from anubis.stages.descriptor.kinds import Scalar, Unacceptable, as_text
from anubis.stages.descriptor.reporting import Place

MAX_LENGTH: Final = 10_000
"""Characters. Longer ones are lists of words, which are better matched in several metrics."""

_EXPLAINED: Final = {
    "missing )": "a '(' is not closed; write '\\(' to match the character itself",
    "unexpected )": "a ')' closes nothing; write '\\)' to match the character itself",
    "missing ]": "a '[' is not closed; write '\\[' to match the character itself",
    "invalid perl operator": (
        "look-ahead, look-behind and comments are not possible in RE2; "
        "match the text around and put the number in a group"
    ),
    "invalid escape sequence": (
        "RE2 does not know this escape, and has no back references; "
        "write '\\\\' to match a backslash"
    ),
    "no argument for repetition operator": (
        "there is nothing to repeat; write a backslash before it to match the character itself"
    ),
    "bad repetition operator": "RE2 has no possessive or doubled repetition; use one of * + ? {n}",
    "invalid repetition size": "RE2 repeats at most 1,000 times in all",
    "invalid character class range": "the range runs backwards or is not known",
    "pattern too large": "it needs too much memory; repeat less often",
}


def _pattern(value: object, _place: Place) -> str:
    text = as_text(value)
    if not text:
        raise Unacceptable(expected="a pattern that is not empty")
    if len(text) > MAX_LENGTH:
        raise Unacceptable(expected=f"a pattern of at most {MAX_LENGTH:,} characters")
    groups = _groups(text)
    if groups > 1:
        raise Unacceptable(
            found=f"a pattern with {groups} groups",
            expected="at most one group, the one that holds the number",
            hint="write (?:...) instead of (...) for the others",
        )
    return text


def _groups(pattern: str) -> int:
    options = re2.Options()
    options.log_errors = False
    try:
        groups: int = re2.compile(pattern, options).groups
    except re2.error as error:
        raise Unacceptable(hint=_explanation(error)) from None
    return groups


def _explanation(error: Exception) -> str:
    detail = error.args[0] if error.args else b""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    cause, _, piece = text.partition(": ")
    near = f" near {wording.quoted(piece)}" if piece else ""
    return f"{cause}{near}: {_EXPLAINED[cause]}" if cause in _EXPLAINED else f"{cause}{near}"


PATTERN: Final = Scalar(
    expected="a regular expression (RE2) with at most one group",
    convert=_pattern,
    schema={"type": "string", "minLength": 1, "maxLength": MAX_LENGTH},
)
