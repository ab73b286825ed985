"""Runs in one SQLite file: nothing to install, several processes at once, durable.

Belongs here: SQL (in ``.sql`` files, each query with a name and a sentence), the schema as
numbered migrations, the writer thread and the reading connection. Does not belong here: rules
about runs, which ``transitions`` holds for every store.

The parts, in the order of a call: ``store`` (the port), ``reading`` (on the event loop) or
``writing`` (the thread) with ``changes``; below them ``rows``, ``queries``, ``connecting`` and
``migrating``.
"""

from __future__ import annotations

from anubis.adapters.run_store.sqlite.store import SqliteRunStore

__all__ = ["SqliteRunStore"]
