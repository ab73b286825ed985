"""The tokens of a home, for whoever owns the home: no token is needed to make the first one."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence

from anubis.adapters.access_store.sqlite import SqliteAccessStore
from anubis.adapters.clock.system import SystemClock
from anubis.adapters.sqlite import Database
from anubis.bootstrap import embedded
from anubis.domain.access import AuditEntry, Role, Token, TokenId
from anubis.ports.access_store import AccessStore
from anubis.ports.clock import Clock
from anubis.settings.model import Settings
from anubis.stages.access import tokens
from anubis.stages.access.tokens import Issued


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LocalTokens:
    """Makes, lists and revokes tokens, and puts on record who did."""

    access: AccessStore
    clock: Clock
    by: str  #: the person at this terminal

    async def create(
        self, user: str, role: Role, *, note: str = "", days: int | None = None
    ) -> Issued:
        """Make a token. Its secret is in this answer and nowhere else."""
        wish = tokens.Wish(user=user, role=role, note=note, days=days or tokens.DEFAULT_DAYS)
        issued = await tokens.issue(wish, self.access, self.clock)
        await self._note("token.create", issued.token)
        return issued

    async def all(self) -> Sequence[Token]:
        """Every token, newest first, without secrets."""
        return await self.access.tokens()

    async def revoke(self, token_id: TokenId) -> Token:
        """Make a token open nothing any more. Raises TokenNotFound."""
        token = await self.access.revoke(token_id, now=self.clock.now())
        await self._note("token.revoke", token)
        return token

    async def _note(self, action: str, token: Token) -> None:
        detail = f"for {token.user}, {token.role}; on the machine of the service"
        entry = AuditEntry(
            at=self.clock.now(), user=self.by, action=action, target=token.id, detail=detail
        )
        await self.access.note(entry)


@contextlib.asynccontextmanager
async def opened(settings: Settings, *, by: str) -> AsyncIterator[LocalTokens]:
    """Open the tokens of a home, which is made if it is not there."""
    embedded.make_home(settings)
    async with Database.open(settings.database) as database:
        yield LocalTokens(access=SqliteAccessStore(database), clock=SystemClock(), by=by)
