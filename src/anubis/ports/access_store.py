"""Remember tokens by their digest, and who did what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from anubis.domain.access import AuditEntry, Token, TokenId


class AccessStore(Protocol):
    """Methods are atomic but for one. Every method may raise StoreUnavailable; retrying is safe."""

    async def add_token(self, token: Token, digest: str) -> None:
        """Store a token by the digest of its secret; the secret itself is never given to us."""
        ...

    async def token_by_digest(self, digest: str) -> Token | None:
        """The token with this digest, revoked and expired ones included."""
        ...

    async def tokens(self) -> Sequence[Token]:
        """All tokens, newest first."""
        ...

    async def revoke(self, token_id: TokenId, *, now: datetime) -> Token:
        """Make a token useless. Revoking it again changes nothing. Raises TokenNotFound."""
        ...

    async def touch(self, token_id: TokenId, *, now: datetime) -> None:
        """Note that a token was used. Unknown ones are passed over."""
        ...

    async def note(self, entry: AuditEntry) -> None:
        """Add to the record. Its number is given by the store."""
        ...

    async def audit(self, *, before: int | None = None, limit: int = 100) -> Sequence[AuditEntry]:
        """The record, newest first, entries with a number below ``before``."""
        ...

    async def forget_before(self, moment: datetime) -> int:
        """Remove the entries of the record that are older than ``moment``; gives how many.

        The one method that is not atomic: a long record is removed in parts, so that others may
        write in between. Numbers are never given again.
        """
        ...
