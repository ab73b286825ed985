"""The datasets of a service, in its cache.

A dataset's content stays there: runs see it. Its ``path`` is empty, and the URI of its reference is
as people may see it, so only ``key`` names what was asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Sequence
from datetime import timedelta

from anubis.client import calling, troubles
from anubis.client.calling import Call, segment
from anubis.client.fields import Fields
from anubis.client.reading import LARGEST_PAGE
from anubis.client.transport import Transport
from anubis.domain import dataset
from anubis.domain.dataset import (
    Dataset,
    DatasetKey,
    DatasetKind,
    Progress,
    Reference,
    Report,
)
from anubis.domain.errors import (
    AnubisError,
    DatasetNotFound,
    NotPossible,
    UnexpectedAnswer,
    UserError,
)
from anubis.domain.fetch import Fetch, FetchState

FIRST_LOOK = 0.1
"""Seconds before a transfer is looked at for the first time; then twice as long each time."""

BETWEEN_LOOKS = 1.0
"""Seconds between two looks at a transfer that goes on."""

LAST_WORD = 5.0
"""Seconds to tell the service that a transfer is not wanted any more."""

_TAKES_LONG = timedelta(seconds=60)
"""For a verification, which is answered after 20 s at the latest."""

_ACCEPTED = 202


class DatasetsClient:
    """All that can be done with datasets."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def all(self) -> Sequence[Dataset]:
        """Every dataset, last used first."""
        found, cursor = dict[str, Dataset](), None
        while True:
            asked = calling.query(cursor=cursor, limit=LARGEST_PAGE)
            fields = await self._fields(Call(path="/datasets", query=asked), "datasets")
            some = [_dataset(one) for one in fields.parts("datasets")]
            found.update({one.key: one for one in some})
            cursor = fields.maybe_text("next")
            if cursor is None:
                return sorted(found.values(), key=lambda one: one.used_at, reverse=True)

    async def get(self, key: str) -> Dataset:
        """The dataset with this key, or the only one whose key begins so.

        Raises DatasetNotFound, or UserError if several do.
        """
        return _dataset(await self._fields(Call(path=_path(key)), "dataset"))

    async def add(self, reference: Reference, *, report: Report | None = None) -> Dataset:
        """Have a dataset fetched, and wait until it is there. Canceling this stops the transfer.

        Raises what it failed of: DatasetInvalid, SourceUnavailable, StorageFull; NotPossible if
        somebody else stopped it.
        """
        try:
            fetch = await self._followed(reference, report)
        except asyncio.CancelledError:
            with contextlib.suppress(AnubisError, TimeoutError):
                async with asyncio.timeout(LAST_WORD):
                    await self.stop(reference.key)
            raise
        if fetch.error is not None:
            raise fetch.error
        if fetch.state is FetchState.CANCELED:
            raise NotPossible(f"the transfer of {fetch.uri} was stopped")
        return await self.get(fetch.key)

    async def start(self, reference: Reference) -> Fetch:
        """Have a dataset fetched, which goes on without us. Asking again changes nothing."""
        body = {
            "uri": calling.plain(reference.uri),
            "checksum": None if reference.checksum is None else str(reference.checksum),
            "unpack": reference.unpack,
        }
        call = calling.post("/datasets", body, is_repeatable=True)
        return _fetch(await self._fields(call, "fetch"))

    async def fetch(self, key: DatasetKey) -> Fetch:
        """How far the transfer of a dataset is. Raises DatasetNotFound if none is known."""
        return _fetch(await self._fields(Call(path=f"{_path(key)}/fetch"), "fetch"))

    async def stop(self, key: DatasetKey) -> None:
        """Want a transfer no more. Raises NotPossible if it has ended."""
        call = Call(method="DELETE", path=f"{_path(key)}/fetch", done_if=NotPossible)
        await self._transport.send(call)

    async def verify(self, key: DatasetKey) -> bool:
        """Have all of it read again; False if it is not what was fetched, and then it is gone."""
        post = calling.post(f"{_path(key)}/verify", is_repeatable=True)
        call = dataclasses.replace(post, takes=_TAKES_LONG, done_if=DatasetNotFound)
        while (reply := await self._transport.send(call)).status == _ACCEPTED:
            pass  # it takes longer: the service waits for a while each time it is asked
        return bool(reply.content) and Fields(reply.json(), "verification").flag("sound")

    async def evict(self, key: DatasetKey) -> int:
        """Have it forgotten; the bytes that became free. Raises NotPossible while a run uses it."""
        call = Call(method="DELETE", path=_path(key), done_if=DatasetNotFound)
        reply = await self._transport.send(call)
        return Fields(reply.json(), "eviction").whole("freed_bytes") if reply.content else 0

    async def _followed(self, reference: Reference, report: Report | None) -> Fetch:
        fetch, pause = await self.start(reference), FIRST_LOOK
        while True:
            if report is not None:
                report(_progress(fetch))
            if fetch.has_ended:
                return fetch
            await self._transport.clock.sleep(pause)
            pause = min(2 * pause, BETWEEN_LOOKS)
            try:
                fetch = await self.fetch(fetch.key)
            except DatasetNotFound:  # the service was started anew: it goes on where it was
                fetch = await self.start(reference)

    async def _fields(self, call: Call, place: str) -> Fields:
        return Fields((await self._transport.send(call)).json(), place)


def _path(key: str) -> str:
    return f"/datasets/{segment(key)}"


def _progress(fetch: Fetch) -> Progress:
    return Progress(uri=fetch.uri, done_bytes=fetch.done_bytes, total_bytes=fetch.total_bytes)


def _dataset(fields: Fields) -> Dataset:
    try:
        checksum = dataset.checksum(fields.maybe_word("checksum") or "")
    except UserError as error:
        raise UnexpectedAnswer(f"the service answered something unexpected: {error}") from error
    return Dataset(
        key=DatasetKey(fields.word("key")),
        reference=Reference(
            uri=fields.text("uri"), checksum=checksum, unpack=fields.flag("unpacked")
        ),
        kind=fields.choice("kind", DatasetKind),
        path=fields.maybe_text("path") or "",
        digest=fields.word("digest"),
        size_bytes=fields.whole("size_bytes"),
        files=fields.whole("files"),
        fetched_at=fields.moment("fetched_at"),
        used_at=fields.moment("used_at"),
        pinned_by=tuple(fields.texts("pinned_by")),
    )


def _fetch(fields: Fields) -> Fetch:
    problem = fields.maybe_part("problem")
    return Fetch(
        key=DatasetKey(fields.word("key")),
        uri=fields.text("uri"),
        state=fields.choice("state", FetchState),
        wanted_by=tuple(fields.texts("wanted_by")),
        started_at=fields.moment("started_at"),
        ended_at=fields.maybe_moment("ended_at"),
        done_bytes=fields.whole("done_bytes"),
        total_bytes=fields.maybe_whole("total_bytes"),
        error=None
        if problem is None
        else troubles.named(problem.word("type"), problem.text("detail")),
    )
