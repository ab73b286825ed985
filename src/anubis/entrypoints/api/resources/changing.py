"""Change runs: submit, cancel, purge, submit again."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from anubis.bootstrap.application import Submission
from anubis.bootstrap.service import Service
from anubis.domain.problem import Problem
from anubis.domain.run import RunId
from anubis.entrypoints.api import access
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples, showing, submissions
from anubis.entrypoints.api.resources.answering import Json
from anubis.entrypoints.api.resources.models import runs
from anubis.entrypoints.api.resources.parameters import Here, IdempotencyKey, Meant, Submitter
from anubis.entrypoints.api.resources.submissions import HandedIn
from anubis.stages.presentation import shapes

PURGE_PATIENCE = 20.0
"""Seconds that a request waits for a run to end before it is purged: the grace that programs get to
end by themselves, and some."""

LARGEST_BODY = 16 * 1024
"""Bytes of a body that holds nothing but a few options."""

router = APIRouter(prefix=docs.PREFIX, tags=["runs"])

_SUBMITTED = {"run": examples.NEW_RUN, "warnings": []}
_SUBMISSION: docs.Responses = {
    **docs.answer(runs.Submitted, _SUBMITTED, "The run of this `Idempotency-Key`, made before."),
    **docs.answer(
        runs.Submitted,
        _SUBMITTED,
        "The run. It is stored durably and survives a crash of everything.",
        status=201,
        headers={"Location": "Where the run can be looked at."},
    ),
}


@router.post(
    "/runs",
    operation_id="submitRun",
    summary="Submit a run",
    status_code=201,
    responses={**_SUBMISSION, **docs.problems(409)},
    openapi_extra=docs.descriptor_body(),
)
async def submit_run(
    request: Request,
    here: Here,
    who: Submitter,
    options: Annotated[runs.SubmissionOptions, Query()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The body is the descriptor as it is, or JSON that holds it. The parameters of the query are
    for a descriptor that is sent as it is; fields of the JSON win over them. A descriptor with
    problems is answered with 422 and all of them. One with a schedule belongs to `POST /schedules`,
    unless it is to run once and now.
    """
    given = await submissions.read(request, options)
    return await _submit(request, here, given.by(who, idempotency_key), given.warnings)


@router.post(
    "/runs/{ref}/resubmit",
    operation_id="resubmitRun",
    summary="Submit the descriptor of a run again",
    status_code=201,
    responses={**_SUBMISSION, **docs.problems(404, 409)},
    openapi_extra=docs.body_of(runs.Resubmission, {"priority": 10}),
)
async def resubmit_run(
    request: Request,
    here: Here,
    who: Submitter,
    run_id: Meant,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The same descriptor as a new run, once and now."""
    content = await submissions.body(request, LARGEST_BODY)
    wanted = submissions.parsed(runs.Resubmission, content or b"{}")
    document = await here.application.store.document(run_id)
    document, warnings = await submissions.located(document)
    given = HandedIn(
        document=document, engine=wanted.engine, priority=wanted.priority, is_wanted_now=True
    )
    return await _submit(request, here, given.by(who, idempotency_key), warnings)


async def _submit(
    request: Request, here: Service, submission: Submission, warnings: tuple[Problem, ...]
) -> Response:
    now = here.application.clock.now()
    submitted = await here.application.submit(submission)
    run, is_new = submitted.run, submitted.run.submitted_at >= now
    if is_new:
        await access.note(request, "run.submit", run.id, detail=f"benchmark {run.benchmark}")
    warnings = submissions.worth_telling(warnings, here.application.engines.get(run.engine))
    told = [shapes.problem_shape(problem) for problem in (*warnings, *submitted.warnings)]
    # Without what it waits for: that would cost more than all the rest, and changes at once.
    body = {"run": shapes.run_shape(run, here.application.clock.now()), "warnings": told}
    return Json(body, 201 if is_new else 200, {"Location": f"{docs.PREFIX}/runs/{run.id}"})


@router.post(
    "/runs/{ref}/cancel",
    operation_id="cancelRun",
    summary="Ask for a run to be stopped",
    status_code=202,
    responses={
        **docs.answer(
            runs.Run, examples.NEW_RUN, "The run. It ends as CANCELED in a moment.", status=202
        ),
        **docs.problems(404, 409),
    },
)
async def cancel_run(request: Request, here: Here, who: Submitter, run_id: Meant) -> Response:
    """Asking again changes nothing. A run that has ended is answered with 409."""
    await _must_own(request, here, run_id, "run.cancel")
    run = await here.application.cancel(run_id, by=who.user)
    await access.note(request, "run.cancel", run_id)
    return Json(await showing.run(here, run), 202)


@router.delete(
    "/runs/{ref}",
    operation_id="purgeRun",
    summary="Forget a run with all it produced",
    status_code=204,
    responses={
        **docs.empty(204, "The run is gone."),
        **docs.answer(
            runs.Run,
            examples.NEW_RUN,
            "The run was canceled and has not ended yet. Ask again.",
            status=202,
        ),
        **docs.problems(404, 409),
    },
)
async def purge_run(request: Request, here: Here, who: Submitter, run_id: Meant) -> Response:
    """A run that goes on is canceled first. One that has not ended after 20 seconds is answered
    with 202, and purged by asking again.
    """
    await _must_own(request, here, run_id, "run.purge")
    try:
        async with asyncio.timeout(PURGE_PATIENCE):
            await here.application.purge(run_id, by=who.user)
    except TimeoutError:
        await access.note(request, "run.cancel", run_id, detail="to be purged")
        run = await here.application.store.get(run_id)
        return Json(await showing.run(here, run), 202)
    await access.note(request, "run.purge", run_id)
    return Response(status_code=204)


async def _must_own(request: Request, here: Service, run_id: RunId, action: str) -> None:
    run = await here.application.store.get(run_id)
    await access.must_own(request, run.submitter, action, run_id)
