-- name: InsertClaim :exec
INSERT INTO claims (
    id, secret, session_id, agent_id, thread_id, worker_id, instance_id, fence, lease_seconds, offline_after,
    granted_at, renewed_at, expires_at, graced, folder_key, request_id, closed_at, closed_by, finish_hash, drained, drain_by,
    agent_version, worker_instructions, worker_instructions_set_by
) VALUES (
    @id, @secret, @session_id, @agent_id, @thread_id, @worker_id, @instance_id, @fence, @lease_seconds, @offline_after,
    @granted_at, @granted_at, @expires_at, 0, @folder_key, @request_id, 0, '', x'', 0, 0,
    @agent_version, @worker_instructions, @worker_instructions_set_by
);

-- name: Claim :one
SELECT * FROM claims WHERE id = @id;

-- name: LiveClaimOf :one
SELECT * FROM claims WHERE session_id = @session_id AND closed_at = 0;

-- name: LatestClaimOf :one
SELECT * FROM claims WHERE session_id = @session_id ORDER BY id DESC LIMIT 1;

-- name: RenewClaim :execrows
UPDATE claims SET renewed_at = @now, expires_at = @expires_at, graced = 0
WHERE id = @id AND closed_at = 0 AND expires_at > @now AND expires_at <= @expires_at;

-- name: CloseClaim :execrows
UPDATE claims SET
    closed_at = @closed_at, closed_by = @closed_by, finish_hash = @finish_hash, drained = @drained, drain_by = @drain_by,
    renewed_at = @closed_at, graced = 0
WHERE id = @id AND closed_at = 0;

-- name: DrainClaim :execrows
UPDATE claims SET drained = 1 WHERE id = @id AND drained = 0 AND closed_at > 0;

-- name: DueDrains :many
SELECT * FROM claims WHERE drained = 0 AND closed_at > 0 AND drain_by <= @now ORDER BY drain_by LIMIT @n;

-- name: NextDrain :one
SELECT drain_by FROM claims WHERE drained = 0 AND closed_at > 0 AND drain_by > @now ORDER BY drain_by LIMIT 1;

-- name: DueLapses :many
SELECT * FROM claims WHERE closed_at = 0 AND expires_at <= @now ORDER BY expires_at LIMIT @n;

-- name: NextLapse :one
SELECT expires_at FROM claims WHERE closed_at = 0 AND expires_at > @now ORDER BY expires_at LIMIT 1;

-- name: LiveClaimsOfWorker :many
SELECT * FROM claims WHERE worker_id = @worker_id AND drained = 0 AND closed_at = 0 ORDER BY id;

-- name: UndrainedOfThread :many
SELECT id, session_id, closed_at FROM claims WHERE thread_id = @thread_id AND drained = 0 ORDER BY id LIMIT 2;

-- name: WorkerLoad :one
SELECT (SELECT COUNT(*) FROM claims c WHERE c.worker_id = @worker_id AND c.drained = 0) AS running,
       (SELECT COUNT(*) FROM claims f WHERE f.drained = 0 AND f.folder_key <> '' AND CAST(@folder_key AS TEXT) <> ''
           AND (f.folder_key = CAST(@folder_key AS TEXT) OR f.folder_key LIKE CAST(@folder_key AS TEXT) || '/%' OR CAST(@folder_key AS TEXT) LIKE f.folder_key || '/%')) AS in_folder;

-- What runs, or isn't drained, in a folder or in one above or below it. The sum keeps SQLite
-- from going through all claims for the sake of their order.
-- name: HoldersOfFolder :many
SELECT sqlc.embed(s), a.slug FROM claims f JOIN sessions s ON s.id = f.session_id JOIN agents a ON a.id = s.agent_id
WHERE f.drained = 0 AND f.folder_key <> '' AND CAST(@folder_key AS TEXT) <> ''
  AND (f.folder_key = CAST(@folder_key AS TEXT) OR f.folder_key LIKE CAST(@folder_key AS TEXT) || '/%' OR CAST(@folder_key AS TEXT) LIKE f.folder_key || '/%')
ORDER BY f.id + 0 LIMIT @n;

-- name: HoldersOfAgent :many
SELECT sqlc.embed(s), a.slug FROM claims c JOIN sessions s ON s.id = c.session_id JOIN agents a ON a.id = s.agent_id
WHERE c.drained = 0 AND c.agent_id = @agent_id ORDER BY c.id LIMIT @n;

-- name: HoldersOfThread :many
SELECT sqlc.embed(s), a.slug FROM claims c JOIN sessions s ON s.id = c.session_id JOIN agents a ON a.id = s.agent_id
WHERE c.drained = 0 AND c.thread_id = @thread_id AND c.session_id <> @except ORDER BY c.id LIMIT @n;

-- name: UndrainedScheduled :one
SELECT COUNT(*) FROM claims c JOIN sessions s ON s.id = c.session_id
WHERE c.drained = 0 AND c.agent_id = @agent_id AND s.triggered_by = 'scheduler' AND s.id <> @except;

-- name: ClaimByRequest :one
SELECT * FROM claims WHERE request_id = @request_id AND request_id <> '' AND instance_id = @instance_id ORDER BY id DESC LIMIT 1;

-- name: GraceClaims :execrows
UPDATE claims SET expires_at = @until, renewed_at = @now, graced = 1
WHERE closed_at = 0 AND graced = 0 AND expires_at > @last_alive AND expires_at < @until;

-- name: GraceDrains :execrows
UPDATE claims SET drain_by = @until, renewed_at = @now, graced = 1
WHERE drained = 0 AND closed_at > 0 AND graced = 0 AND drain_by > @last_alive AND drain_by < @until;

-- name: ClampClaims :execrows
UPDATE claims SET expires_at = @now + (expires_at - renewed_at), renewed_at = @now
WHERE closed_at = 0 AND renewed_at > @now;

-- name: ClampDrains :execrows
UPDATE claims SET drain_by = @now + (drain_by - renewed_at), renewed_at = @now
WHERE drained = 0 AND closed_at > 0 AND renewed_at > @now;

-- name: MoveClaimsToInstance :execrows
UPDATE claims SET instance_id = @instance_id WHERE worker_id = @worker_id AND closed_at = 0 AND drained = 0;
