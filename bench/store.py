"""Durable transitions per second: our writer with group commit beside what others would use.

A transition is one legal move of a run with the event that says so, synchronous=FULL, as the
runtime stores it. Peers do only the SQL of it (read the row, update it, insert the event), on the
same schema; ours also checks the lease and the table of moves and builds the run.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import importlib
import importlib.util
import pathlib
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.domain.run import ACTIVE, RunId, WorkerId
from anubis.testing import builders
from anubis.testing.clock import NOON

WORKER = WorkerId("bench")
SUBMITTERS = (1, 8, 64)
ROUNDS = 5
PATH = builders.PATH_TO_SUCCESS[:-1]  # active states only, so that all peers do the same work

UPDATE = "UPDATE run SET state = :state, version = version + 1, events = :number WHERE key = :run"
EVENT = (
    "INSERT INTO event (run, number, at, kind, message, data) "
    "VALUES (:run, :number, 0, 'state', '', '{}')"
)
ROW = "SELECT state, version, events FROM run WHERE key = :run"

Measured = Callable[[pathlib.Path, int, int], Awaitable[float]]


async def prepare(path: pathlib.Path, runs: int) -> Sequence[RunId]:
    """A store with runs that the worker holds."""
    async with SqliteRunStore.open(path) as store:
        document = builders.a_document()
        adding = (
            store.add(builders.a_run(number), document, builders.PLAN, "") for number in range(runs)
        )
        await asyncio.gather(*adding)
        held = await store.lease(
            WORKER, now=NOON, duration=builders.HOUR, states=ACTIVE, limit=runs
        )
    return [run.id for run in held]


async def ours(path: pathlib.Path, runs: int, submitters: int) -> float:
    """Transitions per second of SqliteRunStore."""
    waiting = list(await prepare(path, runs))
    async with SqliteRunStore.open(path) as store:

        async def submit() -> None:
            while waiting:
                run_id = waiting.pop()
                for state in PATH:
                    await store.apply(WORKER, builders.a_step(run_id, state))

        started = time.perf_counter()
        await asyncio.gather(*(submit() for _ in range(submitters)))
        return runs * len(PATH) / (time.perf_counter() - started)


async def plain(path: pathlib.Path, runs: int, _submitters: int) -> float:
    """Transitions per second of sqlite3, one transaction each; submitters would only queue up."""
    await prepare(path, runs)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    started = time.perf_counter()
    for run in range(1, runs + 1):
        for number, state in enumerate(PATH, start=2):
            change = {"run": run, "number": number, "state": state.value}
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(ROW, change).fetchone()
            connection.execute(UPDATE, change)
            connection.execute(EVENT, change)
            connection.execute("COMMIT")
    seconds = time.perf_counter() - started
    connection.close()
    return runs * len(PATH) / seconds


async def with_aiosqlite(path: pathlib.Path, runs: int, _submitters: int) -> float:
    """Transitions per second of aiosqlite, one transaction each on one connection."""
    aiosqlite = importlib.import_module("aiosqlite")
    await prepare(path, runs)
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await connection.execute("PRAGMA synchronous = FULL")
        started = time.perf_counter()
        for run in range(1, runs + 1):
            for number, state in enumerate(PATH, start=2):
                change = {"run": run, "number": number, "state": state.value}
                await connection.execute("BEGIN IMMEDIATE")
                await (await connection.execute(ROW, change)).fetchone()
                await connection.execute(UPDATE, change)
                await connection.execute(EVENT, change)
                await connection.execute("COMMIT")
        return runs * len(PATH) / (time.perf_counter() - started)


async def with_sqlalchemy(path: pathlib.Path, runs: int, _submitters: int) -> float:
    """Transitions per second of SQLAlchemy Core expressions, one transaction each."""
    sa = importlib.import_module("sqlalchemy")
    await prepare(path, runs)
    engine = sa.create_engine(f"sqlite:///{path}")
    sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = FULL"))
    tables = sa.MetaData()
    run_table = sa.Table("run", tables, autoload_with=engine)
    event_table = sa.Table("event", tables, autoload_with=engine)
    started = time.perf_counter()
    for run in range(1, runs + 1):
        for number, state in enumerate(PATH, start=2):
            with engine.begin() as connection:
                this = run_table.c.key == run
                chosen = sa.select(run_table.c.state, run_table.c.version).where(this)
                connection.execute(chosen).one()
                version = run_table.c.version + 1
                changed = {"state": state.value, "version": version, "events": number}
                connection.execute(sa.update(run_table).where(this).values(changed))
                connection.execute(
                    sa.insert(event_table).values(
                        run=run, number=number, at=0, kind="state", message="", data="{}"
                    )
                )
    seconds = time.perf_counter() - started
    engine.dispose()
    return runs * len(PATH) / seconds


async def measure(what: Measured, runs: int, submitters: int) -> float:
    """One figure, on a store of its own."""
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as folder:
        return await what(pathlib.Path(folder) / "store.db", runs, submitters)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Contender:
    """One row of the table."""

    name: str
    measured: Measured
    submitters: int = 1
    share: float = 0.25  #: of the transitions; those that wait for the disk each time get fewer


def contenders() -> Sequence[Contender]:
    """Plain sqlite3 first: it is the reference. Peers that are not installed say so."""
    rows = [Contender(name="plain sqlite3, one transaction each", measured=plain)]
    rows += [
        Contender(
            name=f"anubis, group commit, {submitters} submitters",
            measured=ours,
            submitters=submitters,
            share=0.25 if submitters == 1 else 1.0,
        )
        for submitters in SUBMITTERS
    ]
    peers: Mapping[str, Measured] = {"aiosqlite": with_aiosqlite, "sqlalchemy": with_sqlalchemy}
    for module, peer in peers.items():
        if importlib.util.find_spec(module) is None:
            print(f"{module}: skipped, it is not installed in this environment")
        else:
            rows.append(Contender(name=f"{module}, one transaction each", measured=peer))
    return rows


async def compare(transitions: int) -> None:
    """Interleaved rounds: disks change their mood from second to second, ratios less so."""
    rows = contenders()
    rates: dict[str, list[float]] = {row.name: [] for row in rows}
    for _ in range(ROUNDS):
        for row in rows:
            runs = max(64, int(transitions * row.share) // len(PATH))
            rates[row.name].append(await measure(row.measured, runs, row.submitters))
    reference = rates[rows[0].name]
    print(f"{'durable transitions':44}{'per second':>12}{'÷ plain':>10}")
    for name, found in rates.items():
        ratios = [mine / plain for mine, plain in zip(found, reference, strict=True)]
        print(f"{name:44}{statistics.median(found):12,.0f}{statistics.median(ratios):10.2f}")
    print(f"medians of {ROUNDS} rounds; goal: at least 5,000 per second with 64 submitters")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transitions", type=int, default=4000)
    asyncio.run(compare(parser.parse_known_args()[0].transitions))


if __name__ == "__main__":
    main()
