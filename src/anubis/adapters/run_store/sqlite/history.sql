-- Questions about many runs together.

-- name: benchmarks
-- Benchmarks by name, above one, each with its runs (counted so far) and the newest of them.
WITH RECURSIVE series (name) AS (
    SELECT min(benchmark) FROM run INDEXED BY run_by_benchmark WHERE benchmark > :after
    UNION ALL
    SELECT (SELECT min(benchmark) FROM run INDEXED BY run_by_benchmark WHERE benchmark > name)
    FROM series WHERE name IS NOT NULL
)
SELECT name,
    (SELECT count(*) FROM (SELECT 1 FROM run INDEXED BY run_by_benchmark
        WHERE benchmark = name LIMIT :most)),
    (SELECT id FROM run INDEXED BY run_by_benchmark
        WHERE benchmark = name ORDER BY id DESC LIMIT 1)
FROM series WHERE name IS NOT NULL LIMIT :limit;

-- name: families
-- Families by name, above one, each with its runs (counted so far) and the newest of them.
WITH RECURSIVE series (name) AS (
    SELECT min(family) FROM run INDEXED BY run_by_family WHERE family > :after
    UNION ALL
    SELECT (SELECT min(family) FROM run INDEXED BY run_by_family WHERE family > name)
    FROM series WHERE name IS NOT NULL
)
SELECT name,
    (SELECT count(*) FROM (SELECT 1 FROM run INDEXED BY run_by_family
        WHERE family = name LIMIT :most)),
    (SELECT id FROM run INDEXED BY run_by_family
        WHERE family = name ORDER BY id DESC LIMIT 1)
FROM series WHERE name IS NOT NULL LIMIT :limit;

-- name: trend
-- What the newest successful runs of a benchmark measured for one metric, newest first.
SELECT done.id, done.state, done.submitted_at,
    unit, source, name, units, count, mean, median, minimum, maximum, std, p90, p95, p99, first, last
FROM (
    SELECT key, id, state, submitted_at FROM run INDEXED BY run_by_benchmark_and_state
    WHERE benchmark = :benchmark AND state = 'SUCCEEDED' AND id < :before
    ORDER BY id DESC LIMIT :limit
) AS done CROSS JOIN summary ON summary.run = done.key
WHERE name = :metric AND (:unit IS NULL OR unit = :unit)
ORDER BY done.id DESC, unit, source;

-- name: feed
-- Events of all runs in the order they were stored.
SELECT run.id, sequence, number, at, kind, message, data
FROM event CROSS JOIN run ON run.key = event.run
WHERE sequence > :after ORDER BY sequence LIMIT :limit;

-- name: last_sequence
-- The place of the newest event there ever was, as SQLite keeps it for AUTOINCREMENT.
SELECT seq FROM sqlite_sequence WHERE name = 'event';
