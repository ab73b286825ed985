"""Runs in a SQLite database.

Belongs here: what is asked and changed, as SQL (in ``.sql`` files, each query with a name and a
sentence). Does not belong here: rules about runs, which ``transitions`` holds for every store, and
how a database is opened, read and written, which ``anubis.adapters.sqlite`` holds for every port.

The parts, in the order of a call: ``store`` (the port); ``reading``, ``paging``, ``queueing`` and
``history`` (questions, on the event loop) and ``changes`` (in the writer's thread); below them
``rows``.
"""

from __future__ import annotations

from anubis.adapters.run_store.sqlite.store import SqliteRunStore

__all__ = ["SqliteRunStore"]
