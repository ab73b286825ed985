"""How found values, fields and near misses are put into words."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Final

from anubis.stages.descriptor.layout import Path

MAX_SHOWN: Final = 60
"""Characters of a value that are shown; a message should fit on a line."""

_CLOSE_ENOUGH: Final = 0.6
"""Similarity from which a spelling is suggested; difflib's own habit."""


def quoted(text: str) -> str:
    """The text in quotes, cut if long, without anything that could disturb a terminal."""
    shown = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in json.dumps(shown, ensure_ascii=False)
    )


def described(value: object) -> str:
    """What a user wrote, in words: kind and value."""
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int):
        # Python refuses to print numbers of more than 4,300 digits, which hex notation allows.
        return "a huge number" if value.bit_length() > 200 else f"the number {value}"
    if isinstance(value, float):
        return f"the number {value}"
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else f"the date or time {value}"


def dotted(path: Path) -> str:
    """A path as users write it: ``data.sources[0].src``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if _is_bare(part) else quoted(part))
    return text


def listed(names: Iterable[str]) -> str:
    """Names in quotes, the last after "or"."""
    *most, last = (quoted(name) for name in names)
    return f"{', '.join(most)} or {last}" if most else last


def nearest(name: str, candidates: Sequence[str]) -> str:
    """The candidate a user probably meant, or nothing."""
    if len(name) > MAX_SHOWN:
        return ""
    folded = {candidate.lower().replace("-", "_"): candidate for candidate in candidates}
    wanted = name.lower().replace("-", "_")
    close = difflib.get_close_matches(wanted, folded, n=1, cutoff=_CLOSE_ENOUGH)
    return folded[close[0]] if close else ""


def did_you_mean(name: str, candidates: Sequence[str]) -> str:
    """A hint with the nearest candidate, or nothing."""
    near = nearest(name, candidates)
    return f"did you mean '{near}'?" if near else ""


def _is_bare(part: str) -> bool:
    return part.isascii() and part.replace("-", "a").replace("_", "a").isalnum()
