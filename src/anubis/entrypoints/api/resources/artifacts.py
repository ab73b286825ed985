"""What can be downloaded of a run: everything about it, as files."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Final, TypedDict

from fastapi import APIRouter, Path
from starlette.exceptions import HTTPException
from starlette.responses import Response

from anubis.bootstrap.service import Service
from anubis.domain.run import RunId
from anubis.entrypoints.api.resources import documentation as docs
from anubis.entrypoints.api.resources import examples, showing
from anubis.entrypoints.api.resources.answering import JSON, Json, encoded
from anubis.entrypoints.api.resources.models import output
from anubis.entrypoints.api.resources.parameters import Here, Meant
from anubis.entrypoints.api.resources.streaming import streamed
from anubis.ports.log_store import LogQuery
from anubis.stages.presentation import samples, shapes

router = APIRouter(prefix=docs.PREFIX, tags=["output"])

PAGE: Final = 500


class Name(StrEnum):
    """What there may be."""

    DESCRIPTOR = "descriptor.toml"
    OUTPUT = "output.log"
    SAMPLES = "samples.csv"
    SUMMARY = "summary.json"
    EVENTS = "events.json"
    ENVIRONMENT = "environment.json"


class ArtifactShape(TypedDict):
    """A file that can be downloaded."""

    name: str
    media_type: str
    bytes: int | None
    description: str


Pieces = Callable[[Service, RunId], AsyncIterator[bytes]]
Size = Callable[[Service, RunId], Awaitable[int | None]]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """How an artifact is made. Nothing is kept for it: it is written when it is asked for."""

    media_type: str
    description: str
    pieces: Pieces
    size: Size  #: bytes if they are known; zero: there is nothing


async def _descriptor(here: Service, run_id: RunId) -> AsyncIterator[bytes]:
    yield (await here.application.store.document(run_id)).content


async def _descriptor_size(here: Service, run_id: RunId) -> int | None:
    return len((await here.application.store.document(run_id)).content)


async def _output(here: Service, run_id: RunId) -> AsyncIterator[bytes]:
    async for piece in here.application.logs.text(run_id, LogQuery()):
        yield piece


async def _output_size(here: Service, run_id: RunId) -> int | None:
    return (await here.application.logs.size(run_id))[0]


async def _samples(here: Service, run_id: RunId) -> AsyncIterator[bytes]:
    summaries = await here.application.store.summaries(run_id)
    units = {summary.key: summary.units for summary in summaries}
    yield samples.header().encode()
    for key in await here.application.series.keys(run_id):
        column = await here.application.series.read(run_id, key)
        for page in samples.pages(key, units.get(key, ""), column):
            yield page.encode("utf-8", "replace")


async def _samples_size(here: Service, run_id: RunId) -> int | None:
    return None if await here.application.series.keys(run_id) else 0


async def _summary(here: Service, run_id: RunId) -> AsyncIterator[bytes]:
    summaries = await here.application.store.summaries(run_id)
    metrics = [shapes.metric_shape(summary) for summary in summaries]
    yield encoded({"run": run_id, "metrics": metrics}) + b"\n"


async def _summary_size(here: Service, run_id: RunId) -> int | None:
    return None if await here.application.store.summaries(run_id) else 0


async def _events(here: Service, run_id: RunId) -> AsyncIterator[bytes]:
    yield b'{"run":%b,"events":[' % encoded(run_id)
    last = 0
    while events := await here.application.store.events(run_id, after=last, limit=PAGE):
        shown = b",".join(encoded(shapes.event_shape(event)) for event in events)
        yield (b"," if last else b"") + shown
        last = events[-1].number
    yield b"]}\n"


async def _always(_: Service, __: RunId) -> int | None:
    return None


async def _environment(here: Service, run_id: RunId) -> AsyncIterator[bytes]:
    fingerprint = await here.application.store.fingerprint(run_id)
    yield encoded(showing.environment(fingerprint)) + b"\n"


async def _environment_size(here: Service, run_id: RunId) -> int | None:
    return None if await here.application.store.fingerprint(run_id) else 0


KINDS: Final = {
    Name.DESCRIPTOR: Kind(
        media_type="application/toml",
        description="the descriptor, byte for byte",
        pieces=_descriptor,
        size=_descriptor_size,
    ),
    Name.OUTPUT: Kind(
        media_type="text/plain",
        description="all output, byte for byte",
        pieces=_output,
        size=_output_size,
    ),
    Name.SAMPLES: Kind(
        media_type="text/csv",
        description="every sample of every metric",
        pieces=_samples,
        size=_samples_size,
    ),
    Name.SUMMARY: Kind(
        media_type=JSON,
        description="the statistics of every metric",
        pieces=_summary,
        size=_summary_size,
    ),
    Name.EVENTS: Kind(
        media_type=JSON, description="all that happened to it", pieces=_events, size=_always
    ),
    Name.ENVIRONMENT: Kind(
        media_type=JSON,
        description="the environment it had",
        pieces=_environment,
        size=_environment_size,
    ),
}

_EXAMPLE: Final = ArtifactShape(
    name="output.log", media_type="text/plain", bytes=10, description="all output, byte for byte"
)


@router.get(
    "/runs/{ref}/artifacts",
    operation_id="listRunArtifacts",
    summary="List what can be downloaded of a run",
    responses={
        **docs.answer(output.Artifacts, {"artifacts": [_EXAMPLE]}, "What there is."),
        **docs.problems(404, 409),
    },
)
async def list_artifacts(here: Here, run_id: Meant) -> Response:
    """Only what the run has; while it goes on, there may be more later."""
    found: list[ArtifactShape] = []
    for name, kind in KINDS.items():
        size = await kind.size(here, run_id)
        if size != 0:
            found.append(
                ArtifactShape(
                    name=name.value,
                    media_type=kind.media_type,
                    bytes=size,
                    description=kind.description,
                )
            )
    return Json({"artifacts": found})


@router.get(
    "/runs/{ref}/artifacts/{name}",
    operation_id="getRunArtifact",
    summary="Download a file about a run",
    response_class=Response,
    responses={
        **docs.joined(
            docs.text(
                "The file.",
                {
                    "application/toml": examples.TOML,
                    "text/plain": "loss=0.25\n",
                    "text/csv": samples.header(),
                },
            ),
            docs.any_object({"run": examples.RUN_ID, "events": [examples.EVENT]}),
        ),
        **docs.problems(404, 409),
    },
)
async def get_artifact(
    here: Here,
    run_id: Meant,
    name: Annotated[Name, Path(description="One of those listed.", examples=["output.log"])],
) -> Response:
    """Streamed, whatever its size."""
    kind = KINDS[name]
    if await kind.size(here, run_id) == 0:
        raise HTTPException(404, f"the run has no {name.value}: {kind.description}")
    headers = {"Content-Disposition": f'attachment; filename="{name.value}"'}
    return await streamed(kind.pieces(here, run_id), kind.media_type, headers)
