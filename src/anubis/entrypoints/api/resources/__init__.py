"""The resources under ``/api/v1``: runs and all that belongs to them.

A file per resource; ``models`` are the shapes of what is asked and answered, ``documentation`` puts
them into OpenAPI, ``submissions`` reads descriptors, ``streaming`` sends what does not end soon.
"""

from __future__ import annotations

from fastapi import APIRouter

from anubis.entrypoints.api.resources import (
    artifacts,
    changing,
    datasets,
    descriptors,
    engines,
    events,
    history,
    logs,
    metrics,
    runs,
    schedules,
    scripts,
)

ROUTERS: tuple[APIRouter, ...] = (
    changing.router,
    runs.router,
    events.router,
    logs.router,
    metrics.router,
    artifacts.router,
    descriptors.router,
    history.router,
    schedules.router,
    datasets.router,
    scripts.router,
    engines.router,
)
"""Every router of this room, with its full prefix."""
