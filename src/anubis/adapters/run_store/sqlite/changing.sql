-- What the writer does. Every statement runs inside a transaction of writing.py.

-- name: add_run
-- A new run; its first event is stored with it.
INSERT INTO run (id, state, version, benchmark, engine, descriptor_sha, submitter, labels, family,
    submitted_at, state_since, deadline, started_at, ended_at, cancel_requested_at,
    lease_worker, lease_ends, outcome, priority, cpus, memory_bytes, gpus, exclusive, concurrency,
    submission_key, events, document_name, document_directory, document_script)
VALUES (:id, :state, :version, :benchmark, :engine, :descriptor_sha, :submitter, :labels, :family,
    :submitted_at, :state_since, :deadline, :started_at, :ended_at, :cancel_requested_at,
    :lease_worker, :lease_ends, :outcome, :priority, :cpus, :memory_bytes, :gpus, :exclusive,
    :concurrency, :submission_key, 1, :document_name, :document_directory, :document_script);

-- name: add_plan
-- The plan of a new run.
INSERT INTO plan (run, content) VALUES (:run, :content);

-- name: add_label
-- Make a run findable by one of its labels.
INSERT INTO label (name, value, id) VALUES (:name, :value, :id) ON CONFLICT DO NOTHING;

-- name: add_event
-- One more event of a run.
INSERT INTO event (run, number, at, kind, message, data)
VALUES (:run, :number, :at, :kind, :message, :data);

-- name: lease
-- Give some runs to a worker, or extend what it holds.
UPDATE run SET lease_worker = :worker, lease_ends = :ends, version = version + 1
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: held_among
-- Which of some runs a worker holds.
SELECT id FROM run
WHERE id IN (SELECT value FROM json_each(:ids)) AND lease_worker = :worker;

-- name: release_all
-- Give back every lease of a worker.
UPDATE run SET lease_worker = NULL, lease_ends = NULL, version = version + 1
WHERE key IN (
    SELECT key FROM run INDEXED BY run_active WHERE ended_at IS NULL AND lease_worker = :worker
);

-- name: move_run
-- All that a step with moves can change in a run that neither starts nor ends by it.
UPDATE run SET state = :state, version = :version, state_since = :state_since,
    deadline = :deadline, lease_worker = :lease_worker, lease_ends = :lease_ends,
    outcome = :outcome, events = :events
WHERE key = :run;

-- name: start_or_end_run
-- All that any step can change: the place in the queue is given up.
UPDATE run SET state = :state, version = :version, state_since = :state_since,
    deadline = :deadline, started_at = :started_at, ended_at = :ended_at,
    lease_worker = :lease_worker, lease_ends = :lease_ends, outcome = :outcome, events = :events
WHERE key = :run;

-- name: touch_run
-- All that a step without moves can change: no index on the state is rewritten.
UPDATE run SET version = :version, lease_worker = :lease_worker, lease_ends = :lease_ends,
    outcome = :outcome, events = :events
WHERE key = :run;

-- name: request_cancel
-- Note that somebody wants a run to stop.
UPDATE run SET version = :version, cancel_requested_at = :cancel_requested_at, events = :events
WHERE key = :run;

-- name: forget_plan
-- A plan may hold secrets, and nobody needs it after the end.
DELETE FROM plan WHERE run = :run;

-- name: add_machine
-- Keep the large part of a fingerprint once, however many runs share it.
INSERT INTO machine (sha, content) VALUES (:sha, :content) ON CONFLICT (sha) DO NOTHING;

-- name: set_fingerprint
-- The environment of a run; a second one replaces the first.
INSERT OR REPLACE INTO fingerprint (run, machine, moment)
VALUES (:run, (SELECT key FROM machine WHERE sha = :sha), :moment);

-- name: forget_summaries
-- Make room for the summaries of a step, which replace all others.
DELETE FROM summary WHERE run = :run;

-- name: add_summary
-- One more summary of a run; of two with the same key the later one counts.
INSERT OR REPLACE INTO summary (run, unit, source, name, units, count, mean, median, minimum,
    maximum, std, p90, p95, p99, first, last)
VALUES (:run, :unit, :source, :name, :units, :count, :mean, :median, :minimum,
    :maximum, :std, :p90, :p95, :p99, :first, :last);

-- name: delete_label
-- Undo add_label.
DELETE FROM label WHERE name = :name AND value = :value AND id = :id;

-- name: delete_run
-- A run and, by cascade, its plan, events, fingerprint and summaries.
DELETE FROM run WHERE key = :run;

-- name: delete_lone_machines
-- Machines that no fingerprint names any more; there are only ever a few machines.
DELETE FROM machine
WHERE NOT EXISTS (SELECT 1 FROM fingerprint WHERE fingerprint.machine = machine.key);
