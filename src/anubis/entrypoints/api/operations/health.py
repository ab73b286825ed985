"""Is the service alive, and can it do its work? Open to all, for those who watch over services."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Awaitable, Callable

import structlog
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

import anubis
from anubis.bootstrap.service import Service
from anubis.domain.errors import AnubisError
from anubis.entrypoints.api import access
from anubis.entrypoints.api.resources import documentation as docs
from anubis.stages.presentation import shapes

LEAST_FREE = 64 * 1024**2
"""Bytes on the disk of the home, below which runs may lose output."""


class Health(BaseModel):
    """The process lives and answers."""

    status: str
    version: str
    started_at: str


class Check(BaseModel):
    """One thing that the service needs."""

    name: str
    ok: bool
    detail: str


class Readiness(BaseModel):
    """Whether the service can do its work."""

    ready: bool
    checks: list[Check]


router = APIRouter(prefix="/api/v1", tags=["service"])


_READY = {"ready": True, "checks": [{"name": "store", "ok": True, "detail": "ok"}]}
_NOT_READY = {
    "ready": False,
    "checks": [{"name": "store", "ok": False, "detail": "the store does not answer"}],
}


@router.get(
    "/health",
    operation_id="getHealth",
    summary="Say that the process lives",
    responses=docs.example(
        {"status": "ok", "version": "1.0.0", "started_at": "2024-05-17T12:00:00.000000Z"}
    ),
)
async def get_health(request: Request) -> Health:
    """Say that the process lives."""
    started = access.service(request).started_at
    return Health(status="ok", version=anubis.__version__, started_at=shapes.iso(started))


@router.get(
    "/ready",
    operation_id="getReady",
    summary="Say whether runs can be submitted and carried",
    responses={
        **docs.example(_READY),
        503: {"model": Readiness, "content": {"application/json": {"example": _NOT_READY}}},
    },
)
async def get_ready(request: Request, response: Response) -> Readiness:
    """Say whether runs can be submitted and carried; 503 while they cannot."""
    found = await readiness(access.service(request))
    if not found.ready:
        response.status_code = 503
    return found


async def readiness(service: Service) -> Readiness:
    """Check everything that the service needs."""
    checks = [_check(service, name, await look(service)) for name, look in _LOOKS.items()]
    return Readiness(ready=all(check.ok for check in checks), checks=checks)


@dataclasses.dataclass(frozen=True, slots=True)
class _Trouble:
    """What is wrong."""

    summary: str  #: for everybody
    detail: str = ""  #: may name paths


def _check(service: Service, name: str, trouble: _Trouble | None) -> Check:
    _tell_the_log(service, name, trouble)
    if trouble is None:
        return Check(name=name, ok=True, detail="ok")
    # Where tokens are in force strangers may ask this, whom our paths do not concern.
    detail = "" if service.requires_tokens else trouble.detail
    return Check(name=name, ok=False, detail=detail or trouble.summary)


def _tell_the_log(service: Service, name: str, trouble: _Trouble | None) -> None:
    """Once for each trouble and not for each question: anybody may ask, and often."""
    if trouble is None:
        service.troubles.pop(name, None)
    elif service.troubles.get(name) != trouble.summary:
        service.troubles[name] = trouble.summary
        log = structlog.get_logger("anubis.api")
        log.warning("not_ready", check=name, reason=trouble.summary, detail=trouble.detail)


async def _store(service: Service) -> _Trouble | None:
    try:
        await service.application.store.counts()
    except AnubisError as error:
        return _Trouble("the store does not answer", str(error))
    return None


async def _worker(service: Service) -> _Trouble | None:
    if service.broadcaster.is_closed:
        return _Trouble("the service is stopping")
    is_turning = service.pulse.is_turning(service.application.clock)
    return None if is_turning else _Trouble("the worker does not turn")


async def _engine(service: Service) -> _Trouble | None:
    folder = service.settings.runs
    if not os.access(folder, os.W_OK | os.X_OK):
        return _Trouble(
            "the engine's folder cannot be written to", f"{folder} cannot be written to"
        )
    free = shutil.disk_usage(folder).free
    if free >= LEAST_FREE:
        return None
    return _Trouble("the disk is nearly full", f"only {free} bytes are free for {folder}")


_LOOKS: dict[str, Callable[[Service], Awaitable[_Trouble | None]]] = {
    "store": _store,
    "worker": _worker,
    "engine": _engine,
}
