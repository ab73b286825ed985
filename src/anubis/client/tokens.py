"""The tokens of a service. Only admins may look at them, make and revoke them."""

from __future__ import annotations

from collections.abc import Sequence

from anubis.client import accounts, calling
from anubis.client.calling import Call, segment
from anubis.client.fields import Fields
from anubis.client.transport import Transport
from anubis.domain.access import Role, Token, TokenId
from anubis.stages.access.tokens import Issued


class TokensClient:
    """Makes, lists and revokes tokens."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self, user: str, role: Role, *, note: str = "", days: int | None = None
    ) -> Issued:
        """Make a token. Its secret is in this answer and nowhere else, so the call is not repeated:
        a token whose secret got lost would stay behind.
        """
        body = {"user": user, "role": role.value, "note": note, "days": days}
        answer = await self._transport.send(calling.post("/tokens", body))
        return accounts.issued(Fields(answer.json(), "answer"))

    async def all(self) -> Sequence[Token]:
        """Every token, without secrets."""
        answer = await self._transport.send(Call(path="/tokens"))
        return [accounts.token(one) for one in Fields(answer.json(), "tokens").parts("tokens")]

    async def revoke(self, token_id: TokenId) -> Token:
        """Make a token open nothing any more. Revoking it again changes nothing."""
        call = Call(method="DELETE", path=f"/tokens/{segment(token_id)}")
        return accounts.token(Fields((await self._transport.send(call)).json(), "token"))
