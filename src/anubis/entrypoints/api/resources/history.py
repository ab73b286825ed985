"""Many runs together: benchmarks and their trends, and families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final, TypedDict

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from anubis.bootstrap.service import Service
from anubis.domain.errors import RunNotFound
from anubis.domain.run import Run, RunId, RunState
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples, showing
from anubis.entrypoints.api.resources.answering import Json, page
from anubis.entrypoints.api.resources.models import history
from anubis.entrypoints.api.resources.models.runs import LARGEST_PAGE
from anubis.entrypoints.api.resources.parameters import Here, Viewer
from anubis.ports.history import Group, TrendQuery
from anubis.ports.run_reader import RunQuery
from anubis.stages.presentation import shapes

router = APIRouter(prefix=docs.PREFIX, tags=["history"])

MOST_COUNTED: Final = 1_000
"""Runs of a family that are counted by state: more than any sweep a person looks at."""


class GroupShape(TypedDict):
    """Runs that share a benchmark or a family."""

    name: str
    runs: int
    newest: str


_GROUP: Final = GroupShape(name="train", runs=42, newest=examples.RUN_ID)
_POINT: Final = {
    "run": examples.RUN_ID,
    "state": "SUCCEEDED",
    "submitted_at": examples.MOMENT,
    "metric": examples.METRIC,
}


@router.get(
    "/benchmarks",
    operation_id="listBenchmarks",
    summary="List benchmarks by name",
    responses=docs.answer(
        history.BenchmarkPage, {"benchmarks": [_GROUP], "next": None}, "A page of benchmarks."
    ),
)
async def list_benchmarks(
    here: Here, _: Viewer, filters: Annotated[history.GroupFilters, Query()]
) -> Response:
    """A benchmark is what stays the same between runs over time."""
    found = await here.application.store.benchmarks(after=filters.after, limit=filters.limit + 1)
    return _groups("benchmarks", found, filters.limit)


@router.get(
    "/families",
    operation_id="listFamilies",
    summary="List families by name",
    responses=docs.answer(
        history.FamilyPage, {"families": [_GROUP], "next": None}, "A page of families."
    ),
)
async def list_families(
    here: Here, _: Viewer, filters: Annotated[history.GroupFilters, Query()]
) -> Response:
    """A family is a set of runs that belong together: the firings of a schedule, for instance."""
    found = await here.application.store.families(after=filters.after, limit=filters.limit + 1)
    return _groups("families", found, filters.limit)


def _groups(kind: str, found: Sequence[Group], limit: int) -> Response:
    some, last = page(found, limit)
    groups = [GroupShape(name=one.name, runs=one.runs, newest=one.newest) for one in some]
    return Json({kind: groups, "next": None if last is None else last.name})


@router.get(
    "/benchmarks/{name:path}/trend",
    operation_id="getTrend",
    summary="Get what the runs of a benchmark measured over time",
    responses={
        **docs.answer(
            history.Trend,
            {"benchmark": "train", "metric": "loss", "points": [_POINT], "next": None},
            "A page of points, newest first.",
        ),
        **docs.problems(404),
    },
)
async def get_trend(
    here: Here,
    _: Viewer,
    name: Annotated[
        str, Path(description="The benchmark's name, percent-encoded.", examples=["train"])
    ],
    filters: Annotated[history.TrendFilters, Query()],
) -> Response:
    """Only runs that succeeded count. Those that did not measure the metric give no point."""
    before = None if filters.cursor is None else RunId(filters.cursor)
    store = here.application.store
    looked_at = RunQuery(
        states=[RunState.SUCCEEDED], benchmark=name, before=before, limit=filters.limit + 1
    )
    some, last = page(await store.page(looked_at), filters.limit)
    if not some:
        await _must_have_runs(here, RunQuery(benchmark=name, limit=1), f"benchmark {name!r}")
    query = TrendQuery(
        benchmark=name,
        metric=filters.metric,
        unit=filters.unit,
        before=before,
        limit=filters.limit,
    )
    points = [
        {
            "run": point.run_id,
            "state": point.state.value,
            "submitted_at": shapes.iso(point.submitted_at),
            "metric": shapes.metric_shape(point.summary),
        }
        for point in await store.trend(query)
    ]
    following = None if last is None else last.id
    return Json({"benchmark": name, "metric": filters.metric, "points": points, "next": following})


@router.get(
    "/families/{family:path}",
    operation_id="getFamily",
    summary="Get the runs of a family",
    responses={
        **docs.answer(
            history.Family,
            {
                "family": examples.SCHEDULE_ID,
                "runs": [examples.RUN],
                "counts": {"SUCCEEDED": 1},
                "next": None,
            },
            "A page of its runs, newest first, and how many of them are in which state.",
        ),
        **docs.problems(404),
    },
)
async def get_family(
    here: Here,
    _: Viewer,
    family: Annotated[
        str, Path(description="The family, percent-encoded.", examples=[examples.SCHEDULE_ID])
    ],
    filters: Annotated[history.FamilyFilters, Query()],
) -> Response:
    """The counts are those of its newest 1,000 runs."""
    before = None if filters.cursor is None else RunId(filters.cursor)
    query = RunQuery(family=family, before=before, limit=filters.limit + 1)
    some, last = page(await here.application.store.page(query), filters.limit)
    if not some:
        await _must_have_runs(here, RunQuery(family=family, limit=1), f"family {family!r}")
    return Json(
        {
            "family": family,
            "runs": await showing.runs(here, some),
            "counts": await _counts(here, family),
            "next": None if last is None else last.id,
        }
    )


async def _counts(here: Service, family: str) -> dict[str, int]:
    counts, seen, before = Counter[str](), 0, None
    while seen < MOST_COUNTED:
        query = RunQuery(family=family, before=before, limit=LARGEST_PAGE)
        runs: Sequence[Run] = await here.application.store.page(query)
        counts.update(run.state.value for run in runs)
        seen += len(runs)
        if len(runs) < LARGEST_PAGE:
            break
        before = runs[-1].id
    return dict(counts)


async def _must_have_runs(here: Service, query: RunQuery, what: str) -> None:
    if not await here.application.store.page(query):
        raise RunNotFound(f"there are no runs of the {what}")
