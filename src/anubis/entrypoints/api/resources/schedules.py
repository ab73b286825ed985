"""Schedules: descriptors that run again and again."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import StringConstraints
from starlette.responses import Response

from anubis.bootstrap.service import Service
from anubis.domain.run import RunId
from anubis.domain.schedule import ScheduleId
from anubis.entrypoints.api import access
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples, showing, submissions
from anubis.entrypoints.api.resources.answering import JSON, Json, page, preferred, tagged
from anubis.entrypoints.api.resources.models import descriptors, events, runs, schedules
from anubis.entrypoints.api.resources.parameters import Here, IdempotencyKey, Submitter, Viewer
from anubis.entrypoints.api.resources.submissions import TOML
from anubis.ports.schedule_store import ScheduleQuery
from anubis.stages.presentation import shapes

router = APIRouter(prefix=docs.PREFIX, tags=["schedules"])

UPCOMING: Final = 5
"""Firings that a schedule is shown with."""


async def _meant(
    ref: Annotated[
        str,
        StringConstraints(min_length=1, max_length=1024),
        Path(
            description="A schedule: its id, the unique start of one, or the name of a benchmark "
            "that has only one.",
            examples=["train"],
        ),
    ],
    here: Here,
    _: Viewer,
) -> ScheduleId:
    return await here.application.schedules.resolve(ref)


Meant = Annotated[ScheduleId, Depends(_meant)]


@router.post(
    "/schedules",
    operation_id="submitSchedule",
    summary="Submit a schedule",
    status_code=201,
    responses={
        **docs.answer(
            schedules.Scheduled,
            {"schedule": examples.SCHEDULE, "warnings": []},
            "The schedule of this `Idempotency-Key`, made before.",
        ),
        **docs.answer(
            schedules.Scheduled,
            {"schedule": examples.SCHEDULE, "warnings": []},
            "The schedule. It is stored durably.",
            status=201,
            headers={"Location": "Where the schedule can be looked at."},
        ),
        **docs.problems(409),
    },
    openapi_extra=docs.descriptor_body(examples.SCHEDULED_TOML),
)
async def submit_schedule(
    request: Request,
    here: Here,
    who: Submitter,
    options: Annotated[runs.SubmissionOptions, Query()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The bodies are those of `POST /runs`; the descriptor must have a schedule. What its runs
    could not do is told now.
    """
    given = await submissions.read(request, options)
    now = here.application.clock.now()
    scheduled = await here.application.schedules.add(given.by(who, idempotency_key))
    schedule, is_new = scheduled.schedule, scheduled.schedule.created_at >= now
    if is_new:
        about = f"benchmark {schedule.benchmark}"
        await access.note(request, "schedule.submit", schedule.id, detail=about)
    engine = here.application.engines.get(schedule.engine)
    warnings = submissions.worth_telling(given.warnings, engine)
    told = [shapes.problem_shape(one) for one in (*warnings, *scheduled.warnings)]
    body = {"schedule": shapes.schedule_shape(schedule), "warnings": told}
    where = f"{docs.PREFIX}/schedules/{schedule.id}"
    return Json(body, 201 if is_new else 200, {"Location": where})


@router.get(
    "/schedules",
    operation_id="listSchedules",
    summary="List schedules, newest first",
    responses=docs.answer(
        schedules.SchedulePage,
        {"schedules": [examples.SCHEDULE], "next": None},
        "A page of schedules.",
    ),
)
async def list_schedules(
    here: Here, _: Viewer, filters: Annotated[schedules.ScheduleFilters, Query()]
) -> Response:
    """Every filter given must hold."""
    before = None if filters.cursor is None else ScheduleId(filters.cursor)
    query = ScheduleQuery(submitter=filters.user, before=before, limit=filters.limit + 1)
    some, last = page(await here.application.schedules.page(query), filters.limit)
    return Json(
        {
            "schedules": [shapes.schedule_shape(schedule) for schedule in some],
            "next": None if last is None else last.id,
        }
    )


@router.get(
    "/schedules/{ref}",
    operation_id="getSchedule",
    summary="Get a schedule and its next firings",
    responses={
        **docs.answer(
            schedules.ScheduleDetails,
            {**examples.SCHEDULE, "upcoming": ["2024-05-18T03:00:00.000000Z"]},
            "The schedule.",
            headers={"ETag": "Names this version of it; send it as `If-None-Match`."},
        ),
        **docs.empty(304, "It has not changed since the version named by `If-None-Match`."),
        **docs.problems(404, 409),
    },
)
async def get_schedule(request: Request, here: Here, schedule_id: Meant) -> Response:
    """None are upcoming while it is paused. With `If-None-Match`, one that has not changed is
    answered with 304 and no body.
    """
    schedule = await here.application.schedules.get(schedule_id)
    upcoming = await here.application.schedules.upcoming(schedule_id, count=UPCOMING)
    tag = f'"{schedule.id}-{schedule.version}"'
    return tagged(request, shapes.schedule_detail(schedule, upcoming), tag)


