-- Tokens and the record of what people did.

-- name: token_by_digest
-- The token whose secret has this digest: asked for every request.
SELECT id, user, role, note, created_at, expires_at, revoked_at, last_used_at
FROM token WHERE digest = :digest;

-- name: token_by_id
-- One token by its public name.
SELECT id, user, role, note, created_at, expires_at, revoked_at, last_used_at
FROM token WHERE id = :id;

-- name: tokens
-- All tokens, newest first; an installation has a few per person.
SELECT id, user, role, note, created_at, expires_at, revoked_at, last_used_at
FROM token ORDER BY created_at DESC, id DESC;

-- name: add_token
-- A new token.
INSERT INTO token (id, digest, user, role, note, created_at, expires_at, revoked_at, last_used_at)
VALUES (:id, :digest, :user, :role, :note, :created_at, :expires_at, :revoked_at, :last_used_at);

-- name: change_token
-- All that can change about a token.
UPDATE token SET revoked_at = :revoked_at, last_used_at = :last_used_at WHERE id = :id;

-- name: note
-- One more line of the record.
INSERT INTO audit (at, user, token, action, target, allowed, detail)
VALUES (:at, :user, :token, :action, :target, :allowed, :detail);

-- name: audit
-- The newest lines of the record below a number.
SELECT number, at, user, token, action, target, allowed, detail
FROM audit WHERE number < :before ORDER BY number DESC LIMIT :limit;

-- name: forget_audit
-- The oldest lines of the record before a moment, a bounded number of them.
DELETE FROM audit WHERE number IN (
    SELECT number FROM audit INDEXED BY audit_by_time WHERE at < :before ORDER BY at LIMIT :limit
);
