"""Say no in a way that the original client understands as no.

It takes every answer to a submission in which something looks like an id for a success, whatever
the status; so nothing in a refusal may look like one.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.responses import PlainTextResponse, Response

from anubis.domain.errors import (
    AnubisError,
    NotAllowed,
    TemporaryError,
    TooMuch,
    UserError,
)

DESCRIPTOR: Final = "Could Not Parse Submitted Descriptor: "
COMMAND: Final = "Could Not Parse Submitted Command "

_LIKE_AN_ID: Final = re.compile(r"([a-f0-9-]{8})-(?=([a-f0-9-]{4}-){3}[a-f0-9-]{12})")


def refused(error: AnubisError, opening: str) -> Response:
    """The answer to a message that was not taken."""
    if isinstance(error, TooMuch):
        return _answer(429, f"{opening}{error}")
    if isinstance(error, NotAllowed):
        return _answer(403, f"{opening}{error}")
    if isinstance(error, UserError):
        return _answer(400, f"{opening}{error}")
    return _answer(503 if isinstance(error, TemporaryError) else 500, f"{opening}{error}")


def harmless(text: str) -> str:
    """A text in which nothing looks like an id."""
    while _LIKE_AN_ID.search(text):
        text = _LIKE_AN_ID.sub(r"\1 ", text)
    return text


def _answer(status: int, text: str) -> Response:
    return PlainTextResponse(harmless(text).encode("utf-8", "replace"), status)
