"""Tokens, one line each, and the sentence that goes with a new one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from anubis.domain.access import Token
from anubis.entrypoints.cli.rendering import text
from anubis.entrypoints.cli.rendering.columns import Cell, Column, table

_COLUMNS = (
    Column(title="token"),
    Column(title="user", shortens_to=8),
    Column(title="role"),
    Column(title="state"),
    Column(title="expires", leaves=2),
    Column(title="last used", leaves=1),
    Column(title="note", shortens_to=8, leaves=0),
)


def introduction(token: Token) -> str:
    """What a new token is, for the person who hands it on."""
    until = f" until {text.moment(token.expires_at)}" if token.expires_at else ""
    return f"token {token.id} for {token.user}, {token.role}{until}; its secret is shown once:"


def tokens_table(tokens: Sequence[Token], now: datetime, *, width: int | None) -> str:
    """The tokens in the order given, cut to a terminal of this width; whole without one."""
    if not tokens:
        return "no tokens\n"
    return table(_COLUMNS, [_row(token, now) for token in tokens], width=width)


def _row(token: Token, now: datetime) -> list[Cell]:
    state, colour = _state(token, now)
    return [
        Cell(text=token.id),
        Cell(text=text.printable(token.user)),
        Cell(text=token.role.value),
        Cell(text=state, colour=colour),
        Cell(text=text.moment(token.expires_at) if token.expires_at else "never"),
        Cell(text=text.age(token.last_used_at, now) if token.last_used_at else "never"),
        Cell(text=text.printable(token.note)),
    ]


def _state(token: Token, now: datetime) -> tuple[str, str]:
    if token.revoked_at is not None:
        return "revoked", "red"
    return ("good", "green") if token.is_good(now) else ("expired", "yellow")
