"""What the name of an image can be, told before a node or a daemon stumbles over it.

The grammar is that of the distribution project, which Docker and the kubelets read names by:
``host:port/path/of/parts:tag@digest``, of which only one part of a path is needed.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 255  #: characters of host and path together

_WORD: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = rf"(?:{_WORD}(?:\.{_WORD})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_NAME: Final = rf"(?P<name>(?:{_HOST}/)?{_PART}(?:/{_PART})*)"
_TAG: Final = r"(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?"
_DIGEST: Final = r"(?:@[a-zA-Z][a-zA-Z0-9]*(?:[+._-][a-zA-Z][a-zA-Z0-9]*)*:[0-9a-fA-F]{32,})?"
_REFERENCE: Final = re.compile(_NAME + _TAG + _DIGEST)


def wrong(image: str) -> str:
    """What is wrong with the name of an image; empty: nothing."""
    found = _REFERENCE.fullmatch(image) if len(image) <= 4 * LONGEST else None
    if found and len(found["name"]) <= LONGEST:
        return ""
    shown = image if len(image) <= 60 else f"{image[:59]}…"
    return (
        f"found {shown!r}, expected the name of an image, such as 'team/train:1' or "
        "'registry.example.com/team/train:1': small letters, digits, and '.', '_' or '-' between"
    )
