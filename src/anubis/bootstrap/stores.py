"""The stores of one home.

Stores ── Database               <home>/anubis.sqlite, shared by all that keep rows
       ├─ SqliteRunStore
       ├─ SqliteScheduleStore
       ├─ LocalLogStore          <home>/logs
       ├─ DirectorySeriesStore   <home>/series
       └─ DirectoryScriptStore   <home>/scripts
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator

from anubis.adapters.clock.system import SystemClock
from anubis.adapters.log_store.local import LocalLogStore
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.adapters.schedule_store.sqlite import SqliteScheduleStore
from anubis.adapters.script_store.directory import DirectoryScriptStore
from anubis.adapters.series_store.directory import DirectorySeriesStore
from anubis.adapters.sqlite import Database
from anubis.runtime import pending
from anubis.settings.model import Settings


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Stores:
    """What is kept, open."""

    database: Database  #: for the stores that only some need
    runs: SqliteRunStore
    schedules: SqliteScheduleStore
    logs: LocalLogStore
    series: DirectorySeriesStore
    scripts: DirectoryScriptStore

    async def has_work(self) -> bool:
        """Whether any run has not ended, or any schedule will fire."""
        return await pending.has_work(self.runs, self.schedules)


@contextlib.asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Stores]:
    """Open the stores of a home, which must be there. Raises what ``Database.open`` does."""
    async with Database.open(settings.database) as database:
        yield Stores(
            database=database,
            runs=SqliteRunStore(database),
            schedules=SqliteScheduleStore(database),
            logs=LocalLogStore(settings.logs),
            series=DirectorySeriesStore(settings.series),
            scripts=DirectoryScriptStore(
                settings.scripts, SystemClock(), most=settings.scripts_bytes
            ),
        )
