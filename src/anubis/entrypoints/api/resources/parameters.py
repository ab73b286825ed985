"""What routes ask for: the service, who asks, and which run is meant."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from typing import Annotated, Final

from fastapi import Depends, Header, Path, Request
from fastapi.exceptions import RequestValidationError
from pydantic import StringConstraints

from anubis.bootstrap.service import Service
from anubis.domain.access import Principal, Role
from anubis.domain.run import RunId
from anubis.entrypoints.api import access
from anubis.entrypoints.api.resources.models.kinds import LARGEST
from anubis.ports.run_reader import RunQuery

LAST = "last"

REPEATABLE: Final[Mapping[str, Collection[str]]] = {
    "/api/v1/runs": {"state", "label"},
    "/api/v1/runs/{ref}/logs": {"unit", "stream"},
}
"""Parameters that may be given several times, by path. A test compares them with OpenAPI."""


async def given_once(request: Request) -> None:
    """Raise RequestValidationError for a parameter that is given twice.

    FastAPI would take the last, and who asks would see less, or more, than was asked for.
    """
    given = collections.Counter(name for name, _ in request.query_params.multi_items())
    several = REPEATABLE.get(request.scope["route"].path, ())
    repeated = [name for name, times in given.items() if times > 1 and name not in several]
    if repeated:
        raise RequestValidationError([_repeated(request, name) for name in repeated])


def _repeated(request: Request, name: str) -> dict[str, object]:
    """In the shape of the validation library's own errors."""
    found = request.query_params.getlist(name)
    return {"type": "repeated", "loc": ("query", name), "msg": "one value", "input": found}


async def here(request: Request) -> Service:
    """The service. Asynchronous, or FastAPI would ask for it in a thread."""
    return access.service(request)


Here = Annotated[Service, Depends(here)]
Viewer = Annotated[Principal, Depends(access.needs(Role.VIEWER))]
Submitter = Annotated[Principal, Depends(access.needs(Role.SUBMITTER))]

Reference = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64),
    Path(
        description="A run: its id, the unique start of one, or `last`: your newest, or the newest "
        "of all if you have none.",
        examples=["last"],
    ),
]

IdempotencyKey = Annotated[
    Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,255}$")] | None,
    Header(
        description="Chosen by you for this submission: sent again with the same descriptor, it "
        "gives the run that there is already (200) instead of making a second one.",
        examples=["nightly-2024-05-17"],
    ),
]

LastEventId = Annotated[
    Annotated[str, StringConstraints(pattern=r"^[0-9]{0,19}$")] | None,
    Header(
        alias="Last-Event-ID",
        description="The `id` of the last event you have seen; browsers send it by themselves.",
        examples=["0"],
    ),
]


async def meant(ref: Reference, here: Here, principal: Viewer) -> RunId:
    """The run that a reference means. Raises RunNotFound or RunAmbiguous."""
    store = here.application.store
    if ref.strip().lower() == LAST:
        # Whoever has submitted something means that, and not what a colleague did a moment later.
        own = await store.page(RunQuery(submitter=principal.user, limit=1))
        if own:
            return own[0].id
    return await store.resolve(ref)


Meant = Annotated[RunId, Depends(meant)]


def place(last_event_id: str | None, after: int | None) -> int | None:
    """Where a stream goes on."""
    if last_event_id:
        return min(int(last_event_id), LARGEST)
    return after
