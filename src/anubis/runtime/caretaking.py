"""Long work on datasets that is asked for over HTTP, and goes on without whoever asked.

A transfer may take hours and a verification minutes, longer than a request should. So they are
tasks of the service; requests start them, look at them, and stop transfers. All is forgotten when
the service ends: what the cache has of a transfer by then is taken up by the next who asks.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from anubis.domain import dataset
from anubis.domain.dataset import DatasetKey, Progress, Reference
from anubis.domain.errors import AnubisError, DatasetNotFound, NotPossible, PermanentError, TooMuch
from anubis.domain.fetch import Fetch, FetchState
from anubis.ports.clock import Clock
from anubis.ports.dataset_cache import DatasetCache
from anubis.runtime.supervising import Supervisor

MOST = 16
"""Transfers, and verifications, under way at once. Each of them fills a line or a disk by itself;
more would only slow each other, and runs that fetch their own data."""

REMEMBERED = 200
"""Transfers that have ended and can still be asked about."""

FRESH = timedelta(minutes=5)
"""For how long the answer of a verification waits for somebody who asks again."""

_DEFECT = "an internal error: the log of the service tells more"


@dataclasses.dataclass(slots=True)
class _Transfer:
    fetch: Fetch
    task: asyncio.Task[None] | None = None


@dataclasses.dataclass(slots=True)
class _Verification:
    answer: asyncio.Future[bool]
    ended_at: datetime | None = None


class Caretaker:
    """Fetches and verifies datasets. For one event loop; tasks belong to the supervisor."""

    def __init__(
        self, open_cache: Callable[[], DatasetCache], supervisor: Supervisor, clock: Clock
    ) -> None:
        self._open_cache = open_cache  # called when it is needed, by tasks
        self._supervisor = supervisor
        self._clock = clock
        self._transfers: dict[DatasetKey, _Transfer] = {}  #: those that began last are last
        self._verifications: dict[DatasetKey, _Verification] = {}

    def start(self, reference: Reference, *, by: str) -> Fetch:
        """Have a dataset brought here. One that is under way already goes on, for both.

        Raises TooMuch if too many are.
        """
        key = reference.key
        known = self._transfers.get(key)
        if known is not None and not known.fetch.has_ended:
            wanted_by = tuple(dict.fromkeys((*known.fetch.wanted_by, by)))
            known.fetch = dataclasses.replace(known.fetch, wanted_by=wanted_by)
            return known.fetch
        _must_be_few([one for one in self._transfers.values() if not one.fetch.has_ended])
        self._transfers.pop(key, None)
        transfer = _Transfer(
            Fetch(
                key=key,
                uri=dataset.shown(reference.uri),
                wanted_by=(by,),
                started_at=self._clock.now(),
            )
        )
        self._transfers[key] = transfer
        self._forget_old()
        transfer.task = self._supervisor.start(
            lambda: self._carry(transfer, reference),
            name=f"fetch {key[:12]}",
            failed=lambda _: self._died(transfer),
        )
        return transfer.fetch

    def get(self, key: DatasetKey) -> Fetch:
        """How far a transfer is. Raises DatasetNotFound if none is known."""
        return self._known(key).fetch

    async def settled(self, key: DatasetKey, *, within: float) -> Fetch:
        """The same, once it has ended or so many seconds have passed."""
        transfer = self._known(key)
        if transfer.task is not None:
            await asyncio.wait({transfer.task}, timeout=within)
        return transfer.fetch

    def stop(self, key: DatasetKey, *, by: str) -> Fetch:
        """Want a transfer no more; it goes on while others want it, unless ``by`` never did.

        Raises DatasetNotFound if none is known, NotPossible if it has ended.
        """
        transfer = self._known(key)
        if transfer.fetch.has_ended:
            raise NotPossible(f"the transfer of {transfer.fetch.uri} has ended")
        others = tuple(one for one in transfer.fetch.wanted_by if one != by)
        if others and others != transfer.fetch.wanted_by:
            transfer.fetch = dataclasses.replace(transfer.fetch, wanted_by=others)
        else:
            assert transfer.task is not None, "a transfer that has not ended has its task"
            transfer.task.cancel()
            # Now and not when it stops: a task that never began does not get to say so.
            self._end(transfer, FetchState.CANCELED)
        return transfer.fetch

    async def verify(self, key: DatasetKey) -> bool:
        """Read all of a dataset again; False if it is damaged, and then it is gone.

        Whoever asks while that goes on gets the same answer. It goes on when the call is canceled,
        and the next call gets what it found. Raises DatasetNotFound, and TooMuch if too many are
        under way.
        """
        self._forget_answers()
        verification = self._verifications.get(key) or self._verify(key)
        try:
            return await asyncio.shield(verification.answer)
        finally:
            is_delivered = verification.answer.done()
            if is_delivered and self._verifications.get(key) is verification:
                del self._verifications[key]

    def _verify(self, key: DatasetKey) -> _Verification:
        _must_be_few([one for one in self._verifications.values() if one.ended_at is None])
        verification = _Verification(asyncio.get_running_loop().create_future())
        self._verifications[key] = verification
        self._supervisor.start(
            lambda: self._check(key, verification),
            name=f"verify {key[:12]}",
            failed=lambda _: self._gave_up(verification),
        )
        return verification

    def _known(self, key: DatasetKey) -> _Transfer:
        try:
            return self._transfers[key]
        except KeyError:
            raise DatasetNotFound(f"no transfer of the dataset {key} is known here") from None

    async def _carry(self, transfer: _Transfer, reference: Reference) -> None:
        def report(progress: Progress) -> None:
            transfer.fetch = dataclasses.replace(
                transfer.fetch, done_bytes=progress.done_bytes, total_bytes=progress.total_bytes
            )

        try:
            found = await self._open_cache().fetch(reference, run=None, report=report)
        except AnubisError as error:
            self._end(transfer, FetchState.FAILED, error)
            return
        report(
            Progress(
                uri=found.reference.uri, done_bytes=found.size_bytes, total_bytes=found.size_bytes
            )
        )
        self._end(transfer, FetchState.DONE)

    async def _died(self, transfer: _Transfer) -> None:
        self._end(transfer, FetchState.FAILED, PermanentError(_DEFECT))

    def _end(
        self, transfer: _Transfer, state: FetchState, error: AnubisError | None = None
    ) -> None:
        if transfer.fetch.has_ended:
            return
        transfer.fetch = dataclasses.replace(
            transfer.fetch, state=state, ended_at=self._clock.now(), error=error
        )

    async def _check(self, key: DatasetKey, verification: _Verification) -> None:
        try:
            is_sound = await self._open_cache().verify(key)
        except AnubisError as error:
            self._fail(verification, error)
        else:
            verification.answer.set_result(is_sound)
            verification.ended_at = self._clock.now()

    async def _gave_up(self, verification: _Verification) -> None:
        self._fail(verification, PermanentError(_DEFECT))

    def _fail(self, verification: _Verification, error: AnubisError) -> None:
        verification.answer.set_exception(error)
        verification.answer.exception()  # looked at: nobody is warned if who asked has gone
        verification.ended_at = self._clock.now()

    def _forget_answers(self) -> None:
        now = self._clock.now()
        for key, one in list(self._verifications.items()):
            if one.ended_at is not None and now - one.ended_at > FRESH:
                del self._verifications[key]

    def _forget_old(self) -> None:
        ended = [key for key, one in self._transfers.items() if one.fetch.has_ended]
        for key in ended[: max(0, len(ended) - REMEMBERED)]:
            del self._transfers[key]


def _must_be_few(under_way: Sequence[object]) -> None:
    if len(under_way) >= MOST:
        raise TooMuch(f"{MOST} are under way, and more are not begun; try again later")
