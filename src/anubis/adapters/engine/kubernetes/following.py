"""One watch for all runs: what the cluster has of a kind, kept up to date, and who waits for what.

A watch begins with a list, and goes on from its moment with the changes as they come. It ends by
itself every few minutes and goes on where it was; where the cluster has forgotten that moment, or
refuses it, we list again and find out what has changed meanwhile. While the cluster is away we ask
with growing pauses. A change costs the same however many runs there are.

It is there only while somebody listens: an idle installation holds no watch.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import structlog

from anubis.adapters.engine.kubernetes import refusals
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.kinds import Found, Kind, Listing
from anubis.adapters.engine.kubernetes.naming import RUN
from anubis.adapters.engine.kubernetes.refusals import Expired
from anubis.adapters.engine.kubernetes.trimming import trimmed
from anubis.domain.errors import EngineUnavailable

WATCH_SECONDS = 300
"""How long the server keeps one watch, give or take a fifth: many of them must not end at once."""

PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 10.0
"""Between tries while the cluster is away."""

IDLE_SECONDS = 60.0
"""How long a watch is kept that nobody listens to: the next run is often near."""

SHORT_SECONDS = 1.0
"""A watch that ends sooner, without a word, is one that a proxy or a server in trouble cut."""

SILENCE_SECONDS = 120.0
"""The server says about once a minute that nothing has happened. One that never did, in a watch of
this length, may have been restored from a copy, and waits for the moment from which we go on to
come again: then we list.
"""

PATIENCE = 3
"""After so many failures in a row we do not go on from where we were, but list: it may be the
moment that the cluster has trouble with.
"""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rhythm:
    """How often what is done. Tests are quicker."""

    watch: float = WATCH_SECONDS
    pause: float = PAUSE_SECONDS
    longest_pause: float = LONGEST_PAUSE_SECONDS
    idle: float = IDLE_SECONDS
    short: float = SHORT_SECONDS
    silence: float = SILENCE_SECONDS

    def pause_after(self, failures: int) -> float:
        """Twice as long after each, and never the same for all who wait."""
        longest = min(self.longest_pause, self.pause * 2.0 ** min(failures - 1, 20))
        return longest * random.uniform(0.5, 1)  # noqa: S311  not for secrets


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """What the watch knows about one run."""

    objects: Sequence[Found]  #: which are there
    gone: Sequence[Found]
    """Which were there and are deleted, as they were last. Only while the run is listened to."""


class Subscription:
    """Wakes whoever waits for changes of one run. Close it, or use it with ``with``."""

    def __init__(
        self, leave: Callable[[Subscription], None], changed: asyncio.Event | None = None
    ) -> None:
        self._leave = leave
        self._changed = changed or asyncio.Event()

    async def changed(self, timeout: float | None = None) -> bool:
        """Wait until something has changed since the last call. False: nothing in that time."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def wake(self) -> None:
        """Something has changed."""
        self._changed.set()

    def close(self) -> None:
        """Wait no more."""
        self._leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Watch:
    """What a cluster has of one kind with these labels, by the run in the label ``key``.

    What is not in ``state`` is not deleted for that: it may not have come yet. It is deleted if it
    is in ``gone``, or if ``listed_at`` is later than the moment at which it was surely there.
    """

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind,
        selector: str,
        *,
        key: str = RUN,
        rhythm: Rhythm | None = None,
    ) -> None:
        self._cluster = cluster
        self._kind = kind
        self._selector = selector
        self._key = key
        self._rhythm = rhythm or Rhythm()
        self._log = structlog.get_logger("anubis.kubernetes")
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._objects: dict[str, dict[str, Found]] = {}  #: by run, by uid
        self._gone: dict[str, dict[str, Found]] = {}
        self._version = ""  #: the moment up to which we know everything; empty: list first
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._contact = 0.0
        self._failures = 0
        self.synced = asyncio.Event()  #: set once everything is known that was there at first
        self.listed_at: float | None = None
        """When the last whole list was asked for, on the monotonic clock; None: there was none."""

        self.trouble = ""  #: why the cluster cannot be followed at the moment, for people

    @property
    def age(self) -> float:
        """Seconds since the cluster last said anything; it does so about once a minute."""
        return time.monotonic() - self._contact if self._contact else float("inf")

    @property
    def is_fresh(self) -> bool:
        """Whether what we know is what there is, but for the moment that news takes to come."""
        return self.synced.is_set() and not self.trouble

    def subscribe(self, run: str, changed: asyncio.Event | None = None) -> Subscription:
        """Listen to one run. It wakes at once if something is known already. Begins the watch if
        there is none. ``changed``: what to set, for those who listen to several watches.
        """
        subscription = Subscription(lambda leaving: self._leave(run, leaving), changed)
        self._subscriptions.setdefault(run, set()).add(subscription)
        if run in self._objects:
            subscription.wake()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._task is None:
            self._task = asyncio.create_task(self._follow(), name=f"watch {self._kind.plural}")
        return subscription

    def state(self, run: str) -> State:
        """What is known about a run now."""
        return State(
            objects=tuple(self._objects.get(run, {}).values()),
            gone=tuple(self._gone.get(run, {}).values()),
        )

    def runs(self) -> frozenset[str]:
        """Those of which there is something, as far as is known; none while nobody listens."""
        return frozenset(self._objects)

    async def close(self) -> None:
        """End the watch, and forget."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        task = self._forget()
        if task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _leave(self, run: str, subscription: Subscription) -> None:
        listening = self._subscriptions.get(run, set())
        listening.discard(subscription)
        if not listening:
            self._subscriptions.pop(run, None)
            self._gone.pop(run, None)
        if not self._subscriptions and self._idle is None and self._task is not None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._rhythm.idle, self._end_idle)

    def _end_idle(self) -> None:
        self._idle = None
        if not self._subscriptions:
            self._forget()

    def _forget(self) -> asyncio.Task[None] | None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        self.synced.clear()
        self.listed_at = None
        self._version, self._contact, self._failures, self.trouble = "", 0.0, 0, ""
        self._objects.clear()
        self._gone.clear()
        return task

    async def _follow(self) -> None:
        """Until it is canceled: list where that is needed, then watch; pause after failures."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Expired:
                self._version = ""
                self._failed("", "")
            except EngineUnavailable as error:
                self._failed("watch_failed", str(error))
            # Whatever it is, a watch that is gone without a word would let all runs wait for ever.
            except Exception:  # noqa: BLE001
                self._log.exception("watch_defect", kind=self._kind.kind)
                self._version = ""
                self._failed("watch_defect", "a defect, see the log")
            if self._failures:
                await asyncio.sleep(self._rhythm.pause_after(self._failures))

    def _failed(self, event: str, why: str) -> None:
        self._failures += 1
        if self._failures >= PATIENCE:
            self._version = ""
        if why and not self.trouble:  # once for each time that it is away, not for each try
            self._log.warning(event, kind=self._kind.kind, why=why)
        self.trouble = why or self.trouble

    async def _list(self) -> None:
        asked_at = time.monotonic()
        listing = await self._cluster.list(self._kind, self._selector)
        self._contact = time.monotonic()
        self._take(listing)
        self.listed_at = asked_at
        self._version = listing.version
        if not self.synced.is_set():
            self.synced.set()
            for run in self._subscriptions:
                self._wake(run)

    def _take(self, listing: Listing) -> None:
        """Find out what has changed since we knew everything last."""
        missing = {uid: run for run, known in self._objects.items() for uid in known}
        for found in listing.items:
            uid = str(found["metadata"]["uid"])
            run = missing.pop(uid, None)
            if run is None or _version(self._objects[run][uid]) != _version(found):
                self._changed(found)
        for uid, run in missing.items():
            self._deleted(run, self._objects[run][uid])

    async def _watch(self) -> None:
        """Take changes as they come, until the server ends the watch."""
        began = time.monotonic()
        seconds = max(1, int(self._rhythm.watch * random.uniform(0.8, 1.2)))  # noqa: S311
        heard = False
        async with self._cluster.watching(
            self._kind, self._selector, self._version, seconds
        ) as changes:
            self.trouble = ""
            async for change in changes:
                self._contact = time.monotonic()
                self._hear(change)
                heard, self._failures = True, 0
        lasted = time.monotonic() - began
        if not heard and lasted < self._rhythm.short:
            raise EngineUnavailable(f"{self._cluster.words} ends watches at once")
        if not heard and lasted > self._rhythm.silence:
            self._version = ""
        self._failures = 0

    def _hear(self, change: Found) -> None:
        found = change["object"]
        match change["type"]:
            case "ADDED" | "MODIFIED":
                self._changed(found)
            case "DELETED":
                self._deleted(self._run_of(found), found)
            case "ERROR":
                raise self._error(found)
        self._version = _version(found)  # also of a bookmark, which is nothing else

    def _error(self, status: Found) -> EngineUnavailable:
        error = refusals.refusal(int(status.get("code") or 500), status, self._cluster.words)
        self._version = ""  # whatever it is, we cannot go on from here
        return error

    def _changed(self, found: Found) -> None:
        run = self._run_of(found)
        if not run:
            return
        self._objects.setdefault(run, {})[str(found["metadata"]["uid"])] = trimmed(found)
        self._wake(run)

    def _deleted(self, run: str, found: Found) -> None:
        uid = str(found["metadata"]["uid"])
        known = self._objects.get(run, {})
        known.pop(uid, None)
        if not known:
            self._objects.pop(run, None)
        if run in self._subscriptions:
            self._gone.setdefault(run, {})[uid] = trimmed(found)
            self._wake(run)

    def _wake(self, run: str) -> None:
        for subscription in self._subscriptions.get(run, ()):
            subscription.wake()

    def _run_of(self, found: Found) -> str:
        return str((found["metadata"].get("labels") or {}).get(self._key) or "")


def _version(found: Found) -> str:
    return str(found["metadata"]["resourceVersion"])
