"""The output of runs: by range, from the end, by search; as JSON, or byte for byte."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from anubis.domain.logline import LogLine
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples
from anubis.entrypoints.api.resources.answering import JSON, Json, encoded, preferred
from anubis.entrypoints.api.resources.models import output
from anubis.entrypoints.api.resources.parameters import Here, Meant
from anubis.entrypoints.api.resources.streaming import streamed
from anubis.ports.log_store import LogQuery
from anubis.stages.presentation import shapes

NDJSON: Final = "application/x-ndjson"
TEXT: Final = "text/plain"

LARGEST_PAGE = 4 * 1024 * 1024
"""Bytes of output in one JSON answer; a line may be long."""

router = APIRouter(prefix=docs.PREFIX, tags=["output"])


@router.get(
    "/runs/{ref}/logs",
    operation_id="getRunLogs",
    summary="Get the output of a run",
    responses={
        **docs.joined(
            docs.answer(output.LogPage, {"lines": [examples.LINE], "next": None}, "The output."),
            docs.text(
                "The output.",
                {NDJSON: encoded(examples.LINE).decode() + "\n", TEXT: "loss=0.25\n"},
            ),
        ),
        **docs.problems(404, 409),
    },
)
async def get_logs(
    request: Request, here: Here, run_id: Meant, filters: Annotated[output.LogFilters, Query()]
) -> Response:
    """As JSON, a page. With `Accept: application/x-ndjson`, one object per line and no limit; with
    `Accept: text/plain`, the exact bytes. All of them take the same filters, and also work while
    the run goes on: `after` the last line seen, there is what came since.
    """
    kind = preferred(request, (JSON, NDJSON, TEXT))
    if kind == TEXT:
        text = here.application.logs.text(run_id, _query(filters))
        return await streamed(_without_first(filters.skip, text), TEXT)
    lines = here.application.logs.lines(run_id, _query(filters))
    if kind == NDJSON:
        return await streamed(_objects(lines), NDJSON)
    most = filters.limit if filters.tail is None else max(filters.limit, filters.tail)
    return await _page(lines, most)


def _query(filters: output.LogFilters) -> LogQuery:
    return LogQuery(
        units=filters.unit,
        streams=filters.stream,
        contains=filters.contains,
        after=filters.after,
        tail=filters.tail,
    )


async def _page(lines: AsyncIterator[LogLine], most: int) -> Response:
    found: list[shapes.ExactLineShape] = []
    size, following = 0, None
    async for line in lines:
        if len(found) == most or size > LARGEST_PAGE:
            following = found[-1]["number"]
            break
        found.append(shapes.exact_line_shape(line))
        size += len(line.text)
    return Json({"lines": found, "next": following})


async def _objects(lines: AsyncIterator[LogLine]) -> AsyncIterator[bytes]:
    async for line in lines:
        yield encoded(shapes.exact_line_shape(line)) + b"\n"


async def _without_first(skip: int, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        if len(piece) > skip:
            yield piece[skip:]
        skip = max(0, skip - len(piece))
