"""Tell everybody who watches what happens, as soon as it is stored.

One task asks the store whether anything changed (microseconds), reads it once for all, and renders
it once. A watcher has a place in the global order of events and nothing else, so that it can leave,
come back to this process or to the next one, and go on exactly where it was.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final, Protocol

import structlog

from anubis.domain.errors import RunNotFound, TemporaryError, TooMuch
from anubis.domain.run import Run, RunId
from anubis.ports.clock import Clock
from anubis.ports.event_bus import EventBus
from anubis.ports.run_store import RunStore
from anubis.runtime.channels import Feed, Reason, RunChannel, ends

MOST_WATCHERS: Final = 5_000
"""Each holds a connection; five times of what the service is built for."""

QUICK, CALM, SLOW = 0.005, 0.05, 0.1
"""Seconds between questions to the store: while things happen, soon after, and when all is quiet.
Short runs end within milliseconds, and who follows one should not wait longer than it took."""

QUICK_FOR, CALM_FOR = 1.0, 10.0
"""Seconds after the last event, submission or new watcher."""

RUN_EVERY = 0.25
"""Seconds between two looks at one run, unless it ended: people do not read faster."""

MOST_LOOKS = 1_000
"""Looks at runs in a second, in all. With more runs watched, each is looked at less often."""

RETRY_AFTER = 1.0
"""Seconds, when the store did not answer."""

REST = 60.0
"""Seconds; while nobody watches, nothing is asked."""


class Watch(Protocol):
    """One watcher's place in a stream."""

    async def next(self) -> bytes | None:
        """The next frames, as soon as there are any; None at the end.

        Canceling it loses nothing: the next call gives the same.
        """
        ...


