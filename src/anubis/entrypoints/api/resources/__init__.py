"""The resources under ``/api/v1``: runs and all that belongs to them."""

from __future__ import annotations

from fastapi import APIRouter

ROUTERS: tuple[APIRouter, ...] = ()
"""Every router of this room, with its full prefix."""
