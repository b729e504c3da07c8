-- name: Findings :many
SELECT * FROM findings;

-- What is wrong now, but for lost sessions, which the inbox shows by themselves.
-- name: OpenFindings :many
SELECT * FROM findings WHERE workspace_id = @workspace_id AND ended_at = 0 AND session_id = 0 ORDER BY since DESC, kind, agent_id LIMIT @n;

-- name: FindingTold :one
SELECT kind FROM findings WHERE told_seq = @told_seq AND ended_at = 0;

-- The arguments are the table's columns in their order: a row converts to them.
-- name: PutFinding :exec
INSERT INTO findings (workspace_id, kind, agent_id, session_id, code, title, detail, mend, since, told_seq, ended_at)
VALUES (@workspace_id, @kind, @agent_id, @session_id, @code, @title, @detail, @mend, @since, @told_seq, @ended_at)
ON CONFLICT (workspace_id, kind, agent_id, session_id) DO UPDATE SET
    code = excluded.code, title = excluded.title, detail = excluded.detail, mend = excluded.mend, since = excluded.since,
    told_seq = excluded.told_seq, ended_at = excluded.ended_at;

-- name: DropFinding :execrows
DELETE FROM findings WHERE workspace_id = @workspace_id AND kind = @kind AND agent_id = @agent_id AND session_id = @session_id;

-- Schedules that may be doing nothing: those that can't be read, whose newest slot started nothing, or whose newest run
-- of some time ago has never begun.
-- name: IdleSchedules :many
SELECT a.* FROM agents a
WHERE a.schedule <> '' AND a.paused = 0 AND a.deleted_at = 0 AND (
    a.schedule_error <> ''
    OR (SELECT l.verdict FROM ledger l WHERE l.agent_id = a.id ORDER BY l.last_slot DESC, l.id DESC LIMIT 1) IN ('skipped', 'folded', 'missed')
    OR EXISTS (
        SELECT 1 FROM sessions s
        WHERE s.id = (SELECT f.session_id FROM ledger f WHERE f.agent_id = a.id AND f.verdict = 'fired' AND f.last_slot <= @before ORDER BY f.last_slot DESC LIMIT 1)
          AND s.fence = 0 AND s.ended_at = 0
    )
)
LIMIT @n;

-- The run of an agent's newest slot that fired up to an instant.
-- name: FiredUpTo :one
SELECT s.* FROM sessions s
WHERE s.id = (SELECT f.session_id FROM ledger f WHERE f.agent_id = @agent_id AND f.verdict = 'fired' AND f.last_slot <= @before ORDER BY f.last_slot DESC LIMIT 1);

-- name: LostSessions :many
SELECT s.* FROM agents a JOIN sessions s ON s.agent_id = a.id
WHERE a.deleted_at = 0 AND s.ended_at = 0 AND s.status = 'stale' AND s.prompt_id = 0
LIMIT @n;

-- name: SpentAgents :many
SELECT * FROM agents WHERE daily_spend_limit > 0 AND spent_on_day >= daily_spend_limit AND deleted_at = 0 LIMIT @n;
