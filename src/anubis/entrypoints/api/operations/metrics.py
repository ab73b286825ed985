"""``/metrics`` in the text format of Prometheus: the service itself, and what runs measure."""

from __future__ import annotations

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
from anubis.stages.presentation import exposition

WAITING = (RunState.SUBMITTED, RunState.FETCHING, RunState.QUEUED)

router = APIRouter(tags=["service"])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def get_metrics(
    request: Request, _: Annotated[Principal, Depends(access.needs(Role.VIEWER))]
) -> Response:
    """Give all figures, for Prometheus to collect."""
    service = access.service(request)
    figures: Figures = request.app.state.figures
    recent: Recent = request.app.state.recent
    families = [*await _own(service), *_users(exposition.series(await recent.measured()))]
    text = generate_latest(figures.registry) + generate_latest(_registry(families))
    return Response(text, media_type=CONTENT_TYPE_LATEST)


async def _own(service: Service) -> list[Metric]:
    counts = await service.application.store.counts()
    runs = GaugeMetricFamily("anubis_runs", "Runs by state.", labels=["state"])
    for state in RunState:
        runs.add_metric([state.value], counts.get(state, 0))
    waiting = sum(counts.get(state, 0) for state in WAITING)
    started = service.started_at.timestamp()
    return [
        InfoMetricFamily("anubis", "This service.", value={"version": anubis.__version__}),
        runs,
        GaugeMetricFamily("anubis_queue_length", "Runs that wait to be started.", waiting),
        GaugeMetricFamily(
            "anubis_watchers", "Streams of events open.", service.broadcaster.watchers
        ),
        GaugeMetricFamily(
            "anubis_event_loop_lag_seconds", "How late the event loop last was.", service.pulse.lag
        ),
        GaugeMetricFamily("anubis_started_seconds", "When the service started.", started),
    ]


def _users(found: Iterable[exposition.Series]) -> list[Metric]:
    """One family for each name, as the format demands."""
    families: dict[str, Metric] = {}
    for one in found:
        family = families.get(one.name)
        if family is None:
            family = families[one.name] = Metric(one.name, "Measured by runs.", "gauge")
        family.add_sample(one.name, dict(one.labels), one.value)
    return list(families.values())


class _Gathered(Collector):
    """Hands out what was gathered, for the client library to write."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Give the families."""
        return iter(self._families)


def _registry(families: Iterable[Metric]) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gathered(families))
    return registry
