-- Descriptors, which runs and schedules share.

-- name: keep
-- Keep the bytes of a descriptor once, however many share them.
INSERT INTO document (sha, content) VALUES (:sha, :content) ON CONFLICT (sha) DO NOTHING;

-- name: forget_lone
-- Forget the bytes of a descriptor that no run and no schedule has any more.
DELETE FROM document
WHERE sha = :sha
    AND NOT EXISTS (SELECT 1 FROM run WHERE descriptor_sha = :sha)
    AND NOT EXISTS (SELECT 1 FROM schedule WHERE descriptor_sha = :sha);