@router.get(
    "/schedules/{ref}/events",
    operation_id="listScheduleEvents",
    summary="List what happened to a schedule",
    responses={
        **docs.answer(
            schedules.ScheduleEventPage,
            {"events": [examples.SCHEDULE_EVENT], "next": None},
            "A page of events.",
        ),
        **docs.problems(404, 409),
    },
)
async def list_schedule_events(
    here: Here, schedule_id: Meant, filters: Annotated[events.EventFilters, Query()]
) -> Response:
    """In order."""
    found = await here.application.schedules.events(
        schedule_id, after=filters.after, limit=filters.limit + 1
    )
    some, last = page(found, filters.limit)
    return Json(
        {
            "events": [shapes.schedule_event_shape(event) for event in some],
            "next": None if last is None else last.number,
        }
    )


@router.get(
    "/schedules/{ref}/descriptor",
    operation_id="getScheduleDescriptor",
    summary="Get the descriptor of a schedule",
    responses={
        **docs.joined(
            docs.answer(
                descriptors.Descriptor,
                {**examples.DOCUMENT, "run": examples.SCHEDULE_ID},
                "The descriptor.",
            ),
            docs.text("The descriptor.", {TOML[0]: examples.SCHEDULED_TOML}),
        ),
        **docs.problems(404, 409),
    },
)
async def get_schedule_descriptor(request: Request, here: Here, schedule_id: Meant) -> Response:
    """With `Accept: application/toml`, the exact bytes that were submitted."""
    document = await here.application.schedules.document(schedule_id)
    if preferred(request, (JSON, TOML[0])) == TOML[0]:
        return Response(document.content, media_type=TOML[0])
    return Json(shapes.document_shape(RunId(schedule_id), document))


_CHANGED: docs.Responses = {
    **docs.answer(schedules.Schedule, examples.SCHEDULE, "The schedule."),
    **docs.problems(404, 409),
}


@router.post(
    "/schedules/{ref}/pause",
    operation_id="pauseSchedule",
    summary="Let a schedule fire nothing until it is resumed",
    responses=_CHANGED,
)
async def pause_schedule(
    request: Request, here: Here, who: Submitter, schedule_id: Meant
) -> Response:
    """Firings that are due meanwhile are dropped. Pausing it again changes nothing."""
    await _must_own(request, here, schedule_id, "schedule.pause")
    schedule = await here.application.schedules.pause(schedule_id, by=who.user)
    await access.note(request, "schedule.pause", schedule_id)
    return Json(shapes.schedule_shape(schedule))


@router.post(
    "/schedules/{ref}/resume",
    operation_id="resumeSchedule",
    summary="Let a schedule fire again",
    responses=_CHANGED,
)
async def resume_schedule(
    request: Request, here: Here, who: Submitter, schedule_id: Meant
) -> Response:
    """From now on. Resuming it again changes nothing."""
    await _must_own(request, here, schedule_id, "schedule.resume")
    schedule = await here.application.schedules.resume(schedule_id, by=who.user)
    await access.note(request, "schedule.resume", schedule_id)
    return Json(shapes.schedule_shape(schedule))


@router.post(
    "/schedules/{ref}/run",
    operation_id="runSchedule",
    summary="Submit a run of a schedule now",
    status_code=201,
    responses={
        **docs.answer(
            runs.Submitted,
            {"run": examples.NEW_RUN, "warnings": []},
            "The run, a member of the schedule's family.",
            status=201,
            headers={"Location": "Where the run can be looked at."},
        ),
        **docs.problems(404, 409),
    },
)
async def run_schedule(
    request: Request, here: Here, who: Submitter, schedule_id: Meant
) -> Response:
    """Besides its firings, which go on as before."""
    await _must_own(request, here, schedule_id, "schedule.run")
    run = await here.application.schedules.run_now(schedule_id, by=who.user)
    await access.note(request, "schedule.run", schedule_id, detail=f"run {run.id}")
    body = {"run": await showing.run(here, run), "warnings": []}
    return Json(body, 201, {"Location": f"{docs.PREFIX}/runs/{run.id}"})


@router.delete(
    "/schedules/{ref}",
    operation_id="removeSchedule",
    summary="Forget a schedule",
    status_code=204,
    responses={**docs.empty(204, "The schedule is gone."), **docs.problems(404, 409)},
)
async def remove_schedule(
    request: Request, here: Here, who: Submitter, schedule_id: Meant
) -> Response:
    """Its runs stay."""
    await _must_own(request, here, schedule_id, "schedule.remove")
    await here.application.schedules.remove(schedule_id, by=who.user)
    await access.note(request, "schedule.remove", schedule_id)
    return Response(status_code=204)


async def _must_own(request: Request, here: Service, schedule_id: ScheduleId, action: str) -> None:
    schedule = await here.application.schedules.get(schedule_id)
    await access.must_own(request, schedule.submitter, action, schedule_id)
