-- What the dashboard's pages read besides the engine's own statements.

-- The join that keeps its order begins at the few live claims; the other way is through every session of the workspace.
-- name: ViewRunning :many
SELECT s.* FROM claims c CROSS JOIN sessions s
WHERE c.closed_at = 0 AND s.id = c.session_id AND s.workspace_id = @workspace_id AND (s.mode = 'cloud' OR s.owner_user_id = @me)
ORDER BY s.started_at DESC, s.id DESC LIMIT @n;

-- Sessions of one waiting status over all agents. That they have not ended is the index's own condition.
-- name: ViewWaiting :many
SELECT s.* FROM agents a JOIN sessions s ON s.agent_id = a.id
WHERE a.workspace_id = @workspace_id AND a.deleted_at = 0
  AND s.ended_at = 0 AND s.status = @status
  AND (s.mode = 'cloud' OR s.owner_user_id = @me)
LIMIT @n;

-- The newest finished sessions among the newest ones; scan bounds the work when nearly all are
-- waiting.
-- name: ViewFinished :many
SELECT s.* FROM sessions s
WHERE s.id IN (SELECT x.id FROM sessions x WHERE x.workspace_id = @workspace_id ORDER BY x.id DESC LIMIT @scan)
  AND s.status IN ('complete', 'error', 'cancelled') AND s.archived_at = 0
  AND (s.mode = 'cloud' OR s.owner_user_id = @me)
ORDER BY s.id DESC LIMIT @n;

-- name: ViewRuns :many
SELECT s.id, s.status, s.title, s.triggered_by, s.created_at, s.started_at, s.ended_at, s.outcome FROM sessions s
WHERE s.agent_id = @agent_id AND (s.mode = 'cloud' OR s.owner_user_id = @me)
ORDER BY s.id DESC LIMIT @n;

-- name: ViewTurns :many
SELECT at, data FROM events
WHERE session_id = @session_id AND session_id > 0 AND type LIKE 'session%' AND type <> 'session_reported'
ORDER BY seq LIMIT @n;

-- name: ViewNextSlots :many
SELECT * FROM agents
WHERE next_slot_at > 0 AND workspace_id = @workspace_id AND deleted_at = 0 AND paused = 0
ORDER BY next_slot_at LIMIT @n;

-- name: ViewAgents :many
SELECT * FROM agents WHERE workspace_id = @workspace_id AND deleted_at = 0 AND slug > @after ORDER BY slug LIMIT @n;

-- name: ViewFailingAgents :many
SELECT * FROM agents
WHERE workspace_id = @workspace_id AND deleted_at = 0 AND paused = 1 AND paused_reason <> '' AND failures_in_row > 0
ORDER BY paused_at DESC LIMIT @n;

-- name: ViewWorkerSessions :many
SELECT s.* FROM claims c JOIN sessions s ON s.id = c.session_id
WHERE c.worker_id = @worker_id AND c.drained = 0 AND (s.mode = 'cloud' OR s.owner_user_id = @me)
ORDER BY c.id LIMIT @n;

-- Sessions with an open question, whether their worker waits for the answer, was lost, or has parked them.
-- name: ViewAsking :many
SELECT s.* FROM sessions s
WHERE s.workspace_id = @workspace_id AND s.prompt_id > 0 AND s.status IN ('pending', 'awaiting_input', 'stale')
  AND (s.mode = 'cloud' OR s.owner_user_id = @me)
ORDER BY s.prompt_id DESC LIMIT @n;

-- For each agent the newest session that ended in error, among a number that nobody has
-- archived.
-- name: ViewFailed :many
SELECT s.* FROM sessions s
WHERE s.id IN (
    SELECT MAX(y.id) FROM sessions y
    WHERE y.id IN (
        SELECT x.id FROM sessions x
        WHERE x.workspace_id = @workspace_id AND x.status = 'error' AND x.archived_at = 0
        ORDER BY x.id DESC LIMIT @scan
    ) AND (y.mode = 'cloud' OR y.owner_user_id = @me)
    GROUP BY y.agent_id
) AND s.ended_at >= @since
  AND EXISTS (SELECT 1 FROM agents a WHERE a.id = s.agent_id AND a.deleted_at = 0)
ORDER BY s.id DESC LIMIT @n;

-- name: ViewDisabledWebhooks :many
SELECT * FROM webhooks
WHERE workspace_id = @workspace_id AND deleted_at = 0 AND enabled = 0 AND disabled_reason <> '' AND scope = ''
ORDER BY id DESC LIMIT @n;

-- name: ViewDisabledChannels :many
SELECT * FROM webhooks
WHERE workspace_id = @workspace_id AND deleted_at = 0 AND enabled = 0 AND disabled_reason <> ''
  AND ((scope = 'person' AND created_by = @me) OR (scope = 'workspace' AND CAST(@may_all AS INTEGER) = 1))
ORDER BY id DESC LIMIT @n;

-- The agents that have a schedule and their states, by slug.
-- name: ViewSchedules :many
SELECT * FROM agents
WHERE workspace_id = @workspace_id AND deleted_at = 0 AND schedule <> '' AND slug > @after ORDER BY slug LIMIT @n;

-- Slots that were due and at which nothing ran, the newest first. They are few, so SQLite begins
-- with them: it keeps the order of a CROSS JOIN.
-- name: ViewNotRun :many
SELECT sqlc.embed(ledger), a.slug, a.name, a.mode FROM ledger CROSS JOIN agents a
WHERE ledger.verdict IN ('skipped', 'missed') AND ledger.decided_at >= @since AND a.id = ledger.agent_id AND a.workspace_id = @workspace_id AND a.deleted_at = 0
ORDER BY ledger.decided_at DESC LIMIT @n;
