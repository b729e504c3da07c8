-- name: InsertRunToken :exec
INSERT INTO run_tokens (hash, claim_id) VALUES (@hash, @claim_id);

-- name: RunToken :one
SELECT sqlc.embed(c), s.workspace_id, s.agent_id AS of_agent, s.owner_user_id, s.triggered_by_user_id, s.depth
FROM run_tokens t JOIN claims c ON c.id = t.claim_id JOIN sessions s ON s.id = c.session_id WHERE t.hash = @hash;

-- Counts a session that an agent starts, as long as its claim lives and has any left.
-- name: CountStart :execrows
UPDATE claims SET started = started + 1 WHERE id = @id AND closed_at = 0 AND expires_at > @now AND started < @most;

-- name: DropRunTokens :execrows
DELETE FROM run_tokens WHERE hash IN (
    SELECT t.hash FROM run_tokens t JOIN claims c ON c.id = t.claim_id WHERE c.closed_at > 0 LIMIT @n);
