-- name: RunOfClaim :one
SELECT sqlc.embed(c), s.workspace_id, s.agent_id AS of_agent, s.owner_user_id, s.triggered_by_user_id, s.depth
FROM claims c JOIN sessions s ON s.id = c.session_id WHERE c.id = @id;

-- Counts a session that an agent starts, as long as its claim holds and allows more.
-- name: CountStart :execrows
UPDATE claims SET started = started + 1 WHERE id = @id AND closed_at = 0 AND expires_at > @now AND started < @most;
