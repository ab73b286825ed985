"""Datasets of the service's cache: look at them, have more fetched, verify and evict them.

A transfer is a resource of its own below its dataset, ``…/{key}/fetch``. It belongs to the service
and not to the request that began it: whoever asked may go away and come back, and several who want
the same share it. Content never leaves by this door; runs see it.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import StringConstraints
from starlette.responses import Response

from anubis.bootstrap import submitting
from anubis.domain import dataset
from anubis.domain.access import Principal, Role
from anubis.domain.dataset import Dataset, DatasetKey, Reference
from anubis.domain.fetch import FetchState
from anubis.entrypoints.api import access
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples
from anubis.entrypoints.api.resources.answering import Json, encoded, page, tagged
from anubis.entrypoints.api.resources.models import datasets
from anubis.entrypoints.api.resources.parameters import Here, Submitter, Viewer
from anubis.stages.presentation import dataset_shapes

router = APIRouter(prefix=docs.PREFIX, tags=["datasets"])

BRIEFLY: Final = 0.2
"""Seconds that an answer waits for a transfer to end: what is in the cache already takes less."""

PATIENCE: Final = 20.0
"""Seconds that an answer waits for a verification; most proxies wait for thirty."""

Admin = Annotated[Principal, Depends(access.needs(Role.ADMIN))]

Key = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{1,64}$"),
    Path(
        description="A dataset: its key, or the unique start of one.", examples=[examples.SHA[:12]]
    ),
]
WholeKey = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{64}$"),
    Path(description="The key of a dataset, whole.", examples=[examples.SHA]),
]

_DATASET: Final = dataset_shapes.DatasetShape(
    key=examples.SHA,
    uri="https://data.example/imagenet-mini.tar.gz",
    checksum=f"sha256:{examples.SHA}",
    unpacked=True,
    kind="directory",
    path=None,
    digest=f"sha256:{examples.SHA}",
    size_bytes=3_221_225_472,
    files=34_745,
    fetched_at=examples.MOMENT,
    used_at=examples.LATER,
    pinned_by=[examples.RUN_ID],
)

_FETCH: Final = dataset_shapes.FetchShape(
    key=examples.SHA,
    uri="https://data.example/imagenet-mini.tar.gz",
    state="fetching",
    wanted_by=["ada"],
    started_at=examples.MOMENT,
    ended_at=None,
    done_bytes=1_073_741_824,
    total_bytes=3_221_225_472,
    problem=None,
)

_ENDED: Final = {**_FETCH, "state": "done", "ended_at": examples.LATER, "done_bytes": 3_221_225_472}


async def _meant(key: Key, here: Here, _: Viewer) -> Dataset:
    return await here.application.datasets.get(key)


Meant = Annotated[Dataset, Depends(_meant)]


@router.get(
    "/datasets",
    operation_id="listDatasets",
    summary="List datasets, those fetched last first",
    responses=docs.answer(
        datasets.DatasetPage, {"datasets": [_DATASET], "next": None}, "A page of datasets."
    ),
)
async def list_datasets(
    here: Here, _: Viewer, filters: Annotated[datasets.DatasetFilters, Query()]
) -> Response:
    """What the cache of the service holds now. By when they were fetched and not by use: that
    changes while somebody turns pages.
    """
    found = sorted(await here.application.datasets.all(), key=_place)
    if filters.cursor is not None:
        found = [one for one in found if _place(one) > _named(filters.cursor)]
    some, last = page(found, filters.limit)
    return Json({"datasets": _shown(some), "next": None if last is None else _cursor(last)})


@router.post(
    "/datasets",
    operation_id="fetchDataset",
    summary="Have a dataset fetched into the cache",
    status_code=202,
    responses={
        **docs.answer(datasets.Fetch, _ENDED, "The dataset is in the cache."),
        **docs.answer(
            datasets.Fetch,
            _FETCH,
            "The transfer, which goes on, or has failed already.",
            status=202,
            headers={"Location": "Where the transfer can be looked at."},
        ),
    },
    openapi_extra=docs.body_example(
        {
            "uri": "https://data.example/imagenet-mini.tar.gz",
            "checksum": f"sha256:{examples.SHA}",
            "unpack": True,
        }
    ),
)
async def fetch_dataset(
    request: Request, here: Here, who: Submitter, wish: datasets.DatasetWish
) -> Response:
    """The transfer is begun and goes on without you, until it has ended, somebody stops it or the
    service ends; look at it where `Location` says. Asking again for the same gives the same
    transfer, or begins it anew if it failed. What came before it broke off is not transferred
    again. How it fails is told in `state` and `problem`, not by the status. It is read with the
    rights of the service, as runs read.
    """
    dataset.refuse_secrets(wish.uri)
    submitting.must_not_be_ours(wish.uri, here.settings)
    reference = Reference(
        uri=wish.uri, checksum=dataset.checksum(wish.checksum), unpack=wish.unpack
    )
    fetch = here.caretaker.start(reference, by=who.user)
    await access.note(request, "dataset.fetch", fetch.key, detail=fetch.uri)
    fetch = await here.caretaker.settled(fetch.key, within=BRIEFLY)
    where = f"{docs.PREFIX}/datasets/{fetch.key}/fetch"
    is_here = fetch.state is FetchState.DONE
    shape = dataset_shapes.fetch_shape(fetch)
    return Json(shape, 200 if is_here else 202, {"Location": where})


@router.get(
    "/datasets/{key}",
    operation_id="getDataset",
    summary="Get a dataset",
    responses={
        **docs.answer(
            datasets.Dataset,
            _DATASET,
            "The dataset.",
            headers={"ETag": "Names this version of it; send it as `If-None-Match`."},
        ),
        **docs.empty(304, "It has not changed since the version named by `If-None-Match`."),
        **docs.problems(404),
    },
)
async def get_dataset(request: Request, found: Meant) -> Response:
    """Its content never changes; when it was used and which runs use it does. With
    `If-None-Match`, one that has not changed is answered with 304 and no body.
    """
    shape = dataset_shapes.dataset_shape(found, is_here=False)
    return tagged(request, shape, f'"{found.key[:16]}-{zlib.crc32(encoded(shape)):x}"')


@router.get(
    "/datasets/{key}/fetch",
    operation_id="getFetch",
    summary="Look at the transfer of a dataset",
    responses={
        **docs.answer(datasets.Fetch, _FETCH, "The transfer."),
        **docs.problems(404),
    },
)
async def get_fetch(here: Here, _: Viewer, key: WholeKey) -> Response:
    """As far as it has come. The last 200 that have ended are remembered until the service ends;
    those of runs are told by their events.
    """
    return Json(dataset_shapes.fetch_shape(here.caretaker.get(DatasetKey(key))))


@router.delete(
    "/datasets/{key}/fetch",
    operation_id="stopFetch",
    summary="Stop the transfer of a dataset",
    status_code=202,
    responses={
        **docs.answer(
            datasets.Fetch,
            {**_FETCH, "state": "canceled", "ended_at": examples.LATER},
            "The transfer. If others want it too, it goes on for them.",
            status=202,
        ),
        **docs.problems(404, 409),
    },
)
async def stop_fetch(request: Request, here: Here, who: Submitter, key: WholeKey) -> Response:
    """For those who asked for it, and for admins. What has come is kept for the next who asks. One
    that has ended is answered with 409.
    """
    fetch = here.caretaker.get(DatasetKey(key))
    if who.user not in fetch.wanted_by:
        await access.must_own(request, fetch.wanted_by[0], "dataset.stop", key)
    fetch = here.caretaker.stop(DatasetKey(key), by=who.user)
    await access.note(request, "dataset.stop", key, detail=fetch.uri)
    return Json(dataset_shapes.fetch_shape(fetch), 202)


@router.post(
    "/datasets/{key}/verify",
    operation_id="verifyDataset",
    summary="Verify a dataset",
    responses={
        **docs.answer(
            datasets.Verification, {"key": examples.SHA, "sound": True}, "What was found."
        ),
        **docs.answer(
            datasets.Verification,
            {"key": examples.SHA, "sound": None},
            "It takes longer, and goes on. Ask again.",
            status=202,
        ),
        **docs.problems(404),
    },
)
async def verify_dataset(request: Request, here: Here, _: Admin, found: Meant) -> Response:
    """Reads all of it again, for admins. One that is not what was fetched is gone then, and fetched
    anew when somebody needs it. After 20 seconds 202 is answered; asking again goes on waiting.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            is_sound = await here.caretaker.verify(found.key)
    except TimeoutError:
        return Json({"key": found.key, "sound": None}, 202)
    detail = "is as it was fetched" if is_sound else "was damaged, and is gone"
    await access.note(request, "dataset.verify", found.key, detail=detail)
    return Json({"key": found.key, "sound": is_sound})


