"""Tokens and the record of what people did, in a SQLite database.

The parts, in the order of a call: ``store`` (the port), ``statements`` (questions and changes as
functions of a connection); below them ``rows``.
"""

from __future__ import annotations

from anubis.adapters.access_store.sqlite.store import SqliteAccessStore

__all__ = ["SqliteAccessStore"]
