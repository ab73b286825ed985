-- Runs, their documents, events, fingerprints and summaries.
--
-- Instants are microseconds since 1970, UTC. Ids are lower-case UUIDs of version 7, so that their
-- order is the order of submission and every page is a range of an index. Rows of a run are tied
-- to it by its small integer key: a text id of 36 characters in every event would cost more than
-- the event.

CREATE TABLE run (
    key                 INTEGER PRIMARY KEY,
    id                  TEXT NOT NULL UNIQUE,
    state               TEXT NOT NULL,
    version             INTEGER NOT NULL,
    benchmark           TEXT NOT NULL,
    engine              TEXT NOT NULL,
    descriptor_sha      TEXT NOT NULL REFERENCES document (sha),
    submitter           TEXT NOT NULL,
    labels              TEXT NOT NULL,  -- JSON list of pairs; the table label is its index
    family              TEXT,
    submitted_at        INTEGER NOT NULL,
    state_since         INTEGER NOT NULL,
    deadline            INTEGER NOT NULL,
    started_at          INTEGER,
    ended_at            INTEGER,
    cancel_requested_at INTEGER,
    lease_worker        TEXT,
    lease_ends          INTEGER,
    outcome             TEXT,  -- JSON
    events              INTEGER NOT NULL,  -- number of the last event
    document_name       BLOB NOT NULL,  -- file names are bytes and need not be text
    document_directory  BLOB NOT NULL,
    urgent_at           INTEGER AS (iif(cancel_requested_at IS NULL, deadline, 0)),
    CHECK ((ended_at IS NULL)
        = (state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELED', 'ERROR'))),
    CHECK ((lease_worker IS NULL) = (lease_ends IS NULL)),
    CHECK (ended_at IS NULL OR lease_worker IS NULL)
) STRICT;

CREATE INDEX run_by_state ON run (state, id);
CREATE INDEX run_by_benchmark ON run (benchmark, id);
CREATE INDEX run_by_benchmark_and_state ON run (benchmark, state, id);
CREATE INDEX run_by_family ON run (family, id) WHERE family IS NOT NULL;
CREATE INDEX run_by_descriptor ON run (descriptor_sha);

-- What is being worked on is a handful among millions: leases are found here without the rows.
-- ended_at, always NULL, is a column because SQLite asks for it although the index implies it.
CREATE INDEX run_active ON run (id, state, lease_ends, lease_worker, ended_at)
WHERE ended_at IS NULL;
CREATE INDEX run_urgent ON run (urgent_at) WHERE ended_at IS NULL;

CREATE TABLE label (
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    id    TEXT NOT NULL,
    PRIMARY KEY (name, value, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE document (
    sha     TEXT PRIMARY KEY,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE plan (
    run     INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    content TEXT NOT NULL
) STRICT;

CREATE TABLE event (
    run     INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    message TEXT NOT NULL,
    data    TEXT NOT NULL,  -- JSON
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE machine (
    key     INTEGER PRIMARY KEY,
    sha     TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL
) STRICT;

CREATE TABLE fingerprint (
    run     INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    machine INTEGER NOT NULL REFERENCES machine,
    moment  TEXT NOT NULL
) STRICT;

CREATE INDEX fingerprint_by_machine ON fingerprint (machine);

-- SQLite stores "not a number" as NULL, and a loss that diverged is one: the figures may be NULL.
CREATE TABLE summary (
    run     INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    unit    TEXT NOT NULL,
    source  TEXT NOT NULL,
    name    TEXT NOT NULL,
    units   TEXT NOT NULL,
    count   INTEGER NOT NULL,
    mean    REAL,
    median  REAL,
    minimum REAL,
    maximum REAL,
    std     REAL,
    p90     REAL,
    p95     REAL,
    p99     REAL,
    first   REAL,
    last    REAL,
    PRIMARY KEY (run, unit, source, name)
) STRICT, WITHOUT ROWID;

-- Counting a million rows takes 60 ms; keeping ten counters costs microseconds a move.
CREATE TABLE state_count (
    state TEXT PRIMARY KEY,
    runs  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER run_added AFTER INSERT ON run BEGIN
    INSERT INTO state_count (state, runs) VALUES (new.state, 1)
    ON CONFLICT (state) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER run_moved AFTER UPDATE OF state ON run WHEN old.state <> new.state BEGIN
    UPDATE state_count SET runs = runs - 1 WHERE state = old.state;
    INSERT INTO state_count (state, runs) VALUES (new.state, 1)
    ON CONFLICT (state) DO UPDATE SET runs = runs + 1;
END;

CREATE TRIGGER run_deleted AFTER DELETE ON run BEGIN
    UPDATE state_count SET runs = runs - 1 WHERE state = old.state;
END;
