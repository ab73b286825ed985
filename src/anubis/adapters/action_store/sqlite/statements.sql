-- Messages of the original wire.

-- name: add_action
-- A message, unless it is there.
INSERT INTO action (id, kind, client_id, at, target, envelope)
VALUES (:id, :kind, :client_id, :at, :target, :envelope) ON CONFLICT (id) DO NOTHING;

-- name: action_by_id
-- One message.
SELECT id, kind, client_id, at, target, envelope FROM action WHERE id = :id;

-- name: commands
-- The commands about a run or schedule, oldest first.
SELECT id, kind, client_id, at, target, envelope FROM action INDEXED BY action_commanded
WHERE kind = 'command' AND target = :target ORDER BY at, id;

-- name: submissions
-- What a client submitted after a place in its history, oldest first.
SELECT id, kind, client_id, at, target, envelope FROM action INDEXED BY action_submitted
WHERE kind = 'submission' AND client_id = :client_id AND (millis, id) > (:millis, :id)
ORDER BY millis, id LIMIT :limit;
