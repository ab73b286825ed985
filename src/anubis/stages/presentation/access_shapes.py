"""The JSON of tokens and of the record, for ``--json`` and the HTTP API."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from anubis.domain.access import AuditEntry, Token
from anubis.stages.presentation import shapes


class TokenShape(TypedDict):
    """A token, without its secret. ``good`` says whether it opens anything now."""

    id: str
    user: str
    role: str
    note: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    good: bool


class AuditShape(TypedDict):
    """Something that somebody did, or was refused."""

    number: int
    at: str
    user: str
    token: str | None
    action: str
    target: str
    allowed: bool
    detail: str


def token_shape(token: Token, now: datetime) -> TokenShape:
    """A token as it is at ``now``."""
    return TokenShape(
        id=token.id,
        user=token.user,
        role=token.role.value,
        note=token.note,
        created_at=shapes.iso(token.created_at),
        expires_at=_maybe(token.expires_at),
        revoked_at=_maybe(token.revoked_at),
        last_used_at=_maybe(token.last_used_at),
        good=token.is_good(now),
    )


def audit_shape(entry: AuditEntry) -> AuditShape:
    """An entry of the record."""
    return AuditShape(
        number=entry.number,
        at=shapes.iso(entry.at),
        user=entry.user,
        token=entry.token,
        action=entry.action,
        target=entry.target,
        allowed=entry.allowed,
        detail=entry.detail,
    )


def _maybe(at: datetime | None) -> str | None:
    return None if at is None else shapes.iso(at)
