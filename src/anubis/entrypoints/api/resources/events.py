"""What happened: as pages, and live."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples
from anubis.entrypoints.api.resources.answering import Json, page
from anubis.entrypoints.api.resources.models import events
from anubis.entrypoints.api.resources.parameters import Here, LastEventId, Meant, Viewer, place
from anubis.entrypoints.api.resources.streaming import EventStream
from anubis.stages.presentation import shapes

router = APIRouter(prefix=docs.PREFIX, tags=["events"])

_PAGE = {"events": [examples.EVENT], "next": None}


@router.get(
    "/runs/{ref}/events",
    operation_id="listRunEvents",
    summary="List what happened to a run",
    responses={
        **docs.answer(events.EventPage, _PAGE, "A page of events."),
        **docs.problems(404, 409),
    },
)
async def list_run_events(
    here: Here, run_id: Meant, filters: Annotated[events.EventFilters, Query()]
) -> Response:
    """In order; `after` and `next` are numbers within the run."""
    store = here.application.store
    found = await store.events(run_id, after=filters.after, limit=filters.limit + 1)
    some, last = page(found, filters.limit)
    return Json(
        {
            "events": [shapes.event_shape(event) for event in some],
            "next": None if last is None else last.number,
        }
    )


@router.get(
    "/events",
    operation_id="listEvents",
    summary="List what happened to all runs",
    responses=docs.answer(events.EventPage, _PAGE, "A page of events."),
)
async def list_events(
    here: Here, _: Viewer, filters: Annotated[events.FeedFilters, Query()]
) -> Response:
    """In the order in which it was stored; `after` and `next` are sequences. Who goes on from the
    last sequence misses nothing and sees nothing twice. Events of purged runs are gone.
    """
    store = here.application.store
    some, last = page(await store.feed(after=filters.after, limit=filters.limit + 1), filters.limit)
    return Json(
        {
            "events": [shapes.event_shape(event) for event in some],
            "next": None if last is None else last.sequence,
        }
    )


@router.get(
    "/events/stream",
    operation_id="streamEvents",
    summary="Watch all runs",
    response_class=Response,
    responses=docs.stream(
        "Server-sent events, until the client leaves.", ["event"], examples.FRAME
    ),
)
async def stream_events(
    here: Here,
    who: Viewer,
    start: Annotated[events.StreamStart, Query()],
    last_event_id: LastEventId = None,
) -> Response:
    """Frames named `event`, each with its sequence as `id`: those after `Last-Event-ID`, else after
    `after`, else those that come from now on. A client that comes back with the last id it saw
    misses nothing and sees nothing twice, also after a restart of the service.
    """
    after = place(last_event_id, start.after)
    return EventStream(here.broadcaster.everything(after, who.user))


@router.get(
    "/runs/{ref}/stream",
    operation_id="streamRun",
    summary="Watch one run",
    response_class=Response,
    responses={
        **docs.stream(
            "Server-sent events, until the run has ended.",
            ["run", "metrics", "event", "end"],
            examples.FRAME,
        ),
        **docs.problems(404, 409),
    },
)
async def stream_run(
    here: Here,
    run_id: Meant,
    who: Viewer,
    start: Annotated[events.StreamStart, Query()],
    last_event_id: LastEventId = None,
) -> Response:
    """First `run` and `metrics`: what it is and has measured so far. Then `event`, with its
    sequence as `id`, for each event after `Last-Event-ID` or `after`, or from its beginning; `run`
    and `metrics` when they change. After the terminal state `end` with the run, and it closes.
    """
    after = place(last_event_id, start.after) or 0
    return EventStream(here.broadcaster.one(run_id, after, who.user))
