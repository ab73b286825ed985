"""Figures of the service about itself, counted as requests pass."""

from __future__ import annotations

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from starlette.types import Scope

NOWHERE = "(none)"
"""The route of requests that no route answered: their paths are anybody's choice."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Figures:
    """One set per app, in a registry of its own."""

    def __init__(self) -> None:
        # When each began would be one more line for each, which nobody reads.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "anubis_http_requests",
            "Requests answered.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "anubis_http_request_seconds",
            "From the head of a request to the end of its answer; streams last long.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one request."""
        route = getattr(scope.get("route"), "path", NOWHERE)
        self._requests.labels(route, scope["method"], str(status)).inc()
        self._seconds.labels(route, scope["method"]).observe(seconds)
