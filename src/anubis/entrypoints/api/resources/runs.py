"""Look at runs: lists, one run, its descriptor and its environment."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from anubis.domain.run import RunId
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples, showing
from anubis.entrypoints.api.resources.answering import JSON, Json, page, preferred, tagged_run
from anubis.entrypoints.api.resources.models import descriptors, metrics, runs
from anubis.entrypoints.api.resources.parameters import Here, Meant, Viewer
from anubis.entrypoints.api.resources.submissions import TOML
from anubis.ports.run_reader import RunQuery
from anubis.stages.presentation import shapes

router = APIRouter(prefix=docs.PREFIX, tags=["runs"])


@router.get(
    "/runs",
    operation_id="listRuns",
    summary="List runs, newest first",
    responses=docs.answer(
        runs.RunPage, {"runs": [examples.RUN], "next": examples.RUN_ID}, "A page of runs."
    ),
)
async def list_runs(
    here: Here, _: Viewer, filters: Annotated[runs.RunFilters, Query()]
) -> Response:
    """Every filter given must hold. Pages are cut by cursor: runs that are submitted meanwhile do
    not shift them, and a page far back costs as much as the first.
    """
    found, last = page(await here.application.store.page(_query(filters)), filters.limit)
    return Json(
        {
            "runs": await showing.runs(here, found),
            "next": None if last is None else last.id,
        }
    )


def _query(filters: runs.RunFilters) -> RunQuery:
    return RunQuery(
        states=filters.state,
        benchmark=filters.benchmark,
        labels=[_label(text) for text in filters.label],
        family=filters.family,
        submitter=filters.user,
        since=filters.since,
        until=filters.until,
        before=None if filters.cursor is None else RunId(filters.cursor),
        limit=filters.limit + 1,
    )


def _label(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


@router.get(
    "/runs/counts",
    operation_id="countRuns",
    summary="Count runs by state",
    responses=docs.answer(runs.RunCounts, {"counts": {"SUCCEEDED": 41, "RUNNING": 1}}, "Counts."),
)
async def count_runs(here: Here, _: Viewer) -> Response:
    """Costs the same however many runs there are."""
    counts = await here.application.store.counts()
    return Json({"counts": {state.value: count for state, count in counts.items() if count}})


@router.get(
    "/runs/{ref}",
    operation_id="getRun",
    summary="Get a run",
    responses={
        **docs.answer(
            runs.Run,
            examples.RUN,
            "The run.",
            headers={"ETag": "Names this version of the run; send it as `If-None-Match`."},
        ),
        **docs.empty(304, "The run has not changed since the version named by `If-None-Match`."),
        **docs.problems(404, 409),
    },
)
async def get_run(request: Request, here: Here, run_id: Meant) -> Response:
    """With `If-None-Match`, a run that has not changed is answered with 304 and no body."""
    run = await here.application.store.get(run_id)
    return tagged_run(request, await showing.run(here, run))


@router.get(
    "/runs/{ref}/status",
    operation_id="getRunStatus",
    summary="Get a run with all that is known about it",
    responses={
        **docs.answer(
            runs.Status,
            {
                "run": examples.RUN,
                "events": [examples.EVENT],
                "metrics": [examples.METRIC],
                "environment": examples.ENVIRONMENT,
            },
            "The run, what happened to it, what it measured, and where.",
        ),
        **docs.problems(404, 409),
    },
)
async def get_status(here: Here, run_id: Meant) -> Response:
    """The same as `anubis status --json`."""
    store = here.application.store
    run = await store.get(run_id)
    snapshot = shapes.snapshot(
        run, await store.events(run_id), await store.summaries(run_id), here.application.clock.now()
    )
    snapshot["run"] = await showing.run(here, run)
    return Json(shapes.status_shape(snapshot, await store.fingerprint(run_id)))


@router.get(
    "/runs/{ref}/descriptor",
    operation_id="getRunDescriptor",
    summary="Get the descriptor of a run",
    responses={
        **docs.joined(
            docs.answer(descriptors.Descriptor, examples.DOCUMENT, "The descriptor."),
            docs.text("The descriptor.", {TOML[0]: examples.TOML}),
        ),
        **docs.problems(404, 409),
    },
)
async def get_descriptor(request: Request, here: Here, run_id: Meant) -> Response:
    """With `Accept: application/toml`, the exact bytes that were submitted."""
    document = await here.application.store.document(run_id)
    if preferred(request, (JSON, TOML[0])) == TOML[0]:
        return Response(document.content, media_type=TOML[0])
    return Json(shapes.document_shape(run_id, document))


@router.get(
    "/runs/{ref}/environment",
    operation_id="getRunEnvironment",
    summary="Get the environment that a run had",
    responses={
        **docs.maybe(metrics.Environment, examples.ENVIRONMENT, "The environment, once known."),
        **docs.problems(404, 409),
    },
)
async def get_environment(here: Here, run_id: Meant) -> Response:
    """Null before the run starts."""
    return Json(showing.environment(await here.application.store.fingerprint(run_id)))
