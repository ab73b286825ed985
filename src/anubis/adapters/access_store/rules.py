"""What an access store refuses, and how exactly it remembers. Pure, so that all stores agree."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from anubis.domain import errors
from anubis.domain.access import Token, TokenId


def taken(token: Token) -> errors.NotPossible:
    """The error for a token whose id or secret another one has. It does not say which."""
    return errors.NotPossible(f"token {token.id} cannot be added: one like it exists already")


def not_found(token_id: TokenId) -> errors.TokenNotFound:
    """The error every store raises for an id it does not know."""
    return errors.TokenNotFound(f"there is no token {token_id}")


def revoked(token: Token, now: datetime) -> Token:
    """The token once it opens nothing; the first time counts."""
    return token if token.revoked_at else dataclasses.replace(token, revoked_at=now)


def used(token: Token, now: datetime) -> Token:
    """The token once it was used, to the minute: the same object if that is known already."""
    minute = now.replace(second=0, microsecond=0)
    if token.last_used_at is not None and minute <= token.last_used_at:
        return token
    return dataclasses.replace(token, last_used_at=minute)
