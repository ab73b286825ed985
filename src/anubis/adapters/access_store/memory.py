"""Tokens and the record in plain lists. Product code, not a mock: it keeps every promise of the
port except surviving the process. No method awaits anything, so each is atomic on its event loop.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from anubis.adapters.access_store import rules
from anubis.domain.access import AuditEntry, Token, TokenId


class MemoryAccessStore:
    """An access store that lives and dies with its process."""

    def __init__(self) -> None:
        self._tokens: dict[TokenId, Token] = {}
        self._ids: dict[str, TokenId] = {}  # by digest
        self._audit: list[AuditEntry] = []
        self._numbers = itertools.count(1)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls) -> AsyncIterator[MemoryAccessStore]:
        """Give an empty store; there to be exchangeable with stores that must be closed."""
        yield cls()

    async def add_token(self, token: Token, digest: str) -> None:
        """See the port."""
        if self._ids.get(digest) == token.id:
            return
        if token.id in self._tokens or digest in self._ids:
            raise rules.taken(token)
        self._tokens[token.id] = token
        self._ids[digest] = token.id

    async def token_by_digest(self, digest: str) -> Token | None:
        """See the port."""
        token_id = self._ids.get(digest)
        return None if token_id is None else self._tokens[token_id]

    async def tokens(self) -> Sequence[Token]:
        """See the port."""
        age = sorted(self._tokens.values(), key=lambda token: (token.created_at, token.id))
        return tuple(reversed(age))

    async def revoke(self, token_id: TokenId, *, now: datetime) -> Token:
        """See the port."""
        if token_id not in self._tokens:
            raise rules.not_found(token_id)
        self._tokens[token_id] = rules.revoked(self._tokens[token_id], now)
        return self._tokens[token_id]

    async def touch(self, token_id: TokenId, *, now: datetime) -> None:
        """See the port."""
        if token_id in self._tokens:
            self._tokens[token_id] = rules.used(self._tokens[token_id], now)

    async def note(self, entry: AuditEntry) -> None:
        """See the port."""
        self._audit.append(dataclasses.replace(entry, number=next(self._numbers)))

    async def audit(self, *, before: int | None = None, limit: int = 100) -> Sequence[AuditEntry]:
        """See the port."""
        older = (
            entry for entry in reversed(self._audit) if before is None or entry.number < before
        )
        return tuple(itertools.islice(older, max(0, limit)))

    async def forget_before(self, moment: datetime) -> int:
        """See the port."""
        kept = [entry for entry in self._audit if entry.at >= moment]
        forgotten, self._audit = len(self._audit) - len(kept), kept
        return forgotten
