"""A line of a run's output, as readers get it."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from anubis.domain.observation import Stream


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """One line. ``text`` ends with a newline unless the program never wrote one there.

    Very long lines come in pieces: a piece without a newline is continued by the next one of
    the same unit and stream. Joining the texts of a stream gives back exactly what was written.
    """

    number: int  #: 1-based over the whole run
    at: datetime
    unit: str
    stream: Stream
    text: bytes
