"""The access store port over a SQLite database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from anubis.adapters.access_store import rules
from anubis.adapters.access_store.sqlite import statements
from anubis.adapters.sqlite import Database
from anubis.domain.access import AuditEntry, Token, TokenId

AT_ONCE = 10_000
"""Lines of the record that one change removes: some ten milliseconds, for which others wait."""


class SqliteAccessStore:
    """Tokens and the record in a database that other stores and processes may use at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_token(self, token: Token, digest: str) -> None:
        """See the port."""
        await self._database.do(statements.add_token(token, digest))

    async def token_by_digest(self, digest: str) -> Token | None:
        """See the port."""
        return self._database.read(statements.token_by_digest, digest)

    async def tokens(self) -> Sequence[Token]:
        """See the port."""
        return self._database.read(statements.tokens)

    async def revoke(self, token_id: TokenId, *, now: datetime) -> Token:
        """See the port."""
        change = statements.change_token(token_id, lambda token: rules.revoked(token, now))
        token = await self._database.do(change)
        if token is None:
            raise rules.not_found(token_id)
        return token

    async def touch(self, token_id: TokenId, *, now: datetime) -> None:
        """See the port. Looks before it writes: most requests come within a minute of another."""
        token = self._database.read(statements.token_by_id, token_id)
        if token is None or rules.used(token, now) == token:
            return
        await self._database.do(
            statements.change_token(token_id, lambda token: rules.used(token, now))
        )

    async def note(self, entry: AuditEntry) -> None:
        """See the port."""
        await self._database.do(statements.note(entry))

    async def audit(self, *, before: int | None = None, limit: int = 100) -> Sequence[AuditEntry]:
        """See the port."""
        return self._database.read(statements.audit, before, limit)

    async def forget_before(self, moment: datetime) -> int:
        """See the port."""
        forgotten = 0
        while True:
            count = await self._database.do(statements.forget_before(moment, AT_ONCE))
            forgotten += count
            if count < AT_ONCE:
                return forgotten
