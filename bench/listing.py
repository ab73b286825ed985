"""What a reader waits for in a store of ten thousand runs and of a million.

Both stores are built with bulk SQL in a temporary folder, on our schema, and both have ten thousand
more runs of twenty people that wait. Every figure is the median over many calls of the store's own
methods: SQL, decoding and all. The ratio is what counts: a reader must not notice how much history
there is.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from anubis.adapters.run_store.sqlite import SqliteRunStore
from anubis.domain.run import RunId, RunState
from anubis.ports.history import TrendQuery
from anubis.ports.run_reader import RunQuery
from anubis.ports.run_store import RunStore
from anubis.testing.clock import NOON

SMALL = 10_000
WAITING = 10_000
CALLS = 200

Question = Callable[[], Awaitable[object]]

BULK = """
INSERT INTO document (sha, content) VALUES ('bench', x'00');

CREATE TEMP TABLE n AS
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT {runs})
SELECT n, printf('%08x-%04x-7%03x-8%03x-%012x', 26000000 + n / 65536, n % 65536,
        n * 7919 % 4096, n * 104729 % 4096, n) AS id,
    CASE WHEN n > {runs} - 20 THEN 'RUNNING' WHEN n % 50 = 7 THEN 'FAILED'
        ELSE 'SUCCEEDED' END AS state
FROM numbers;

INSERT INTO run (key, id, state, version, benchmark, engine, descriptor_sha, submitter, labels,
    family, submitted_at, state_since, deadline, started_at, ended_at, outcome, events,
    document_name, document_directory)
SELECT n, id, state, 9, 'benchmark-' || (n * 31 % 200), 'process', 'bench', 'user-' || (n % 20),
    json_array(json_array('gpu', 'g' || (n % 7)), json_array('team', 't' || (n % 40))),
    CASE WHEN n % 10 = 0 THEN 'family-' || (n / 1000) END, n, n, n + 1, n,
    iif(state = 'RUNNING', NULL, n + 2),
    iif(state = 'RUNNING', NULL, json_object('state', state, 'reason', 'the program ended',
        'unit', 'benchmark', 'exit_code', 0, 'signal', NULL, 'last_lines', json_array())),
    3, x'61', x'62'
FROM n ORDER BY n;

INSERT INTO run (id, state, version, benchmark, engine, descriptor_sha, submitter, labels,
    submitted_at, state_since, deadline, events, document_name, document_directory, priority)
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers LIMIT {waiting})
SELECT printf('00000000-0000-7000-8000-%012x', n), 'QUEUED', 4, 'benchmark-1', 'process', 'bench',
    'user-' || (n % 20), '[]', n, n, n + 1, 0, x'61', x'62', n % 3
FROM numbers;

INSERT INTO label (name, value, id) SELECT 'gpu', 'g' || (n % 7), id FROM n ORDER BY 1, 2, 3;
INSERT INTO label (name, value, id) SELECT 'team', 't' || (n % 40), id FROM n ORDER BY 1, 2, 3;

INSERT INTO event (run, number, at, kind, message, data)
SELECT n, 1, n, 'state', 'submitted', '{{"from": null, "to": "SUBMITTED"}}' FROM n
UNION ALL SELECT n, 2, n, 'state', 'the program runs', '{{"from": "STARTING", "to": "RUNNING"}}'
FROM n UNION ALL SELECT n, 3, n, 'note', 'a note', '{{}}' FROM n ORDER BY 1, 2;

INSERT INTO summary (run, unit, source, name, units, count, mean, median, minimum, maximum, std,
    p90, p95, p99, first, last)
