-- name: InsertSignal :exec
INSERT INTO signals (id, worker_id, kind, sent_by, sent_at, closed_at, resolution)
VALUES (@id, @worker_id, @kind, @sent_by, @sent_at, 0, '');

-- The signal that a worker has not acknowledged yet, and who sent it.
-- name: PendingSignal :one
SELECT sqlc.embed(g), u.name FROM signals g JOIN users u ON u.id = g.sent_by
WHERE g.worker_id = @worker_id AND g.closed_at = 0;

-- name: LastSignal :one
SELECT * FROM signals WHERE worker_id = @worker_id ORDER BY id DESC LIMIT 1;

-- name: CloseSignal :execrows
UPDATE signals SET closed_at = @closed_at, resolution = @resolution WHERE id = @id AND closed_at = 0;
