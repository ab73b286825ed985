"""Who of several replicas of a service leads: whoever holds a Lease object of the cluster.

The rules are those of Kubernetes' own parts. The holder renews the lease every two seconds, and
believes that it holds it for ten seconds from the beginning of the last renewal that succeeded.
Others take it when they have seen no renewal for fifteen seconds. Both count on their own clocks:
what the lease says about time is for people. Every write names the version that was read, so that
of two that write at once one is refused. So two never both believe that they hold it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import structlog

from anubis.adapters.engine.kubernetes import kinds
from anubis.adapters.engine.kubernetes.cluster import Cluster
from anubis.adapters.engine.kubernetes.kinds import Found
from anubis.adapters.engine.kubernetes.refusals import NotPermitted, Refused
from anubis.domain.errors import EngineUnavailable


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """For how long what holds, in seconds: the figures of Kubernetes' own parts."""

    duration: float = 15.0
    """Without a renewal for so long, another may take it. The object has whole seconds."""

    deadline: float = 10.0
    """Without a success for so long, the holder believes no more. The rest is for clocks that do
    not run alike and for a process that is slow to notice."""

    retry: float = 2.0  #: between renewals, and between attempts to take it

    def __post_init__(self) -> None:
        assert self.retry < self.deadline < self.duration


@dataclasses.dataclass(slots=True)
class _Seen:
    """A lease of somebody else, and since when it is as it is, on our own clock."""

    version: str
    since: float


class Leadership:
    """``async with`` waits until we hold the lease, and gives it back at the end.

    ``identity`` must be another for each process, also for one that replaces another. What is done
    as the leader must end when ``lost`` is set, and ask ``is_held`` before each step that must not
    be done twice. Waiting raises NotPermitted if we may not write leases; a cluster that is away is
    waited for.
    """

    def __init__(
        self, cluster: Cluster, name: str, identity: str, *, terms: Terms | None = None
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._identity = identity
        self._terms = terms or Terms()
        self._log = structlog.get_logger("anubis.kubernetes").bind(lease=name, identity=identity)
        self._lease: Found | None = None  #: as we wrote it last
        self._renewed = 0.0
        self._seen: _Seen | None = None
        self._task: asyncio.Task[None] | None = None
        self._complaint = ""  #: what was logged already
        self.lost = asyncio.Event()  #: set for good once another may hold it
        self.holder = ""  #: who holds it, as far as we saw

    @property
    def is_held(self) -> bool:
        """Whether nobody else can hold it at this moment."""
        if self._lease is None or self.lost.is_set():
            return False
        return _now() < self._renewed + self._terms.deadline

    async def __aenter__(self) -> Self:
        while not await self._attempt():  # noqa: ASYNC110  the cluster is asked, nobody tells us
            await asyncio.sleep(self._terms.retry * random.uniform(0.8, 1.2))  # noqa: S311
        self._log.info("lease_held")
        self._task = asyncio.create_task(self._keep(), name=f"lease {self._name}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        was_held = self.is_held
        self.lost.set()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if was_held:
            await self._give_back()

    async def _attempt(self) -> bool:
        """Try once to take it."""
        began = _now()
        try:
            found = await self._cluster.get(kinds.LEASE, self._name)
            if found is None:
                written = await self._cluster.create(self._manifest(None))
            elif self._may_take(found):
                written = await self._cluster.replace(self._manifest(found))
            else:
                return False
        except NotPermitted:
            raise
        except Refused as error:
            if error.status not in (404, 409):  # another was quicker
                raise
            return False
        except EngineUnavailable as error:
            self._complain("lease_unknown", str(error))
            return False
        self._take(written, began)
        return True

    def _may_take(self, found: Found) -> bool:
        """Whether it is free, ours, or was not renewed for as long as its holder may be silent."""
        spec = found.get("spec") or {}
        self.holder = str(spec.get("holderIdentity") or "")
        if self.holder in ("", self._identity):
            return True
        version = str(found["metadata"]["resourceVersion"])
        if self._seen is None or self._seen.version != version:
            self._seen = _Seen(version=version, since=_now())
        patience = float(spec.get("leaseDurationSeconds") or self._terms.duration)
        return _now() - self._seen.since > max(patience, self._terms.duration)

    def _take(self, written: Found, began: float) -> None:
        self._lease, self._renewed, self.holder = written, began, self._identity
        self._complaint = ""

    async def _keep(self) -> None:
        """Renew until that is over."""
        try:
            while await self._renewed_in_time():  # noqa: ASYNC110  as above
                await asyncio.sleep(self._terms.retry)
        finally:
            self.lost.set()

    async def _renewed_in_time(self) -> bool:
        """Try until it is renewed. False: another has it, or may have it soon."""
        while (left := self._renewed + self._terms.deadline - _now()) > 0:
            try:
                async with asyncio.timeout(left):
                    if (ours := await self._renew()) is not None:
                        return ours
            except (TimeoutError, EngineUnavailable) as error:
                self._complain("lease_not_renewed", str(error) or "too slow")
            await asyncio.sleep(min(self._terms.retry, max(0.0, left)) / 2)
        self._log.warning("lease_lost", why="it could not be renewed in time")
        return False

    async def _renew(self) -> bool | None:
        """Write it again. None: somebody else wrote it, and it is ours still."""
        assert self._lease is not None
        began = _now()
        try:
            written = await self._cluster.replace(self._manifest(self._lease))
        except Refused as error:
            if error.status not in (404, 409):
                raise
            return await self._still_ours()
        self._take(written, began)
        return True

    async def _still_ours(self) -> bool | None:
        found = await self._cluster.get(kinds.LEASE, self._name)
        self.holder = str(((found or {}).get("spec") or {}).get("holderIdentity") or "")
        if found is None or self.holder != self._identity:
            self._log.warning("lease_lost", why=f"{self.holder or 'nobody'} holds it")
            return False
        self._lease = found
        return None

    async def _give_back(self) -> None:
        """Let the next one have it at once; without that it would wait for our silence."""
        # It runs out by itself if this fails.
        with contextlib.suppress(EngineUnavailable, TimeoutError):
            async with asyncio.timeout(self._terms.retry):
                # A renewal that was under way may have been written: we need the present version.
                if await self._still_ours() is None:
                    await self._cluster.replace(self._manifest(self._lease, holder=""))

    def _complain(self, event: str, why: str) -> None:
        if event != self._complaint:  # once for each time, not for each try
            self._log.warning(event, why=why)
        self._complaint = event

    def _manifest(self, found: Found | None, holder: str | None = None) -> dict[str, object]:
        """The lease as we want it, in place of the one that was read."""
        before = (found or {}).get("spec") or {}
        who = self._identity if holder is None else holder
        is_change = before.get("holderIdentity") != who
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        spec: dict[str, Any] = {
            "holderIdentity": who,
            "leaseDurationSeconds": max(1, round(self._terms.duration)),
            "acquireTime": now if is_change else before.get("acquireTime") or now,
            "renewTime": now,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + is_change,
        }
        metadata = found["metadata"] if found else {"name": self._name}
        return {
            "apiVersion": kinds.LEASE.group_version,
            "kind": kinds.LEASE.kind,
            "metadata": metadata,
            "spec": spec,
        }


def _now() -> float:
    """A clock that nobody sets, and that goes on while the machine sleeps, where there is one."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
