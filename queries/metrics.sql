-- What is measured of the present state, over all workspaces.

-- name: MeasureOpen :many
SELECT w.slug AS workspace, a.slug AS agent, s.status, COUNT(*) AS n, CAST(MIN(s.id) AS INTEGER) AS oldest
FROM agents a JOIN workspaces w ON w.id = a.workspace_id JOIN sessions s ON s.agent_id = a.id
WHERE a.deleted_at = 0 AND s.ended_at = 0
GROUP BY a.id, s.status;

-- name: MeasureWorkers :many
SELECT state, COUNT(*) AS n, CAST(SUM(unsent) AS INTEGER) AS unsent, CAST(COALESCE(MIN(NULLIF(unsent_since, 0)), 0) AS INTEGER) AS unsent_since
FROM workers WHERE deleted_at = 0 GROUP BY state;

-- name: MeasureDeliveries :one
SELECT COUNT(*) AS n, CAST(COALESCE(MIN(id), 0) AS INTEGER) AS oldest FROM deliveries WHERE state = 'waiting';

-- name: MeasureScheduleErrors :one
SELECT COUNT(*) FROM agents WHERE deleted_at = 0 AND paused = 0 AND schedule_error <> '';

-- What a session's trace is made of. LIMIT keeps one that was claimed or asked without end from
-- becoming a trace that nobody can show.
-- name: ClaimsOfSession :many
SELECT c.fence, c.granted_at, c.closed_at, c.closed_by, CAST(COALESCE(w.mode, '') AS TEXT) AS worker_mode
FROM claims c LEFT JOIN workers w ON w.id = c.worker_id WHERE c.session_id = @session_id ORDER BY c.id LIMIT @n;

-- name: PromptsOfSession :many
SELECT kind, created_at, closed_at, resolution FROM prompts WHERE session_id = @session_id ORDER BY id LIMIT @n;
