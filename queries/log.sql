-- Events about sign-ins are only for those who may read the audit.
-- name: EventsAfter :many
SELECT sqlc.embed(e), CAST(COALESCE(s.agent_id, e.agent_id) AS INTEGER) AS agent
FROM events e LEFT JOIN sessions s ON s.id = e.session_id
WHERE e.seq > @after
  AND e.type NOT IN ('program_signed_in', 'program_signed_out', 'program_token_reused', 'program_revoked', 'sign_in_refused', 'signed_in', 'identity_linked', 'identity_unlinked')
  AND ((e.session_id = 0 AND e.workspace_id = @workspace_id)
    OR (s.workspace_id = @workspace_id AND (s.mode = 'cloud' OR s.owner_user_id = @me)))
ORDER BY e.seq LIMIT @n;

-- What EventsAfter reads for one viewer, but for all of them: what each may know is decided by
-- the reader.
-- name: EventsForAll :many
SELECT * FROM events
WHERE seq > @after
  AND type NOT IN ('program_signed_in', 'program_signed_out', 'program_token_reused', 'program_revoked', 'sign_in_refused', 'signed_in', 'identity_linked', 'identity_unlinked')
ORDER BY seq LIMIT @n;

-- The log for people who look into it, newest first, down to reach, which bounds the work; ''
-- and 0 filter nothing.
-- name: AuditPage :many
SELECT sqlc.embed(e), CAST(COALESCE(s.agent_id, e.agent_id) AS INTEGER) AS agent
FROM events e LEFT JOIN sessions s ON s.id = e.session_id
WHERE e.seq < @before AND e.seq >= @reach AND e.at >= @since AND e.at < @until
  AND ((e.session_id = 0 AND e.workspace_id = @workspace_id)
    OR (s.workspace_id = @workspace_id AND (s.mode = 'cloud' OR s.owner_user_id = @me)))
  AND (CAST(@actor AS TEXT) = '' OR e.actor = CAST(@actor AS TEXT))
  AND (CAST(@type AS TEXT) = '' OR e.type = CAST(@type AS TEXT))
  AND (CAST(@agent_id AS INTEGER) = 0 OR e.agent_id = CAST(@agent_id AS INTEGER) OR s.agent_id = CAST(@agent_id AS INTEGER))
ORDER BY e.seq DESC LIMIT @n;

-- name: AuditOfSession :many
SELECT sqlc.embed(e), CAST(s.agent_id AS INTEGER) AS agent
FROM events e CROSS JOIN sessions s
WHERE e.session_id = @session_id AND e.session_id > 0 AND e.seq < @before AND e.at >= @since AND e.at < @until
  AND s.id = e.session_id AND s.workspace_id = @workspace_id AND (s.mode = 'cloud' OR s.owner_user_id = @me)
  AND (CAST(@actor AS TEXT) = '' OR e.actor = CAST(@actor AS TEXT))
  AND (CAST(@type AS TEXT) = '' OR e.type = CAST(@type AS TEXT))
  AND (CAST(@agent_id AS INTEGER) = 0 OR s.agent_id = CAST(@agent_id AS INTEGER))
ORDER BY e.seq DESC LIMIT @n;

-- Events of a type that is about no session: among millions of others they are few.
-- name: AuditOfType :many
SELECT sqlc.embed(e), e.agent_id AS agent
FROM events e
WHERE e.session_id = 0 AND e.type = @type AND e.seq < @before AND e.seq >= @reach AND e.at >= @since AND e.at < @until
  AND e.workspace_id = @workspace_id
  AND (CAST(@actor AS TEXT) = '' OR e.actor = CAST(@actor AS TEXT))
  AND (CAST(@agent_id AS INTEGER) = 0 OR e.agent_id = CAST(@agent_id AS INTEGER))
ORDER BY e.seq DESC LIMIT @n;

-- name: ReachOfType :one
SELECT CAST(COALESCE(MIN(x.seq), 0) AS INTEGER) AS reach, COUNT(*) AS n FROM (
    SELECT e.seq FROM events e WHERE e.session_id = 0 AND e.type = @type AND e.seq < @before ORDER BY e.seq DESC LIMIT @scan
) x;

-- name: AnyEventOfType :one
SELECT seq FROM events WHERE session_id = 0 AND type = @type ORDER BY seq DESC LIMIT 1;

-- name: LastEventUpTo :one
SELECT seq, at FROM events WHERE seq <= @seq ORDER BY seq DESC LIMIT 1;

-- name: EventsOfSession :many
SELECT * FROM events WHERE session_id = @session_id AND session_id > 0 AND seq < @before ORDER BY seq DESC LIMIT @n;

-- name: EventsOfAgent :many
SELECT * FROM events WHERE agent_id = @agent_id AND agent_id > 0 AND session_id = 0 AND seq < @before ORDER BY seq DESC LIMIT @n;

-- name: OldestEvent :one
SELECT CAST(COALESCE(MIN(seq), 0) AS INTEGER) AS seq FROM events;

