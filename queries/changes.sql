-- name: Changes :one
SELECT * FROM changes WHERE session_id = @session_id;

-- Whether a session's changes wait for somebody.
-- name: ChangesWait :one
SELECT waiting FROM changes WHERE session_id = @session_id;

-- name: PutChanges :exec
INSERT INTO changes (session_id, thread_id, workspace_id, worker_id, snapshot, state, file_count, added, removed, taken_at, waiting)
VALUES (@session_id, @thread_id, @workspace_id, @worker_id, @snapshot, @state, @file_count, @added, @removed, @taken_at, @waiting)
ON CONFLICT (session_id) DO UPDATE SET
    worker_id = excluded.worker_id, snapshot = excluded.snapshot, state = excluded.state, file_count = excluded.file_count,
    added = excluded.added, removed = excluded.removed, taken_at = excluded.taken_at, waiting = excluded.waiting;

-- The workspace after something was done with it; its files are as they were.
-- name: SetChangesState :execrows
UPDATE changes SET state = @state, taken_at = @taken_at, waiting = @waiting WHERE session_id = @session_id;

-- A later session of the thread on the same worker has the same workspace: what waits there is its.
-- name: PassChangesOn :execrows
UPDATE changes SET waiting = 0 WHERE thread_id = @thread_id AND worker_id = @worker_id AND session_id <> @session_id AND waiting = 1;

-- Of the workspace that a worker has for a thread.
-- name: LatestChangesOfThread :one
SELECT * FROM changes WHERE thread_id = @thread_id AND worker_id = @worker_id ORDER BY session_id DESC LIMIT 1;

-- name: PutChangedFile :exec
INSERT INTO changed_files (session_id, snapshot, position, path, old_path, change, added, removed, binary, cut, patch)
VALUES (@session_id, @snapshot, @position, @path, @old_path, @change, @added, @removed, @binary, @cut, @patch)
ON CONFLICT (session_id, snapshot, position) DO NOTHING;

-- name: CountChangedFiles :one
SELECT CAST(COUNT(*) AS INTEGER) AS n, CAST(COALESCE(SUM(OCTET_LENGTH(patch)), 0) AS INTEGER) AS bytes
FROM changed_files WHERE session_id = @session_id AND snapshot = @snapshot;

-- name: ChangedFiles :many
SELECT * FROM changed_files WHERE session_id = @session_id AND snapshot = @snapshot ORDER BY position;

-- What earlier reports had, and parts of ones that were never completed.
-- name: DropOtherFiles :execrows
DELETE FROM changed_files WHERE session_id = @session_id AND snapshot <> @snapshot;

-- name: DropFilesOf :execrows
DELETE FROM changed_files WHERE session_id = @session_id;

-- name: DropChangesOf :execrows
DELETE FROM changes WHERE session_id = @session_id;

-- name: DropLandingsOf :execrows
DELETE FROM landings WHERE session_id = @session_id;

-- name: DropReviewOf :execrows
DELETE FROM review_comments WHERE session_id = @session_id;

-- name: InsertLanding :exec
INSERT INTO landings (id, workspace_id, session_id, worker_id, verb, method, message, confirm, requested_by, requested_at, state, outcome, closed_at)
VALUES (@id, @workspace_id, @session_id, @worker_id, @verb, @method, @message, @confirm, @requested_by, @requested_at, 'pending', '{}', 0);

-- name: Landing :one
SELECT sqlc.embed(l), u.name FROM landings l JOIN users u ON u.id = l.requested_by WHERE l.id = @id;

-- name: LastLanding :one
SELECT sqlc.embed(l), u.name FROM landings l JOIN users u ON u.id = l.requested_by
WHERE l.session_id = @session_id ORDER BY l.id DESC LIMIT 1;

-- The oldest request that a worker has not answered.
-- name: AskedLanding :one
SELECT sqlc.embed(l), u.name FROM landings l JOIN users u ON u.id = l.requested_by
WHERE l.worker_id = @worker_id AND l.closed_at = 0 ORDER BY l.id LIMIT 1;

-- name: AskedLandings :many
SELECT * FROM landings WHERE worker_id = @worker_id AND closed_at = 0 ORDER BY id;

-- What somebody has asked for that no worker has answered.
-- name: AskedLandingsBy :many
SELECT * FROM landings WHERE requested_by = @requested_by AND workspace_id = @workspace_id AND closed_at = 0 ORDER BY id;

-- What was withdrawn too late is closed once more.
-- name: CloseLanding :execrows
UPDATE landings SET state = @state, outcome = @outcome, closed_at = @closed_at WHERE id = @id AND state = @was;

-- name: InsertReview :exec
INSERT INTO review_comments (id, session_id, user_id, path, line, side, quote, text, at)
VALUES (@id, @session_id, @user_id, @path, @line, @side, @quote, @text, @at);

-- name: ReviewOf :many
SELECT * FROM review_comments WHERE session_id = @session_id AND user_id = @user_id ORDER BY id;

-- name: DropReviewComment :execrows
DELETE FROM review_comments WHERE id = @id AND session_id = @session_id AND user_id = @user_id;

-- name: DropReviewBy :execrows
DELETE FROM review_comments WHERE session_id = @session_id AND user_id = @user_id;

-- name: CountUnlanded :one
SELECT CAST(COUNT(*) AS INTEGER) AS n FROM (
    SELECT c.session_id FROM changes c CROSS JOIN sessions s
    WHERE c.workspace_id = @workspace_id AND c.waiting = 1 AND s.id = c.session_id
      AND s.ended_at <> 0 AND s.archived_at = 0 AND (s.mode = 'cloud' OR s.owner_user_id = @me)
    LIMIT @most
) x;
