"""Tokens over the wire, for admins; and who the asker is."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, Field

from anubis.domain.access import Principal, Role, Token, TokenId
from anubis.entrypoints.api import access
from anubis.entrypoints.api.resources import documentation as docs
from anubis.stages.access import tokens
from anubis.stages.presentation import access_shapes

Admin = Annotated[Principal, Depends(access.needs(Role.ADMIN))]
Viewer = Annotated[Principal, Depends(access.needs(Role.VIEWER))]


class TokenWish(BaseModel):
    """The token to be made."""

    user: str = Field(examples=["ada"])
    role: Role = Role.SUBMITTER
    note: str = Field(default="", examples=["nightly runs"])
    days: int | None = Field(default=None, ge=1, le=tokens.MOST_DAYS, examples=[90])
    """How long it is good; 90 unless given."""


class TokenModel(BaseModel):
    """A token, without its secret. ``good`` says whether it opens anything now."""

    id: str
    user: str
    role: Role
    note: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    good: bool


class TokenMade(BaseModel):
    """A new token; the secret is never shown again."""

    token: TokenModel
    secret: str


class Tokens(BaseModel):
    """All tokens, newest first."""

    tokens: list[TokenModel]


class Me(BaseModel):
    """Who asks."""

    user: str
    role: Role
    token: str | None
    requires_tokens: bool


router = APIRouter(prefix="/api/v1", tags=["access"])


_TOKEN = {
    "id": "4fd1c2a9",
    "user": "ada",
    "role": "submitter",
    "note": "nightly runs",
    "created_at": "2024-05-17T12:00:00.000000Z",
    "expires_at": "2024-08-15T12:00:00.000000Z",
    "revoked_at": None,
    "last_used_at": None,
    "good": True,
}


@router.get(
    "/me",
    operation_id="getMe",
    summary="Say who asks",
    responses=docs.example(
        {"user": "ada", "role": "submitter", "token": "4fd1c2a9", "requires_tokens": True}
    ),
)
async def get_me(request: Request, who: Viewer) -> Me:
    """Say who the asker is and what they may do."""
    required = access.service(request).requires_tokens
    return Me(user=who.user, role=who.role, token=who.token, requires_tokens=required)


@router.post(
    "/tokens",
    operation_id="createToken",
    summary="Make a token",
    status_code=201,
    responses=docs.example({"token": _TOKEN, "secret": "anb_…"}, status=201),
    openapi_extra=docs.body_example({"user": "ada", "note": "nightly runs"}),
)
async def post_token(request: Request, wish: TokenWish, _: Admin) -> TokenMade:
    """Make a token. Its secret is in this answer and nowhere else."""
    here = access.service(request)
    days = wish.days or tokens.DEFAULT_DAYS
    wanted = tokens.Wish(user=wish.user, role=wish.role, note=wish.note, days=days)
    issued = await tokens.issue(wanted, here.access, here.application.clock)
    await access.note(request, "token.create", issued.token.id, detail=_said(issued.token))
    return TokenMade(token=_shown(issued.token, here.application.clock.now()), secret=issued.secret)


@router.get(
    "/tokens",
    operation_id="listTokens",
    summary="List tokens",
    responses=docs.example({"tokens": [_TOKEN]}),
)
async def get_tokens(request: Request, _: Admin) -> Tokens:
    """List all tokens, newest first, without their secrets."""
    here = access.service(request)
    now = here.application.clock.now()
    found = await here.access.tokens()
    return Tokens(tokens=[_shown(token, now) for token in found])


@router.delete(
    "/tokens/{token_id}",
    operation_id="revokeToken",
    summary="Revoke a token",
    responses=docs.example(_TOKEN),
)
async def delete_token(
    request: Request,
    token_id: Annotated[str, Path(description="The id of a token.", examples=["4fd1c2a9"])],
    _: Admin,
) -> TokenModel:
    """Revoke a token: it opens nothing from now on."""
    here = access.service(request)
    now = here.application.clock.now()
    token = await here.access.revoke(TokenId(token_id), now=now)
    await access.note(request, "token.revoke", token.id, detail=_said(token))
    return _shown(token, now)


def _said(token: Token) -> str:
    return f"for {token.user}, {token.role}"


def _shown(token: Token, now: datetime) -> TokenModel:
    return TokenModel.model_validate(access_shapes.token_shape(token, now))
