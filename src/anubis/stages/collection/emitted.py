"""Read the JSON lines that ``emit()`` writes: one object a line, metric names to values.

Numbers, numeric text (the original extractor sent all values as text) and booleans (1 and 0,
so that "converged" can be charted) become samples. Everything else is reported.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable

from anubis.stages.collection import number
from anubis.stages.collection.findings import Findings

_OBJECT_LINE = re.compile(rb"^\{[^\n]*\}[ \t\r]*$", re.MULTILINE)


def object_lines(block: bytes) -> list[bytes]:
    """The lines of a block of ordinary output that look like JSON objects."""
    if b"{" not in block:  # by far the most common, and much cheaper than the pattern
        return []
    return _OBJECT_LINE.findall(block)


def read(lines: Iterable[bytes], unit: str, findings: Findings) -> dict[str, list[float]]:
    """The values by metric name, each in order; what is no number goes to ``findings``."""
    values: dict[str, list[float]] = {}
    for line in lines:
        if not line or line.isspace():
            continue
        content = _object(line)
        if content is None:
            findings.emitted_is_malformed(unit, line)
            continue
        for given_name, given in content.items():
            name = given_name.encode("utf-8", "replace").decode()  # no lone surrogates in stores
            value = _value(given)
            if value is None:
                findings.emitted_is_no_number(unit, name, str(given)[:100])
            else:
                values.setdefault(name, []).append(value)
    return values


def _object(line: bytes) -> dict[str, object] | None:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError: a thousand brackets in a row
        return None
    return content if isinstance(content, dict) else None


def _value(given: object) -> float | None:
    if isinstance(given, str):
        return number.number(given)
    if not isinstance(given, int | float):  # bool is an int
        return None
    try:
        value = float(given)
    except OverflowError:  # an integer beyond the range of floats
        return None
    return value if math.isfinite(value) else None
