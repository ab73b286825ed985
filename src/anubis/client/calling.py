"""One question to a service, and its answer, as values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from anubis.domain.errors import AnubisError, UnexpectedAnswer

Query = Sequence[tuple[str, str]]
"""Names and values, in order; a name may come again."""

JSON = "application/json"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A request below ``/api/v1``."""

    method: str = "GET"
    path: str  #: percent-encoded
    query: Query = ()
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    content: bytes = b""
    parts: AsyncIterable[bytes] | None = None
    """A body that is too large to be held at once; begins anew for each attempt."""
    is_repeatable: bool = True  #: asking twice is as good as asking once
    done_if: type[AnubisError] | None = None
    """The error that tells a second attempt that the first one, unanswered, did the work."""
    tells: Collection[int] = ()  #: statuses of 400 or more that are answers here, and no refusals
    takes: timedelta | None = None  #: how long its answer may take; None: as usual


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A good answer."""

    status: int  #: 204 also for what an unanswered attempt had done already
    content: bytes

    def json(self) -> object:
        """What it says. Raises UnexpectedAnswer."""
        return decoded(self.content)


def decoded(content: bytes | str) -> object:
    """The JSON in an answer. Raises UnexpectedAnswer."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnexpectedAnswer(
            f"the service answered something unexpected: no JSON ({error}); is this Anubis?"
        ) from error


def post(path: str, body: Mapping[str, Any] | None = None, *, is_repeatable: bool = False) -> Call:
    """A POST with a JSON body, of those values that are not None."""
    given = {name: value for name, value in (body or {}).items() if value is not None}
    return Call(
        method="POST",
        path=path,
        headers={"Content-Type": JSON},
        content=json.dumps(given).encode(),
        is_repeatable=is_repeatable,
    )


def query(**values: object) -> list[tuple[str, str]]:
    """Those values that are not None, as text."""
    return [(name, plain(str(value))) for name, value in values.items() if value is not None]


def segment(text: str) -> str:
    """One part of a path: whatever is in it stays one part."""
    quoted = quote(plain(text), safe="")
    # Alone, dots would mean this folder or the one above, and are not changed by quoting.
    return quoted.replace(".", "%2E") if set(quoted) == {"."} else quoted


def plain(text: str) -> str:
    """Text that can be sent: names of files may hold what is no character."""
    return text.encode("utf-8", "replace").decode()
