"""Who did what, for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel

from anubis.domain.access import Principal, Role
from anubis.entrypoints.api import access
from anubis.entrypoints.api.resources import documentation as docs
from anubis.stages.presentation import access_shapes


class AuditModel(BaseModel):
    """Something that somebody did, or was refused."""

    number: int
    at: str
    user: str
    token: str | None
    action: str
    target: str
    allowed: bool
    detail: str


class Audit(BaseModel):
    """Entries of the record, newest first. ``next`` is the ``before`` of the next page."""

    entries: list[AuditModel]
    next: int | None


router = APIRouter(prefix="/api/v1", tags=["access"])


_ENTRY = {
    "number": 17,
    "at": "2024-05-17T12:00:00.000000Z",
    "user": "ada",
    "token": "4fd1c2a9",
    "action": "run.cancel",
    "target": "018f8583-4a00-7000-9fec-f0f8a0d2f3a7",
    "allowed": True,
    "detail": "",
}


@router.get(
    "/audit",
    operation_id="listAudit",
    summary="List what was done and refused",
    responses=docs.example({"entries": [_ENTRY], "next": None}),
)
async def get_audit(
    request: Request,
    _: Annotated[Principal, Depends(access.needs(Role.ADMIN))],
    before: Annotated[
        int | None,
        Query(ge=1, le=2**63 - 1, description="Only entries with a lower number.", examples=[18]),
    ] = None,
    limit: Annotated[
        int, Query(ge=1, le=1000, description="How many at most.", examples=[100])
    ] = 100,
) -> Audit:
    """List what was done and refused, newest first."""
    entries = await access.service(request).access.audit(before=before, limit=limit)
    following = entries[-1].number if len(entries) == limit else None
    shown = [AuditModel.model_validate(access_shapes.audit_shape(entry)) for entry in entries]
    return Audit(entries=shown, next=following)
