"""The wire of the original clients, over the same application calls as ``resources``."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
