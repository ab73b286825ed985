"""Questions and changes, as functions of a connection. Changes run in the writer's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime

from anubis.adapters.access_store import rules
from anubis.adapters.access_store.sqlite import rows
from anubis.adapters.sqlite import queries, values
from anubis.adapters.sqlite.writing import Change
from anubis.domain.access import AuditEntry, Token, TokenId

_SQL = queries.Queries(__file__, "statements.sql")


def token_by_digest(connection: sqlite3.Connection, digest: str) -> Token | None:
    """The token whose secret has this digest."""
    return _token(connection, "token_by_digest", {"digest": values.storable(digest)})


def token_by_id(connection: sqlite3.Connection, token_id: TokenId) -> Token | None:
    """One token by its public name."""
    return _token(connection, "token_by_id", {"id": values.storable(token_id)})


def _token(
    connection: sqlite3.Connection, name: str, parameters: values.Parameters
) -> Token | None:
    found = connection.execute(_SQL[name], parameters).fetchone()
    return None if found is None else rows.token(found)


def tokens(connection: sqlite3.Connection) -> tuple[Token, ...]:
    """All tokens, newest first."""
    return tuple(map(rows.token, connection.execute(_SQL["tokens"])))


def audit(connection: sqlite3.Connection, before: int | None, limit: int) -> tuple[AuditEntry, ...]:
    """The record, newest first."""
    end = values.LARGEST if before is None else values.integer(before)
    found = connection.execute(_SQL["audit"], {"before": end, "limit": values.limit(limit)})
    return tuple(map(rows.entry, found))


def add_token(token: Token, digest: str) -> Change[None]:
    """Store a token, unless it is there; see the port."""

    def change(connection: sqlite3.Connection) -> None:
        same_secret = token_by_digest(connection, digest)
        if same_secret is not None and same_secret.id == token.id:
            return
        if same_secret is not None or token_by_id(connection, token.id) is not None:
            raise rules.taken(token)
        columns = {**rows.columns(token), "digest": values.storable(digest)}
        connection.execute(_SQL["add_token"], columns)

    return change


def change_token(token_id: TokenId, rule: Callable[[Token], Token]) -> Change[Token | None]:
    """Change a token by a rule; nothing is written if the rule changes nothing."""

    def change(connection: sqlite3.Connection) -> Token | None:
        stored = token_by_id(connection, token_id)
        if stored is None:
            return None
        after = rule(stored)
        if after != stored:
            connection.execute(_SQL["change_token"], rows.columns(after))
        return after

    return change


def note(entry: AuditEntry) -> Change[None]:
    """Add to the record; see the port."""

    def change(connection: sqlite3.Connection) -> None:
        connection.execute(_SQL["note"], rows.new_entry(entry))

    return change


def forget_before(moment: datetime, limit: int) -> Change[int]:
    """Remove the oldest lines of the record before a moment, at most ``limit``; gives how many."""

    def change(connection: sqlite3.Connection) -> int:
        asked = {"before": values.micros(moment), "limit": values.limit(limit)}
        return connection.execute(_SQL["forget_audit"], asked).rowcount

    return change