@router.delete(
    "/datasets/{key}",
    operation_id="evictDataset",
    summary="Evict a dataset",
    responses={
        **docs.answer(
            datasets.Eviction,
            {"key": examples.SHA, "freed_bytes": 3_221_225_472},
            "It is gone.",
        ),
        **docs.problems(404, 409),
    },
)
async def evict_dataset(request: Request, here: Here, _: Admin, found: Meant) -> Response:
    """For admins. It is fetched again when somebody needs it. One that a run uses now is answered
    with 409, and stays.
    """
    freed = await here.application.datasets.evict(found.key)
    uri = dataset.shown(found.reference.uri)
    await access.note(request, "dataset.evict", found.key, detail=uri)
    return Json({"key": found.key, "freed_bytes": freed})


def _shown(some: Sequence[Dataset]) -> list[dataset_shapes.DatasetShape]:
    return [dataset_shapes.dataset_shape(one, is_here=False) for one in some]


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _place(found: Dataset) -> tuple[int, str]:
    return -((found.fetched_at - _EPOCH) // timedelta(microseconds=1)), found.key


def _cursor(found: Dataset) -> str:
    return f"{-_place(found)[0]}.{found.key}"


def _named(cursor: str) -> tuple[int, str]:
    """The place that a cursor names, whether its dataset is still there or not."""
    at, _, key = cursor.partition(".")
    return -int(at), key
