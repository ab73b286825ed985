"""Several stores share one database without stepping on each other."""

from __future__ import annotations

import asyncio
import pathlib
import sqlite3

from anubis.adapters.access_store.sqlite import SqliteAccessStore
from anubis.adapters.action_store.sqlite import SqliteActionStore
from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.adapters.schedule_store.sqlite import SqliteScheduleStore
from anubis.adapters.sqlite import Database
from anubis.testing import builders
from anubis.testing.clock import NOON
from anubis.testing.contracts.run_store.given import an_ended_run
from anubis.testing.contracts.schedule_store import add


def documents(path: pathlib.Path) -> int:
    connection = sqlite3.connect(path)
    [[count]] = connection.execute("SELECT count(*) FROM document")
    connection.close()
    return int(count)


async def test_a_descriptor_stays_until_neither_run_nor_schedule_has_it(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "a.db"
    async with Database.open(path) as database:
        runs, schedules = SqliteRunStore(database), SqliteScheduleStore(database)
        schedule = builders.a_schedule()
        for number, schedule_goes_first in enumerate((True, False)):
            await add(schedules, schedule)
            run_id = await an_ended_run(runs, number)
            assert documents(path) == 1
            if schedule_goes_first:
                await schedules.delete(schedule.id)
                assert await runs.document(run_id) == builders.a_document()
                await runs.delete(run_id)
            else:
                await runs.delete(run_id)
                assert await schedules.document(schedule.id) == builders.a_document()
                await schedules.delete(schedule.id)
            assert documents(path) == 0


async def test_changes_of_all_stores_go_through_one_thread(tmp_path: pathlib.Path) -> None:
    async with Database.open(tmp_path / "a.db") as database:
        schedules, access = SqliteScheduleStore(database), SqliteAccessStore(database)
        actions, runs = SqliteActionStore(database), SqliteRunStore(database)
        await asyncio.gather(
            add(schedules, builders.a_schedule()),
            access.note(builders.an_audit_entry()),
            actions.add(builders.a_submission()),
            runs.add(builders.a_run(), builders.a_document(), builders.PLAN, ""),
        )
        assert await schedules.get(builders.a_schedule().id) == builders.a_schedule()
        assert len(await access.audit()) == 1
        assert await actions.get(builders.a_submission().id)
        assert await runs.get(builders.a_run_id()) == builders.a_run()


async def test_a_token_that_is_used_all_the_time_is_written_once_a_minute(
    tmp_path: pathlib.Path,
) -> None:
    async with Database.open(tmp_path / "a.db") as database:
        access, runs = SqliteAccessStore(database), SqliteRunStore(database)
        token = builders.a_token()
        await access.add_token(token, builders.a_digest())
        await access.touch(token.id, now=NOON)
        before = runs.change_token()
        for second in range(60):
            await access.touch(token.id, now=NOON.replace(second=second))
        assert runs.change_token() == before