class Broadcaster:
    """Reads the store for all watchers. ``run`` is its task; ``close`` ends all streams."""

    def __init__(
        self,
        store: RunStore,
        clock: Clock,
        bus: EventBus,
        *,
        most: int = MOST_WATCHERS,
        most_each: int | None = None,
        reason: Reason | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._bus = bus
        self._most = most
        self._most_each = most if most_each is None else most_each
        self._reason = reason or _no_reason
        self._feed = Feed(store)
        self._runs: dict[RunId, RunChannel] = {}
        self._watchers = 0
        self._users: collections.Counter[str] = collections.Counter()  # watchers of each user
        self._token: int | None = None
        self._active_at = clock.monotonic()
        self._is_closed = False
        self._log = structlog.get_logger("anubis.runtime")

    @property
    def watchers(self) -> int:
        """How many watch now."""
        return self._watchers

    def wake(self) -> None:
        """Say that something was or will be stored soon: look at once, and often for a while."""
        self._active_at = self._clock.monotonic()
        self._bus.wake()

    def close(self) -> None:
        """End all streams; their clients come back to the next service."""
        self._is_closed = True
        self._feed.signal.fire()
        for channel in self._runs.values():
            channel.signal.fire()
        self._bus.wake()

    async def run(self) -> None:
        """Look for as long as this runs."""
        try:
            while not self._is_closed:
                await self._bus.wait(await self._pause())
        finally:  # without it streams would look alive and say nothing
            self.close()

    async def turn(self) -> None:
        """Read what is new, once for everybody."""
        token = self._store.change_token()
        if token != self._token:
            await self._read()
            self._token = token
        await self._look_at_runs()

    @contextlib.asynccontextmanager
    async def everything(self, after: int | None, user: str = "") -> AsyncIterator[Watch]:
        """Watch all runs: what happens after a sequence, or from now on.

        Raises TooMuch if there are too many watchers, in all or of this user.
        """
        with self._counted(user):
            last = await self._store.last_sequence()
            # A place that was never reached is one of another store: what comes now is new.
            yield _FeedWatch(self, self._feed, last if after is None else min(after, last))

    @contextlib.asynccontextmanager
    async def one(self, run_id: RunId, after: int, user: str = "") -> AsyncIterator[Watch]:
        """Watch one run: what it is now, its events after a sequence, and what comes.

        Raises RunNotFound, or TooMuch if there are too many watchers, in all or of this user.
        """
        with self._counted(user), self._channel(run_id) as channel:
            await channel.look()
            yield _RunWatch(self, channel, after)

    @property
    def is_closed(self) -> bool:
        """Whether all streams must end."""
        return self._is_closed

    @contextlib.contextmanager
    def _counted(self, user: str) -> Iterator[None]:
        if self._is_closed:
            raise TemporaryError("the service is stopping: come back in a moment")
        self._must_have_room(user)
        self._watchers += 1
        self._users[user] += 1
        self.wake()
        try:
            yield
        finally:
            self._watchers -= 1
            self._users[user] -= 1
            if not self._users[user]:
                del self._users[user]

    def _must_have_room(self, user: str) -> None:
        if self._watchers >= self._most:
            text = f"{self._watchers} streams are open, and no more than {self._most} are served"
            raise TooMuch(text, retry_after=RETRY_AFTER)
        if self._users[user] >= self._most_each:
            text = (
                f"{user} has {self._users[user]} streams open, and one user may have no more than "
                f"{self._most_each}: half of max_streams (ANUBIS_MAX_STREAMS)"
            )
            raise TooMuch(text, retry_after=RETRY_AFTER)

    @contextlib.contextmanager
    def _channel(self, run_id: RunId) -> Iterator[RunChannel]:
        channel = self._runs.get(run_id)
        if channel is None:
            channel = RunChannel(run_id, self._store, self._clock, self._reason)
            self._runs[run_id] = channel
        channel.watchers += 1
        try:
            yield channel
        finally:
            channel.watchers -= 1
            if not channel.watchers:
                del self._runs[run_id]

    async def _pause(self) -> float:
        """Take a turn if anybody watches; gives the seconds until the next one."""
        if not self._watchers:
            return REST
        try:
            await self.turn()
        except TemporaryError as error:
            self._log.warning("watching_failed", error=str(error))
            self._token = None
            return RETRY_AFTER
        return self._rhythm()

    async def _read(self) -> None:
        now = self._clock.monotonic()
        rhythm = max(RUN_EVERY, len(self._runs) / MOST_LOOKS)
        for watched in self._runs.values():  # what they measure comes without an event
            watched.look_by(max(now, watched.looked_at + rhythm))
        for event in await self._feed.read():
            self._active_at = now
            if channel := self._runs.get(event.run_id):
                channel.look_by(now if ends(event) else max(now, channel.looked_at + RUN_EVERY))

    async def _look_at_runs(self) -> None:
        now = self._clock.monotonic()
        due = [one for one in self._runs.values() if one.due is not None and one.due <= now]
        for channel in due:
            with contextlib.suppress(RunNotFound):  # its watchers have been told
                await channel.look()

    def _rhythm(self) -> float:
        now = self._clock.monotonic()
        quiet = now - self._active_at
        pause = QUICK if quiet < QUICK_FOR else CALM if quiet < CALM_FOR else SLOW
        due = [one.due - now for one in self._runs.values() if one.due is not None]
        return max(0.0, min([pause, *due]))


class _FeedWatch:
    """A place in the feed of all runs."""

    def __init__(self, owner: Broadcaster, feed: Feed, after: int) -> None:
        self._owner = owner
        self._feed = feed
        self._seen = after

    async def next(self) -> bytes | None:
        """The frames of the next events."""
        while not self._owner.is_closed:
            news = self._feed.signal.next
            before = self._seen
            text, seen = await self._feed.after(before)
            self._seen = seen
            if text:
                return text
            if seen == before:
                await news.wait()
        return None


class _RunWatch:
    """A place in the story of one run."""

    def __init__(self, owner: Broadcaster, channel: RunChannel, after: int) -> None:
        self._owner = owner
        self._channel = channel
        self._seen = after
        self._run = b""
        self._metrics = b""
        self._is_over = False

    async def next(self) -> bytes | None:
        """The next frames: first what the run is, then what happened, then what changed."""
        while not (self._is_over or self._owner.is_closed):
            news = self._channel.signal.next
            if text := self._new():
                return text
            if self._channel.is_gone:
                return None
            await news.wait()
        return None

    def _new(self) -> bytes:
        """What this watcher has not seen. At first what is comes first; later, what happened."""
        channel = self._channel
        is_first = not self._run
        present = b""
        if self._run is not channel.run:
            present += channel.run
        if self._metrics is not channel.metrics:
            present += channel.metrics
        self._run, self._metrics = channel.run, channel.metrics
        events, self._seen = channel.events.after(self._seen)
        text = present + events if is_first else events + present
        if channel.end is not None and not channel.events.after(self._seen)[0]:
            text += channel.end
            self._is_over = True
        return text


async def _no_reason(_: Run) -> str:
    return ""
