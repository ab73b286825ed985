"""Who may do what: roles, tokens, the person behind a request, and the record of what they did."""

from __future__ import annotations

import dataclasses
import enum
from datetime import datetime
from typing import NewType

TokenId = NewType("TokenId", str)
"""Short and public: names a token in lists and in the record, and gives no access."""


class Role(enum.StrEnum):
    """What a person may do. Each role may do all that the one before may."""

    VIEWER = "viewer"  #: look at everything
    SUBMITTER = "submitter"  #: submit; cancel and purge their own
    ADMIN = "admin"  #: cancel and purge anybody's, make and revoke tokens

    def includes(self, other: Role) -> bool:
        """Whether this role may do all that ``other`` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """An API token, without its secret: that is shown once, and only its digest is stored."""

    id: TokenId
    user: str  #: on whose behalf it speaks: the submitter of its runs
    role: Role
    note: str = ""  #: what it is for, in its maker's words
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None  #: to the minute; writing more often would cost

    def is_good(self, now: datetime) -> bool:
        """Whether it opens anything at ``now``."""
        if self.revoked_at is not None:
            return False
        return self.expires_at is None or now < self.expires_at


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """The person behind a request."""

    user: str
    role: Role
    token: TokenId | None = None  #: None on loopback without tokens

    def may_change(self, owner: str) -> bool:
        """Whether they may cancel, purge or pause what belongs to ``owner``."""
        return self.role is Role.ADMIN or (
            self.role.includes(Role.SUBMITTER) and self.user == owner
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry:
    """One thing somebody did, or was refused."""

    number: int = 0  #: given by the store; grows
    at: datetime
    user: str
    token: TokenId | None = None
    action: str  #: a short verb with its noun: ``run.submit``, ``token.revoke``
    target: str = ""  #: the id of what it was done to
    allowed: bool = True
    detail: str = ""  #: a sentence for people; never a secret
