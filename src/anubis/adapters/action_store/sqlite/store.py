"""The action store port over a SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from anubis.adapters.sqlite import Database, queries, values
from anubis.domain.action import Action, ActionId, ActionKind

_SQL = queries.Queries(__file__, "statements.sql")


class SqliteActionStore:
    """Messages in a database that other stores and other processes may use at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, action: Action) -> None:
        """See the port."""

        def change(connection: sqlite3.Connection) -> None:
            connection.execute(_SQL["add_action"], _columns(action))

        await self._database.do(change)

    async def get(self, action_id: ActionId) -> Action | None:
        """See the port."""
        found = self._database.read(_actions, "action_by_id", {"id": values.storable(action_id)})
        return found[0] if found else None

    async def commands(self, target: str) -> Sequence[Action]:
        """See the port."""
        return self._database.read(_actions, "commands", {"target": values.storable(target)})

    async def submissions(
        self, client_id: str, *, after: tuple[int, str], limit: int
    ) -> Sequence[Action]:
        """See the port."""
        millis, action_id = after
        asked: values.Parameters = {
            "client_id": values.storable(client_id),
            "millis": values.integer(millis),
            "id": values.storable(action_id),
            "limit": values.limit(limit),
        }
        return self._database.read(_actions, "submissions", asked)


def _actions(
    connection: sqlite3.Connection, name: str, parameters: values.Parameters
) -> tuple[Action, ...]:
    return tuple(map(_action, connection.execute(_SQL[name], parameters)))


def _action(row: values.Row) -> Action:
    action_id, kind, client_id, at, target, envelope = row
    return Action(
        id=action_id,
        kind=ActionKind(kind),
        client_id=client_id,
        at=values.instant(at),
        target=target,
        envelope=envelope,
    )


def _columns(action: Action) -> values.Parameters:
    return {
        "id": values.storable(action.id),
        "kind": action.kind.value,
        "client_id": values.storable(action.client_id),
        "at": values.micros(action.at),
        "target": values.storable(action.target),
        "envelope": values.storable(action.envelope),
    }