-- name: InsertActivity :execrows
INSERT INTO activities (id, session_id, client_key, type, text, detail, at, mark)
VALUES (@id, @session_id, @client_key, @type, @text, @detail, @at, @mark)
ON CONFLICT (session_id, client_key) WHERE client_key <> '' DO NOTHING;

-- name: ActivityByKey :one
SELECT * FROM activities WHERE session_id = @session_id AND client_key = @client_key AND client_key <> '';

-- name: ListActivities :many
SELECT * FROM activities WHERE session_id = @session_id AND id < @before ORDER BY id DESC LIMIT @n;

-- name: InsertItem :execrows
INSERT INTO items (session_id, seq, client_id, kind, stream, text, truncated, at, tool, call_id, failed, user_id)
VALUES (@session_id, @seq, @client_id, @kind, @stream, @text, @truncated, @at, @tool, @call_id, @failed, @user_id)
ON CONFLICT (session_id, client_id) WHERE client_id <> '' DO NOTHING;

-- name: LastItem :one
SELECT CAST(COALESCE(MAX(seq), 0) AS INTEGER) AS seq FROM items WHERE session_id = @session_id;

-- name: ItemsAfter :many
SELECT * FROM items WHERE session_id = @session_id AND seq > @after ORDER BY seq LIMIT @n;

-- name: ItemsBefore :many
SELECT * FROM items WHERE session_id = @session_id AND seq < @before ORDER BY seq DESC LIMIT @n;

-- name: InsertPrompt :exec
INSERT INTO prompts (id, session_id, kind, text, created_at, closed_at, closed_by, resolution, answer, detail, deadline_at, fallback, answer_detail, secret)
VALUES (@id, @session_id, @kind, @text, @created_at, 0, '', '', '', @detail, @deadline_at, @fallback, '', @secret);

-- name: Prompt :one
SELECT * FROM prompts WHERE id = @id;

-- name: ClosePrompt :execrows
UPDATE prompts SET
    closed_at = @closed_at, closed_by = @closed_by, resolution = @resolution, answer = @answer, answer_detail = @answer_detail
WHERE id = @id AND closed_at = 0;

-- name: SecretPrompts :many
SELECT * FROM prompts WHERE session_id = @session_id AND secret = 1 AND closed_at <> 0 ORDER BY id;

-- name: ForgetSecret :execrows
UPDATE prompts SET secret = 0, answer_detail = @answer_detail, fallback = @fallback WHERE id = @id AND secret = 1;

-- name: IdempotencyKey :one
SELECT * FROM idempotency_keys WHERE user_id = @user_id AND route = @route AND key = @key;

-- name: PutIdempotencyKey :exec
INSERT INTO idempotency_keys (user_id, route, key, body_hash, session_id, task_id, created_at)
VALUES (@user_id, @route, @key, @body_hash, @session_id, @task_id, @created_at)
ON CONFLICT (user_id, route, key) DO UPDATE SET
    body_hash = excluded.body_hash, session_id = excluded.session_id, task_id = excluded.task_id, created_at = excluded.created_at;

-- name: DropIdempotencyKeys :execrows
DELETE FROM idempotency_keys WHERE created_at < @before;

-- name: InsertLateResult :execrows
INSERT INTO late_results (id, claim_id, session_id, verb, result, at)
VALUES (@id, @claim_id, @session_id, @verb, @result, @at) ON CONFLICT (claim_id) DO NOTHING;

-- name: InsertLedger :execrows
INSERT INTO ledger (id, agent_id, verdict, reason, first_slot, last_slot, slots, session_id, decided_at)
VALUES (@id, @agent_id, @verdict, @reason, @first_slot, @last_slot, @slots, @session_id, @decided_at);

-- name: LatestLedger :one
SELECT * FROM ledger WHERE agent_id = @agent_id AND last_slot < @before ORDER BY last_slot DESC, id DESC LIMIT 1;

-- name: LedgerWithin :many
SELECT * FROM ledger WHERE agent_id = @agent_id AND last_slot >= @from_slot AND first_slot <= @to_slot ORDER BY last_slot;

-- name: SetLedgerRange :execrows
UPDATE ledger SET first_slot = @first_slot, last_slot = @last_slot, slots = @slots WHERE id = @id;

-- name: DeleteLedger :execrows
DELETE FROM ledger WHERE id = @id AND verdict <> 'fired';

-- name: GrowLedger :execrows
UPDATE ledger SET last_slot = @last_slot, slots = slots + @slots, decided_at = @decided_at WHERE id = @id AND last_slot < @last_slot;

-- name: ListLedger :many
SELECT * FROM ledger WHERE agent_id = @agent_id AND id < @before ORDER BY id DESC LIMIT @n;

-- The door through which old events go, see db.Tx.ForgetEvents.
-- name: OpenEventsDoor :exec
INSERT INTO events_door (one, below) VALUES (1, @below);

-- name: CloseEventsDoor :execrows
DELETE FROM events_door WHERE one = 1;
