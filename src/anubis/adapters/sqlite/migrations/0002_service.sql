-- What a service needs: an order of all events, a fair queue, schedules, tokens, the original wire.

-- Events get a place among all events of the store. AUTOINCREMENT: a place is never given twice,
-- not even after a purge, and SQLite has one writer, so places grow in the order of commits.
-- Old events are placed by their time, but never before an earlier one of the same run.
ALTER TABLE event RENAME TO event_of_one_run;

CREATE TABLE event (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    run      INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    message  TEXT NOT NULL,
    data     TEXT NOT NULL  -- JSON
) STRICT;

INSERT INTO event (run, number, at, kind, message, data)
SELECT run, number, at, kind, message, data
FROM event_of_one_run
ORDER BY max(at) OVER (PARTITION BY run ORDER BY number), run, number;

DROP TABLE event_of_one_run;

CREATE UNIQUE INDEX event_by_run ON event (run, number);

ALTER TABLE run ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN cpus REAL NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN memory_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN exclusive INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN concurrency INTEGER;
ALTER TABLE run ADD COLUMN submission_key TEXT;  -- chosen by the submitter: submit this only once

CREATE UNIQUE INDEX run_by_submission_key ON run (submitter, submission_key)
WHERE submission_key IS NOT NULL;
CREATE INDEX run_by_submitter ON run (submitter, id);

-- The queue: teams (a person's runs of one benchmark on one engine), and in each its runs in the
-- order they leave.
-- Neither states nor leases are in here, for they change often: only the first of a team are asked.
-- Nothing but the insertion, the start and the end of a run writes to this index.
CREATE INDEX run_waiting
ON run (submitter, benchmark, engine, priority DESC, id, started_at, ended_at)
WHERE started_at IS NULL AND ended_at IS NULL;

-- All teams, found by leaping from one to the next.
CREATE VIEW waiting_team AS
WITH RECURSIVE team (submitter, benchmark, engine) AS (
    SELECT submitter, benchmark, engine FROM (
        SELECT submitter, benchmark, engine FROM run INDEXED BY run_waiting
        WHERE started_at IS NULL AND ended_at IS NULL
        ORDER BY submitter, benchmark, engine LIMIT 1
    )
    UNION ALL
    SELECT later.submitter, later.benchmark, later.engine
    FROM team JOIN run AS later ON later.key = coalesce(
        (SELECT run.key FROM run INDEXED BY run_waiting
            WHERE run.started_at IS NULL AND run.ended_at IS NULL
                AND run.submitter = team.submitter AND run.benchmark = team.benchmark
                AND run.engine > team.engine
            ORDER BY run.engine LIMIT 1),
        (SELECT run.key FROM run INDEXED BY run_waiting
            WHERE run.started_at IS NULL AND run.ended_at IS NULL
                AND run.submitter = team.submitter AND run.benchmark > team.benchmark
            ORDER BY run.benchmark, run.engine LIMIT 1),
        (SELECT run.key FROM run INDEXED BY run_waiting
            WHERE run.started_at IS NULL AND run.ended_at IS NULL
                AND run.submitter > team.submitter
            ORDER BY run.submitter, run.benchmark, run.engine LIMIT 1)
    )
)
SELECT submitter, benchmark, engine FROM team;

CREATE TABLE schedule (
    key                INTEGER PRIMARY KEY,
    id                 TEXT NOT NULL UNIQUE,
    version            INTEGER NOT NULL,
    benchmark          TEXT NOT NULL,
    cron               TEXT NOT NULL,
    time_zone          TEXT NOT NULL,
    overlap            TEXT NOT NULL,
    catch_up           TEXT NOT NULL,
    engine             TEXT NOT NULL,
    priority           INTEGER NOT NULL,
    descriptor_sha     TEXT NOT NULL REFERENCES document (sha),
    submitter          TEXT NOT NULL,
    created_at         INTEGER NOT NULL,
    paused_at          INTEGER,
    next_at            INTEGER,
    last_at            INTEGER,
    last_run           TEXT,
    last_note          TEXT NOT NULL,
    fired              INTEGER NOT NULL,
    events             INTEGER NOT NULL,  -- number of the last event
    document_name      BLOB NOT NULL,
    document_directory BLOB NOT NULL,
    submission_key     TEXT  -- chosen by the submitter: submit this only once
) STRICT;

CREATE UNIQUE INDEX schedule_by_submission_key ON schedule (submitter, submission_key)
WHERE submission_key IS NOT NULL;
CREATE INDEX schedule_by_submitter ON schedule (submitter, id);
CREATE INDEX schedule_by_benchmark ON schedule (benchmark, id);
CREATE INDEX schedule_by_descriptor ON schedule (descriptor_sha);
CREATE INDEX schedule_due ON schedule (next_at, id) WHERE next_at IS NOT NULL;

CREATE TABLE schedule_event (
    schedule INTEGER NOT NULL REFERENCES schedule ON DELETE CASCADE,
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    message  TEXT NOT NULL,
    run      TEXT,  -- its id; the run may be purged long before its schedule
    PRIMARY KEY (schedule, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
    id           TEXT PRIMARY KEY,
    digest       TEXT NOT NULL UNIQUE,  -- of the secret, which is stored nowhere
    user         TEXT NOT NULL,
    role         TEXT NOT NULL,
    note         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT;

CREATE TABLE audit (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    user    TEXT NOT NULL,
    token   TEXT,
    action  TEXT NOT NULL,
    target  TEXT NOT NULL,
    allowed INTEGER NOT NULL,
    detail  TEXT NOT NULL
) STRICT;

CREATE INDEX audit_by_time ON audit (at);

CREATE TABLE action (
    id        TEXT PRIMARY KEY,
    kind      TEXT NOT NULL,
    client_id TEXT NOT NULL,
    at        INTEGER NOT NULL,
    target    TEXT NOT NULL,
    envelope  TEXT NOT NULL,  -- JSON
    millis    INTEGER AS (at / 1000)  -- the original wire counts milliseconds
) STRICT;

CREATE INDEX action_submitted ON action (client_id, millis, id) WHERE kind = 'submission';
CREATE INDEX action_commanded ON action (target, at, id) WHERE kind = 'command';