SELECT n, 'benchmark', 'pattern', name, '', 100, n, n, n, n, 1, n, n, n, n, n
FROM n, (SELECT 'accuracy' AS name UNION ALL SELECT 'loss') ORDER BY 1, 2, 3, 4;
"""


async def build(path: pathlib.Path, runs: int) -> None:
    """Fill a store. Indexes are made after the rows, which is several times faster."""
    async with SqliteRunStore.open(path):
        pass
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    ).fetchall()
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    connection.executescript(BULK.format(runs=runs, waiting=WAITING))
    for _, sql in indexes:
        connection.execute(sql)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def questions(store: RunStore, middle: RunId) -> Mapping[str, Question]:
    """What is measured, by name."""
    return {**pages(store, middle), **single(store, middle), **of_a_service(store)}


def of_a_service(store: RunStore) -> Mapping[str, Question]:
    """What only a service asks."""
    queued = {RunState.QUEUED}
    trend = TrendQuery(benchmark="benchmark-31", metric="loss")
    return {
        "heads of the queue": lambda: store.heads(now=NOON, states=queued, each=1),
        "100 events of the feed": lambda: store.feed(after=20_000, limit=100),
        "trend of 50 runs": lambda: store.trend(trend),
        "10 families": lambda: store.families(limit=10),
        "runs of one person that wait": lambda: store.active_of("user-3", limit=1000),
    }


def pages(store: RunStore, middle: RunId) -> Mapping[str, Question]:
    """Lists."""
    failed = {RunState.FAILED}
    query = RunQuery
    return {
        "newest 50": lambda: store.page(query()),
        "50 in the middle": lambda: store.page(query(before=middle)),
        "50 of one benchmark": lambda: store.page(query(benchmark="benchmark-31")),
        "50 with one label": lambda: store.page(query(labels=[("team", "t3")])),
        "50 failed": lambda: store.page(query(states=failed)),
        "50 failed of one benchmark": lambda: store.page(
            query(states=failed, benchmark="benchmark-17")
        ),
        "benchmark and label together": lambda: store.page(
            query(benchmark="benchmark-31", labels=[("team", "t1")])
        ),
        "50 of one person": lambda: store.page(query(submitter="user-3")),
        "person and benchmark together": lambda: store.page(
            query(submitter="user-3", benchmark="benchmark-13")
        ),
    }


def single(store: RunStore, middle: RunId) -> Mapping[str, Question]:
    """Questions about one run, or a number."""
    return {
        "resolve last": lambda: store.resolve("last"),
        "resolve a prefix": lambda: store.resolve(middle[:23]),
        "one run": lambda: store.get(middle),
        "summaries of one run": lambda: store.summaries(middle),
        "events of one run": lambda: store.events(middle),
        "counts by state": store.counts,
        "active runs": lambda: store.active(50),
    }


async def milliseconds(question: Question) -> float:
    """Median of many calls; the first, which fills caches, counts like any other."""
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        await question()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


async def figures(folder: pathlib.Path, runs: int) -> Mapping[str, float]:
    """Build a store and ask it everything."""
    path = folder / f"{len(list(folder.iterdir()))}-{runs}.db"
    started = time.perf_counter()
    await build(path, runs)
    built = timedelta(seconds=round(time.perf_counter() - started))
    print(f"{runs:,} runs: {path.stat().st_size / 1e6:,.0f} MB, built in {built}")
    async with SqliteRunStore.open(path) as store:
        connection = sqlite3.connect(path)
        [middle] = connection.execute("SELECT id FROM run WHERE key = ?", [runs // 2]).fetchone()
        connection.close()
        return {name: await milliseconds(ask) for name, ask in questions(store, middle).items()}


async def compare(runs: int) -> None:
    with tempfile.TemporaryDirectory(prefix="anubis-bench-") as folder:
        small = await figures(pathlib.Path(folder), SMALL)
        large = await figures(pathlib.Path(folder), runs)
    print(f"{'ms, median':32}{SMALL:>12,}{runs:>12,}{'ratio':>8}")
    for name, value in small.items():
        print(f"{name:32}{value:12.3f}{large[name]:12.3f}{large[name] / value:8.2f}")
    print("goal: at most 10 ms of SQL, and at most 1.5 times the time for the same rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    asyncio.run(compare(parser.parse_known_args()[0].runs))


if __name__ == "__main__":
    main()
