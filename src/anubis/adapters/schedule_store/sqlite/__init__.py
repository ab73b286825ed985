"""Schedules in a SQLite database, beside the runs they fire.

The parts, in the order of a call: ``store`` (the port), ``reading`` (questions, on the event loop)
and ``changes`` (in the writer's thread); below them ``rows``.
"""

from __future__ import annotations

from anubis.adapters.schedule_store.sqlite.store import SqliteScheduleStore

__all__ = ["SqliteScheduleStore"]
