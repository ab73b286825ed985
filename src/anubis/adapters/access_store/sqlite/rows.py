"""Translate between rows and tokens, and lines of the record."""

from __future__ import annotations

from anubis.adapters.sqlite.values import (
    Parameters,
    Row,
    instant,
    maybe_instant,
    maybe_micros,
    maybe_storable,
    micros,
    storable,
)
from anubis.domain.access import AuditEntry, Role, Token


def token(row: Row) -> Token:
    """The token of a row of any query that gives tokens."""
    token_id, user, role, note, created_at, expires_at, revoked_at, last_used_at = row
    return Token(
        id=token_id,
        user=user,
        role=Role(role),
        note=note,
        created_at=instant(created_at),
        expires_at=maybe_instant(expires_at),
        revoked_at=maybe_instant(revoked_at),
        last_used_at=maybe_instant(last_used_at),
    )


def columns(stored: Token) -> Parameters:
    """Parameters of ``add_token`` and ``change_token``, without the digest."""
    return {
        "id": storable(stored.id),
        "user": storable(stored.user),
        "role": stored.role.value,
        "note": storable(stored.note),
        "created_at": micros(stored.created_at),
        "expires_at": maybe_micros(stored.expires_at),
        "revoked_at": maybe_micros(stored.revoked_at),
        "last_used_at": maybe_micros(stored.last_used_at),
    }


def entry(row: Row) -> AuditEntry:
    """The line of a row of ``audit``."""
    number, at, user, token_id, action, target, allowed, detail = row
    return AuditEntry(
        number=number,
        at=instant(at),
        user=user,
        token=token_id,
        action=action,
        target=target,
        allowed=bool(allowed),
        detail=detail,
    )


def new_entry(new: AuditEntry) -> Parameters:
    """Parameters of ``note``."""
    return {
        "at": micros(new.at),
        "user": storable(new.user),
        "token": maybe_storable(new.token),
        "action": storable(new.action),
        "target": storable(new.target),
        "allowed": int(new.allowed),
        "detail": storable(new.detail),
    }
