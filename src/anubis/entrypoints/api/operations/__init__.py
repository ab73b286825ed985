"""Routes about the service itself: is it well, what does it count, who may ask, who did what."""

from __future__ import annotations

from fastapi import APIRouter

from anubis.entrypoints.api.operations import audit, health, metrics, tokens

ROUTERS: tuple[APIRouter, ...] = (health.router, metrics.router, tokens.router, audit.router)
