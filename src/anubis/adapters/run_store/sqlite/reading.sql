-- What readers ask. Every list is a range of one index, newest first, between two ids.

-- name: run_by_id
-- One run, with its key and the number of its last event for whoever wants to change it.
SELECT id, state, version, benchmark, engine, descriptor_sha, submitter, labels, family,
    submitted_at, state_since, deadline, started_at, ended_at, cancel_requested_at,
    lease_worker, lease_ends, outcome, priority, cpus, memory_bytes, gpus, exclusive, concurrency,
    key, events
FROM run WHERE id = :id;

-- name: runs_by_ids
-- The runs of a JSON list of ids, oldest first.
SELECT id, state, version, benchmark, engine, descriptor_sha, submitter, labels, family,
    submitted_at, state_since, deadline, started_at, ended_at, cancel_requested_at,
    lease_worker, lease_ends, outcome, priority, cpus, memory_bytes, gpus, exclusive, concurrency,
    key, events
FROM run WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- name: ids_newest
-- Ids of the newest runs.
SELECT id FROM run WHERE id >= :since AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: ids_by_state
-- Ids of the newest runs in one state.
SELECT id FROM run INDEXED BY run_by_state
WHERE state = :state AND id >= :since AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: ids_by_benchmark
-- Ids of the newest runs of one benchmark.
SELECT id FROM run INDEXED BY run_by_benchmark
WHERE benchmark = :benchmark AND id >= :since AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: ids_by_benchmark_and_state
-- Ids of the newest runs of one benchmark in one state: trends, and "its failures".
SELECT id FROM run INDEXED BY run_by_benchmark_and_state
WHERE benchmark = :benchmark AND state = :state AND id >= :since AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: ids_by_family
-- Ids of the newest runs of one family.
SELECT id FROM run INDEXED BY run_by_family
WHERE family = :family AND id >= :since AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: ids_by_label
-- Ids of the newest runs that carry one label.
SELECT id FROM label
WHERE name = :name AND value = :value AND id >= :since AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: ids_by_submitter
-- Ids of the newest runs of one person.
SELECT id FROM run INDEXED BY run_by_submitter
WHERE submitter = :submitter AND id >= :since AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: id_by_submission_key
-- Id of the run that a person submitted with a key.
SELECT id FROM run WHERE submitter = :submitter AND submission_key = :submission_key;

-- name: ids_by_prefix
-- Ids between two texts, newest first: those that start with what a person typed.
SELECT id FROM run WHERE id >= :from AND id < :to ORDER BY id DESC LIMIT :limit;

-- name: ids_active
-- Ids of the oldest runs that have not ended.
SELECT id FROM run INDEXED BY run_active WHERE ended_at IS NULL ORDER BY id LIMIT :limit;

-- name: ids_free
-- Ids of the oldest active runs in some states that nobody holds.
SELECT id FROM run INDEXED BY run_active
WHERE ended_at IS NULL
    AND state IN (SELECT value FROM json_each(:states))
    AND (lease_ends IS NULL OR lease_ends < :now)
ORDER BY id LIMIT :limit;

-- name: ids_free_and_urgent
-- Of those, the ones somebody wants to stop or whose deadline passed.
SELECT id FROM run INDEXED BY run_urgent
WHERE ended_at IS NULL
    AND urgent_at <= :now
    AND state IN (SELECT value FROM json_each(:states))
    AND (lease_ends IS NULL OR lease_ends < :now)
ORDER BY id LIMIT :limit;

-- name: ids_held_and_urgent
-- Ids of the runs of a worker that somebody wants to stop or whose deadline passed.
SELECT id FROM run INDEXED BY run_urgent
WHERE ended_at IS NULL
    AND urgent_at <= :now
    AND lease_worker = :worker
ORDER BY id;

-- name: ids_free_among
-- Of a JSON list of ids, those of active runs in some states that nobody holds, oldest first.
-- With :urgent, only those that somebody wants to stop or whose deadline passed.
SELECT id FROM run
WHERE id IN (SELECT value FROM json_each(:ids))
    AND ended_at IS NULL
    AND state IN (SELECT value FROM json_each(:states))
    AND (lease_ends IS NULL OR lease_ends < :now)
    AND (NOT :urgent OR urgent_at <= :now)
ORDER BY id LIMIT :limit;

-- name: counts
-- How many runs are in each state, as the triggers keep it.
SELECT state, runs FROM state_count WHERE runs > 0;

-- name: events
-- Events of a run after a number, in order.
SELECT sequence, number, at, kind, message, data FROM event
WHERE run = (SELECT key FROM run WHERE id = :id) AND number > :after ORDER BY number LIMIT :limit;

-- name: document
-- The exact bytes a run was submitted with.
SELECT document_name, document_directory, document_script, content
FROM run JOIN document ON document.sha = run.descriptor_sha WHERE run.id = :id;

-- name: plan
-- The plan of a run that has not ended.
SELECT plan.content FROM run JOIN plan ON plan.run = run.key WHERE run.id = :id;

-- name: fingerprint
-- The environment a run had.
SELECT machine.content, fingerprint.moment
FROM run
    JOIN fingerprint ON fingerprint.run = run.key
    JOIN machine ON machine.key = fingerprint.machine
WHERE run.id = :id;

-- name: summaries
-- The statistics of a run's metrics, by unit, source and name: the order of the primary key.
SELECT unit, source, name, units, count, mean, median, minimum, maximum, std,
    p90, p95, p99, first, last
FROM summary WHERE run = (SELECT key FROM run WHERE id = :id) ORDER BY unit, source, name;

-- name: data_version
-- Changes whenever another connection, of any process, has committed something.
PRAGMA data_version;
