-- What the writer does to schedules. Every statement runs inside its transaction.

-- name: add_schedule
-- A new schedule; its first event is stored with it.
INSERT INTO schedule (id, version, benchmark, cron, time_zone, overlap, catch_up, engine, priority,
    descriptor_sha, submitter, created_at, paused_at, next_at, last_at, last_run, last_note, fired,
    events, document_name, document_directory, document_script, submission_key)
VALUES (:id, :version, :benchmark, :cron, :time_zone, :overlap, :catch_up, :engine, :priority,
    :descriptor_sha, :submitter, :created_at, :paused_at, :next_at, :last_at, :last_run, :last_note,
    :fired, 1, :document_name, :document_directory, :document_script, :submission_key);

-- name: replace_schedule
-- All of a schedule but its id and its document.
UPDATE schedule SET version = :version, benchmark = :benchmark, cron = :cron,
    time_zone = :time_zone, overlap = :overlap, catch_up = :catch_up, engine = :engine,
    priority = :priority, submitter = :submitter, created_at = :created_at,
    paused_at = :paused_at, next_at = :next_at, last_at = :last_at, last_run = :last_run,
    last_note = :last_note, fired = :fired, events = :events
WHERE key = :schedule;

-- name: add_schedule_event
-- One more event of a schedule.
INSERT INTO schedule_event (schedule, number, at, kind, message, run)
VALUES (:schedule, :number, :at, :kind, :message, :run);

-- name: delete_schedule
-- A schedule and, by cascade, its events.
DELETE FROM schedule WHERE key = :schedule;
