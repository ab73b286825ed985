"""Messages of the original wire in a SQLite database, beside the runs they asked for."""

from __future__ import annotations

from anubis.adapters.action_store.sqlite.store import SqliteActionStore

__all__ = ["SqliteActionStore"]
