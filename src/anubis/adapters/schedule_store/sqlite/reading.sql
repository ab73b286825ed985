-- What is asked about schedules. There are few of them beside runs; lists fetch whole rows.

-- name: schedule_by_id
-- One schedule, with its key and the number of its last event for whoever wants to change it.
SELECT id, version, benchmark, cron, time_zone, overlap, catch_up, engine, priority, descriptor_sha,
    submitter, created_at, paused_at, next_at, last_at, last_run, last_note, fired, key, events
FROM schedule WHERE id = :id;

-- name: schedule_by_submission_key
-- The schedule that a person submitted with a key.
SELECT id, version, benchmark, cron, time_zone, overlap, catch_up, engine, priority, descriptor_sha,
    submitter, created_at, paused_at, next_at, last_at, last_run, last_note, fired, key, events
FROM schedule INDEXED BY schedule_by_submission_key
WHERE submitter = :submitter AND submission_key = :submission_key;

-- name: count_of_submitter
-- How many schedules a person has, counted up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM schedule INDEXED BY schedule_by_submitter
    WHERE submitter = :submitter LIMIT :limit
);

-- name: schedules_by_reference
-- Schedules with an id between two texts, or of a benchmark: whom a person may mean.
SELECT id, version, benchmark, cron, time_zone, overlap, catch_up, engine, priority, descriptor_sha,
    submitter, created_at, paused_at, next_at, last_at, last_run, last_note, fired, key, events
FROM schedule WHERE (id >= :start AND id < :end) OR benchmark = :benchmark
ORDER BY id DESC LIMIT :limit;

-- name: schedules_newest
-- The newest schedules, below an id.
SELECT id, version, benchmark, cron, time_zone, overlap, catch_up, engine, priority, descriptor_sha,
    submitter, created_at, paused_at, next_at, last_at, last_run, last_note, fired, key, events
FROM schedule WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- name: schedules_by_submitter
-- The newest schedules of one person, below an id.
SELECT id, version, benchmark, cron, time_zone, overlap, catch_up, engine, priority, descriptor_sha,
    submitter, created_at, paused_at, next_at, last_at, last_run, last_note, fired, key, events
FROM schedule INDEXED BY schedule_by_submitter
WHERE submitter = :submitter AND id < :before ORDER BY id DESC LIMIT :limit;

-- name: schedules_due
-- Schedules whose time has come, the earliest first.
SELECT id, version, benchmark, cron, time_zone, overlap, catch_up, engine, priority, descriptor_sha,
    submitter, created_at, paused_at, next_at, last_at, last_run, last_note, fired, key, events
FROM schedule INDEXED BY schedule_due
WHERE next_at IS NOT NULL AND next_at <= :now ORDER BY next_at, id LIMIT :limit;

-- name: next_due
-- When the next schedule fires.
SELECT min(next_at) FROM schedule INDEXED BY schedule_due WHERE next_at IS NOT NULL;

-- name: schedule_document
-- The exact bytes a schedule was submitted with.
SELECT document_name, document_directory, document_script, content
FROM schedule JOIN document ON document.sha = schedule.descriptor_sha WHERE schedule.id = :id;

-- name: scripts
-- The archives of code that schedules need for their firings.
SELECT DISTINCT document_script FROM schedule INDEXED BY schedule_by_script
WHERE document_script <> '';

-- name: schedule_events
-- Events of a schedule after a number, in order.
SELECT number, at, kind, message, run FROM schedule_event
WHERE schedule = (SELECT key FROM schedule WHERE id = :id) AND number > :after
ORDER BY number LIMIT :limit;
