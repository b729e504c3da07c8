-- name: Backups :one
SELECT * FROM backups WHERE id = 1;

-- name: NoteBackup :execrows
UPDATE backups SET good_at = @good_at, file = @file, bytes = @bytes, sha256 = @sha256 WHERE id = 1;

-- name: NoteBackupFailure :execrows
UPDATE backups SET failed_at = @failed_at, failure = @failure WHERE id = 1;

-- After a restore no process of before is a worker's any more.
-- name: SupersedeWorkers :execrows
UPDATE workers SET instance_id = @instance_id, state = 'offline' WHERE deleted_at = 0;

-- After a restore, what waits may be what a worker of before has claimed since the backup.
-- name: HoldAfterRestore :execrows
UPDATE sessions SET reclaim_at = @until WHERE ended_at = 0 AND status IN ('pending', 'queued', 'stale') AND reclaim_at < @until;
