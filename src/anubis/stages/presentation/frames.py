"""What live streams are made of: frames of server-sent events.

Events carry their global sequence as ``id``; a client that comes back names the last one it saw.
Runs and metrics have no id: they show what is, and the newest one is all that counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from anubis.domain.event import Event
from anubis.domain.metric import Summary
from anubis.stages.presentation import shapes

COMMENT: Final = b":\n\n"
"""Nothing, to keep the connection from looking dead."""


def event_frame(event: Event) -> bytes:
    """Something that happened to a run."""
    return b"id: %d\n%b" % (event.sequence, _frame("event", shapes.event_shape(event)))


def run_frame(run: shapes.RunShape) -> bytes:
    """A run as it is now."""
    return _frame("run", run)


def metrics_frame(summaries: Sequence[Summary]) -> bytes:
    """What the run has measured so far."""
    return _frame("metrics", [shapes.metric_shape(summary) for summary in summaries])


def end_frame(run: shapes.RunShape) -> bytes:
    """The last frame of a run's stream."""
    return _frame("end", run)


def _frame(kind: str, value: object) -> bytes:
    # JSON text never holds a line break, which would end the field.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Texts of users may hold halves of surrogate pairs, which no encoding can carry.
    return f"event: {kind}\ndata: {text}\n\n".encode("utf-8", "replace")
