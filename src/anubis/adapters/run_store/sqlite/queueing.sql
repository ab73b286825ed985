-- What the queue asks. A team: all runs of one person and one benchmark on one engine that have not
-- started; the view waiting_team has them all.

-- name: heads
-- Free runs in some states, the first :each of every team: runs further back cost nothing.
SELECT run.id, state, version, run.benchmark, run.engine, descriptor_sha, run.submitter, labels,
    family, submitted_at, state_since, deadline, started_at, ended_at, cancel_requested_at,
    lease_worker, lease_ends, outcome, priority, cpus, memory_bytes, gpus, exclusive, concurrency,
    run.key, events
FROM waiting_team AS team CROSS JOIN run
WHERE run.key IN (
    SELECT head.key FROM run AS head INDEXED BY run_waiting
    WHERE head.started_at IS NULL AND head.ended_at IS NULL
        AND head.submitter = team.submitter
        AND head.benchmark = team.benchmark
        AND head.engine = team.engine
        AND head.state IN (SELECT value FROM json_each(:states))
        AND head.cancel_requested_at IS NULL
        AND (head.lease_ends IS NULL OR head.lease_ends < :now)
    ORDER BY head.priority DESC, head.id LIMIT :each
);

-- name: ahead
-- How many runs of one engine in some states leave before a run, at most :limit.
-- That is, have a higher priority, or the same and are older.
SELECT count(*) FROM (
    SELECT 1 FROM waiting_team AS team CROSS JOIN run INDEXED BY run_waiting
    WHERE team.engine = :engine
        AND run.started_at IS NULL AND run.ended_at IS NULL
        AND run.submitter = team.submitter
        AND run.benchmark = team.benchmark
        AND run.engine = team.engine
        AND run.priority > :priority
        AND run.state IN (SELECT value FROM json_each(:states))
    UNION ALL
    SELECT 1 FROM waiting_team AS team CROSS JOIN run INDEXED BY run_waiting
    WHERE team.engine = :engine
        AND run.started_at IS NULL AND run.ended_at IS NULL
        AND run.submitter = team.submitter
        AND run.benchmark = team.benchmark
        AND run.engine = team.engine
        AND run.priority = :priority
        AND run.id < :id
        AND run.state IN (SELECT value FROM json_each(:states))
    LIMIT :limit
);

-- name: active_of
-- How many runs of one person have not ended, at most :limit.
-- Of all people's, only a handful are between their start and their end.
SELECT count(*) FROM (
    SELECT 1 FROM run INDEXED BY run_waiting
    WHERE started_at IS NULL AND ended_at IS NULL AND submitter = :submitter
    UNION ALL
    SELECT 1 FROM run INDEXED BY run_by_state
    WHERE state IN ('RUNNING', 'FINISHING') AND submitter = :submitter
    LIMIT :limit
);
