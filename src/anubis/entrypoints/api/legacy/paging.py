"""How a client continues where it stopped: keys that sort, and ``since``.

The key of a message is its time in milliseconds, a colon and its id, and keys are compared as text.
Whoever gives the key of the last message they saw gets what comes strictly after it; a bare time is
a prefix of all keys of its millisecond and sorts before them.
"""

from __future__ import annotations

import dataclasses
import itertools
import string
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from anubis.entrypoints.api.legacy.telling import Line

MOST: Final = 100
"""Messages, or jobs, in one answer."""

_NAMESPACE: Final = uuid.UUID("5ad38f3c-2a0c-5d52-9f4a-6cf1c0a5a8d1")
"""Of the ids we make for messages. Any other would do, but it must stay the same."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = 13
"""Of a time in milliseconds, from 2001 to 2286."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """A message with the place it has among those of its action."""

    line: Line
    message_id: str
    tstamp: int

    @property
    def key(self) -> str:
        """What a client gives as ``since`` to get what follows."""
        return f"{self.tstamp}:{self.message_id}"


def milliseconds(at: datetime) -> int:
    """Since 1970, as the original counts time."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


def message_id(action_id: str, mark: str) -> str:
    """The same for the same message, whenever and wherever it is told."""
    return str(uuid.uuid5(_NAMESPACE, f"{action_id}/{mark}"))


def placed(action_id: str, lines: Iterable[Line]) -> list[Placed]:
    """Give each line its place. Later lines have later times, by a millisecond at least: the order
    of keys is then that of the story, whatever ids chance gave them and whoever set the clock.
    """
    found = list[Placed]()
    last = 0
    for line in lines:
        last = max(milliseconds(line.at), last + 1)
        name = message_id(action_id, line.mark)
        found.append(Placed(line=line, message_id=name, tstamp=last))
    return found


def page(messages: Sequence[Placed], since: str) -> Sequence[Placed]:
    """The messages after ``since``, as many as one answer takes."""
    start = unquoted(since)
    following = itertools.dropwhile(lambda message: message.key <= start, messages)
    return tuple(itertools.islice(following, MOST))


def after(since: str) -> tuple[int, str]:
    """The same for keys ``<time>:<action id>``, as a pair that sorts alike.

    A text that is no key has a place among them too: the one it has in the dictionary.
    """
    text = unquoted(since)
    rest = text[:_DIGITS].lstrip(string.digits) + text[_DIGITS:]
    digits = text.removesuffix(rest)
    if len(digits) == _DIGITS and rest.startswith(":"):
        return int(digits), rest[1:]
    # What follows in the place of a digit, or of the colon, sorts before or after all of them.
    last = "9" if len(digits) < _DIGITS else ":"
    if rest[:1] > last:
        return int(digits.ljust(_DIGITS, "9")) + 1, ""
    return int(digits.ljust(_DIGITS, "0")), ""


def unquoted(since: str) -> str:
    """The client writes its place down with quotes around the id; its shell takes them off."""
    return since.replace('"', "")
