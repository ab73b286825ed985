"""``/metrics`` in the text format of Prometheus: the service itself, and what runs measure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

import anubis
from anubis.bootstrap.service import Service
from anubis.domain.access import Principal, Role
from anubis.domain.run import RunState
from anubis.entrypoints.api import access
from anubis.entrypoints.api.figures import Figures
from anubis.entrypoints.api.operations.recent import Recent
from anubis.ports.schedule_store import ScheduleQuery
from anubis.stages.presentation import exposition

MOST_SCHEDULES = 1_000
"""Counted; a bound for what a scrape reads."""

WAITING = (RunState.SUBMITTED, RunState.FETCHING, RunState.QUEUED)

router = APIRouter(tags=["service"])


EXAMPLE = """\
anubis_runs{state="RUNNING"} 1.0
BAI_METRICS_loss{action_id="018f8583-4a00-7000-9fec-f0f8a0d2f3a7",client_id="ada"} 0.25
"""


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"example": EXAMPLE}}}},
)
async def get_metrics(
    request: Request, _: Annotated[Principal, Depends(access.needs(Role.VIEWER))]
) -> Response:
    """Give all figures, for Prometheus to collect."""
    service = access.service(request)
    figures: Figures = request.app.state.figures
    recent: Recent = request.app.state.recent
    own = generate_latest(figures.registry) + _written(await _own(service))
    # In a thread: ten thousand series take a tenth of a second.
    users = await asyncio.to_thread(text, exposition.series(await recent.measured()))
    return Response(own + users, media_type=CONTENT_TYPE_LATEST)


def text(found: Iterable[exposition.Series]) -> bytes:
    """What runs measured, one family for each name, as the format demands."""
    families: dict[str, Metric] = {}
    for one in found:
        family = families.get(one.name)
        if family is None:
            family = families[one.name] = Metric(one.name, "Measured by runs.", "gauge")
        family.add_sample(one.name, dict(one.labels), one.value)
    return _written(families.values())


async def _own(service: Service) -> list[Metric]:
    counts = await service.application.store.counts()
    runs = GaugeMetricFamily("anubis_runs", "Runs by state.", labels=["state"])
    for state in RunState:
        runs.add_metric([state.value], counts.get(state, 0))
    waiting = sum(counts.get(state, 0) for state in WAITING)
    started = service.started_at.timestamp()
    return [
        await _schedules(service),
        InfoMetricFamily("anubis", "This service.", value={"version": anubis.__version__}),
        runs,
        GaugeMetricFamily("anubis_queue_length", "Runs that wait to be started.", waiting),
        GaugeMetricFamily("anubis_leases", "Runs that this service holds.", service.leases()),
        GaugeMetricFamily(
            "anubis_watchers", "Streams of events open.", service.broadcaster.watchers
        ),
        GaugeMetricFamily(
            "anubis_event_loop_lag_seconds", "How late the event loop last was.", service.pulse.lag
        ),
        GaugeMetricFamily("anubis_started_seconds", "When the service started.", started),
    ]


async def _schedules(service: Service) -> Metric:
    found = await service.application.schedule_store.page(ScheduleQuery(limit=MOST_SCHEDULES))
    paused = sum(schedule.paused_at is not None for schedule in found)
    family = GaugeMetricFamily("anubis_schedules", "Schedules.", labels=["state"])
    family.add_metric(["active"], len(found) - paused)
    family.add_metric(["paused"], paused)
    return family


class _Gathered(Collector):
    """Hands out what was gathered, for the client library to write."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Give the families."""
        return iter(self._families)


def _written(families: Iterable[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gathered(families))
    return generate_latest(registry)
