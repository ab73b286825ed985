"""Replace paths in texts of the user by where things really are.

A program that is no container has no files of its own: what the descriptor calls ``/data`` lies
elsewhere on the machine, and its command must say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PART: Final = r"[\w.~+@%-]"  # of the name of a file, besides slashes
_BEFORE: Final = rf"(?:(?<!{_PART})(?<!/)|(?<=file://))"
_AFTER: Final = rf"(?!{_PART})"


def replaced(text: str, real: Mapping[str, str]) -> str:
    """The text with every whole path that the table knows replaced: ``/data/x``, not ``/data2``."""
    if not real:
        return text
    longest = sorted(real, key=len, reverse=True)
    pattern = f"{_BEFORE}({'|'.join(map(re.escape, longest))}){_AFTER}"
    return re.sub(pattern, lambda match: real[match[1]], text)
