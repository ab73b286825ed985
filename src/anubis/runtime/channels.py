"""What watchers watch: the feed of all runs, and single runs. Each is read once for everybody.

A channel keeps the frames of what it has read. Watchers keep only their place in it, so a slow one
costs no memory: it gets what it missed from the channel, or from the store when the channel has let
go of it. Sequences decide what is new to whom; nothing is sent twice and nothing is left out.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Awaitable, Callable, Sequence

from anubis.domain.errors import RunNotFound
from anubis.domain.event import Event
from anubis.domain.run import TERMINAL, Run, RunId
from anubis.ports.clock import Clock
from anubis.ports.run_store import RunStore
from anubis.stages.presentation import frames, shapes

KEPT = 2_000
"""Events that the feed keeps at least: a megabyte, and enough for everybody who comes back after
the service was restarted."""

PAGE = 500
"""Events that are read at once, for everybody: a few milliseconds of the event loop."""

SENT = 100
"""Events that a watcher is sent at once: what a slow one keeps in the memory of its connection."""

EXPLAIN_EVERY = 3.0
"""Seconds between two questions why a run waits to which nothing happened: among a thousand runs
the answer takes a millisecond, and hundreds may be watched."""

Reason = Callable[[Run], Awaitable[str]]
"""Why a run that has not started waits, for people; empty for others."""


class Signal:
    """Wakes all who wait for it. Take ``next`` before looking, and wait on it after."""

    def __init__(self) -> None:
        self.next = asyncio.Event()

    def fire(self) -> None:
        """Wake those who wait now."""
        fired, self.next = self.next, asyncio.Event()
        fired.set()


class Rendered:
    """Frames of events by sequence, in order."""

    def __init__(self) -> None:
        self._sequences: list[int] = []
        self._frames: list[bytes] = []
        self._asked = (-1, -1)
        self._answer = (b"", -1)

    def append(self, events: Sequence[Event]) -> None:
        """Add events that come after all that are here."""
        self._sequences += [event.sequence for event in events]
        self._frames += [frames.event_frame(event) for event in events]

    def keep_last(self, count: int) -> int:
        """Let go of all but the last ones; gives the sequence of the last one let go."""
        gone = self._sequences[-count - 1]
        del self._sequences[:-count], self._frames[:-count]
        return gone

    def after(self, sequence: int) -> tuple[bytes, int]:
        """The frames after a sequence, not too many, and the sequence of their last."""
        end = self._sequences[-1] if self._sequences else -1
        if sequence >= end:
            return b"", sequence
        if self._asked != (sequence, end):  # a thousand watchers ask the same, one by one
            start = bisect.bisect_right(self._sequences, sequence)
            some = slice(start, start + SENT)
            self._asked = (sequence, end)
            self._answer = b"".join(self._frames[some]), self._sequences[some][-1]
        return self._answer

    def __len__(self) -> int:
        return len(self._sequences)


class Feed:
    """The events of all runs. Used by one reader; watched by many."""

    def __init__(self, store: RunStore) -> None:
        self.signal = Signal()
        self._store = store
        self._recent = Rendered()
        self._floor: int | None = None  #: all stored after it and up to the head is here
        self._head = 0

    async def read(self) -> Sequence[Event]:
        """Take over what is new in the store. After a long break, only the last of it."""
        last = await self._store.last_sequence()
        if self._floor is None or last - self._head > KEPT:
            self._recent = Rendered()
            self._floor = self._head = max(0, last - KEPT)
        found: list[Event] = []
        while events := await self._store.feed(after=self._head, limit=PAGE):
            self._take(events)
            found += events
            if len(events) < PAGE:
                break
            await asyncio.sleep(0)  # let the watchers send meanwhile
        return found

    def _take(self, events: Sequence[Event]) -> None:
        self._recent.append(events)
        self._head = events[-1].sequence
        if len(self._recent) > 2 * KEPT:
            self._floor = self._recent.keep_last(KEPT)
        self.signal.fire()

    async def after(self, sequence: int) -> tuple[bytes, int]:
        """Frames after a sequence, if there are any, and how far a watcher has seen with them."""
        if self._floor is not None and sequence >= self._floor:
            return self._recent.after(sequence)
        head = self._head
        events = await self._store.feed(after=sequence, limit=SENT)
        if not events:  # what there was up to the head has been purged
            return b"", max(sequence, head)
        return b"".join(map(frames.event_frame, events)), events[-1].sequence


class RunChannel:
    """One run: its events, what it is now, and what it has measured."""

    def __init__(self, run_id: RunId, store: RunStore, clock: Clock, reason: Reason) -> None:
        self.signal = Signal()
        self.events = Rendered()
        self.run = b""
        self.metrics = b""
        self.end: bytes | None = None  #: once the run has ended
        self.is_gone = False  #: it was purged
        self.due: float | None = None  #: when to look again
        self.looked_at = float("-inf")
        self.watchers = 0
        self._run_id = run_id
        self._store = store
        self._clock = clock
        self._reason = reason
        self._seen: tuple[int, str] = (0, "")
        self._explain_at = float("-inf")  #: when to ask again why it waits
        self._last_number = 0

    def look_by(self, moment: float) -> None:
        """Look again at this moment at the latest."""
        self.due = moment if self.due is None else min(self.due, moment)

    async def look(self) -> None:
        """Read what is new. Several may do so at once. Raises RunNotFound."""
        self.due, self.looked_at = None, self._clock.monotonic()
        try:
            # The run first: what is read after it is at least as new, and complete if it ended.
            run = await self._store.get(self._run_id)
            if run.version == self._seen[0] and self.looked_at < self._explain_at:
                self.look_by(self._explain_at)
                return
            self._explain_at = self.looked_at + EXPLAIN_EVERY
            reason = "" if run.state.is_terminal else await self._reason(run)
            if run.version < self._seen[0] or (run.version, reason) == self._seen:
                return
            await self._read_events()
            metrics = frames.metrics_frame(await self._store.summaries(self._run_id))
        except RunNotFound:
            self.is_gone = True
            self.signal.fire()
            raise
        self._show(run, reason, metrics)

    def _show(self, run: Run, reason: str, metrics: bytes) -> None:
        if run.version < self._seen[0]:
            return
        self._seen = (run.version, reason)
        shape = shapes.run_shape(run, self._clock.now(), reason)
        self.run = frames.run_frame(shape)
        if metrics != self.metrics:
            self.metrics = metrics
        if run.state.is_terminal:
            self.end = frames.end_frame(shape)
        self.signal.fire()

    async def _read_events(self) -> None:
        while True:
            events = await self._store.events(self._run_id, after=self._last_number, limit=PAGE)
            new = [event for event in events if event.number > self._last_number]
            if new:
                self._last_number = new[-1].number
                self.events.append(new)
            if len(events) < PAGE:
                return


def ends(event: Event) -> bool:
    """Whether a run has ended with this."""
    return event.data.get("to") in TERMINAL
