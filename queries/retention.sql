-- What retention looks for and removes (contract 13.2).

-- Conversations by their first session, oldest first.
-- name: OldThreads :many
SELECT id, agent_id, ended_at FROM sessions WHERE id > @after AND id < @upto AND thread_id = id ORDER BY id LIMIT @n;

-- name: MembersOfThread :many
SELECT s.id, s.agent_id, s.ended_at, s.kept_at FROM sessions s
WHERE s.id IN (
    SELECT CAST(@thread_id AS INTEGER) UNION ALL
    SELECT x.id FROM sessions x WHERE x.thread_id = CAST(@thread_id AS INTEGER) AND x.thread_id <> x.id
) ORDER BY s.id DESC;

-- What holds a conversation as a whole: a session of it that runs, waits or is kept.
-- name: HolderOfThread :one
SELECT s.id FROM sessions s
WHERE s.id IN (
    SELECT CAST(@thread_id AS INTEGER) UNION ALL
    SELECT x.id FROM sessions x WHERE x.thread_id = CAST(@thread_id AS INTEGER) AND x.thread_id <> x.id
) AND (s.ended_at = 0 OR s.kept_at > 0) LIMIT 1;

-- name: UndrainedOfSession :one
SELECT id FROM claims WHERE session_id = @session_id AND drained = 0 LIMIT 1;

-- name: NextWithItems :one
SELECT session_id FROM items WHERE session_id > @after AND session_id < @upto ORDER BY session_id LIMIT 1;

-- name: NextWithAttachments :one
SELECT session_id FROM attachments WHERE session_id > @after AND session_id < @upto ORDER BY session_id LIMIT 1;

-- name: NextWithFiles :one
SELECT session_id FROM changed_files WHERE session_id > @after AND session_id < @upto ORDER BY session_id LIMIT 1;

-- name: NextWithEvents :one
SELECT session_id FROM events WHERE session_id > 0 AND session_id > @after AND session_id < @upto ORDER BY session_id LIMIT 1;

-- name: LastEventOfSession :one
SELECT CAST(COALESCE(MAX(seq), 0) AS INTEGER) AS seq FROM events WHERE session_id = @session_id AND session_id > 0;

-- How far each webhook has read the log; what it hasn't read stays.
-- name: SlowestWebhook :one
SELECT CAST(COALESCE(MIN(after_seq), 9223372036854775807) AS INTEGER) AS seq FROM webhooks WHERE deleted_at = 0 AND enabled = 1;

-- name: MarkOutputRemoved :execrows
UPDATE sessions SET output_removed_at = @at WHERE id = @id AND ended_at > 0 AND kept_at = 0 AND output_removed_at = 0;

-- name: MarkEventsRemoved :execrows
UPDATE sessions SET events_removed_at = @at WHERE id = @id AND ended_at > 0 AND kept_at = 0 AND events_removed_at = 0;

-- name: DropItemsOf :execrows
DELETE FROM items WHERE items.session_id = @session_id AND items.seq IN (SELECT x.seq FROM items x WHERE x.session_id = @session_id ORDER BY x.seq LIMIT @n);

-- name: DropOutputOf :execrows
DELETE FROM outputs WHERE session_id = @session_id;

-- name: DropEventsOf :execrows
DELETE FROM events WHERE seq IN (SELECT x.seq FROM events x WHERE x.session_id = @session_id AND x.session_id > 0 ORDER BY x.seq LIMIT @n);

-- name: DropActivitiesOf :execrows
DELETE FROM activities WHERE id IN (SELECT x.id FROM activities x WHERE x.session_id = @session_id ORDER BY x.id LIMIT @n);

-- name: DropMessagesOf :execrows
DELETE FROM messages WHERE session_id = @session_id;

-- name: DropPromptsOf :execrows
DELETE FROM prompts WHERE session_id = @session_id;

-- name: DropLateResultsOf :execrows
DELETE FROM late_results WHERE session_id = @session_id;

-- name: DropClaimsOf :execrows
DELETE FROM claims WHERE session_id = @session_id AND drained = 1;

-- name: DropThread :execrows
DELETE FROM threads WHERE id = @id;

-- name: DropSession :execrows
DELETE FROM sessions WHERE id = @id AND ended_at > 0 AND kept_at = 0;

-- The spans beside an id, of one owner's local sessions or of all others (owner 0).
-- name: SpanBelow :one
SELECT first_id, last_id, day FROM removed_spans
WHERE workspace_id = @workspace_id AND owner_user_id = @owner_user_id AND first_id <= @id ORDER BY first_id DESC LIMIT 1;

-- name: SpanAbove :one
SELECT first_id, last_id, day FROM removed_spans
WHERE workspace_id = @workspace_id AND owner_user_id = @owner_user_id AND first_id > @id ORDER BY first_id LIMIT 1;

-- name: AnySessionBetween :one
SELECT id FROM sessions WHERE workspace_id = @workspace_id AND id > @after AND id < @before LIMIT 1;

-- name: PutSpan :exec
INSERT INTO removed_spans (workspace_id, owner_user_id, first_id, last_id, day) VALUES (@workspace_id, @owner_user_id, @first_id, @last_id, @day)
ON CONFLICT (workspace_id, owner_user_id, first_id) DO UPDATE SET last_id = excluded.last_id;

-- name: DropSpan :execrows
DELETE FROM removed_spans WHERE workspace_id = @workspace_id AND owner_user_id = @owner_user_id AND first_id = @first_id;

-- What the coordinator notes in the log by itself, of one type.
-- name: OldNotes :many
SELECT seq FROM events WHERE session_id = 0 AND type = @type AND seq > @after AND seq < @upto AND at < @before ORDER BY seq LIMIT @n;

-- name: DropNotes :execrows
DELETE FROM events WHERE session_id = 0 AND type = @type AND seq > @after AND seq <= @last AND at < @before;

-- Entries of the audit: events about no session that the coordinator doesn't note by itself. The
-- sums keep SQLite from sorting what the index by type has.
-- name: OldAudit :many
SELECT seq FROM events
WHERE seq > @after AND seq < @upto AND session_id + 0 = 0 AND (at < @before OR seq < @reach)
  AND type NOT IN ('slot_decided', 'worker_online', 'worker_stale', 'worker_offline')
ORDER BY seq LIMIT @n;

-- name: DropAudit :execrows
DELETE FROM events
WHERE seq > @after AND seq <= @last AND session_id + 0 = 0 AND (at < @before OR seq < @reach)
  AND type NOT IN ('slot_decided', 'worker_online', 'worker_stale', 'worker_offline');

-- What told of something that is still wrong stays: whom it was told is told of its end.
-- name: OldDeliveryIDs :many
SELECT d.id FROM deliveries d
WHERE d.id > @after AND d.id < @upto AND d.state <> 'waiting' AND d.created_at < @settled AND (d.created_at < @before OR d.id < @reach)
  AND NOT (d.cause GLOB 'finding-*' AND EXISTS (SELECT 1 FROM findings f WHERE f.told_seq = CAST(SUBSTR(d.cause, 9) AS INTEGER)))
ORDER BY d.id LIMIT @n;

-- name: OldDeliveriesOf :many
SELECT d.id FROM deliveries d
WHERE d.webhook_id = @webhook_id AND d.id < @reach AND d.state <> 'waiting' AND d.created_at < @settled
  AND NOT (d.cause GLOB 'finding-*' AND EXISTS (SELECT 1 FROM findings f WHERE f.told_seq = CAST(SUBSTR(d.cause, 9) AS INTEGER)))
ORDER BY d.id LIMIT @n;

-- name: ReachOfDeliveries :one
SELECT CAST(COALESCE(MIN(x.id), 0) AS INTEGER) AS reach, COUNT(*) AS n FROM (
    SELECT d.id FROM deliveries d WHERE d.webhook_id = @webhook_id ORDER BY d.id DESC LIMIT @scan
) x;

-- name: WebhooksAfter :many
SELECT id FROM webhooks WHERE id > @after ORDER BY id LIMIT @n;

-- How many bytes each has, newest first; a fixed number stands for what lies around the texts.
-- name: BytesOfSessions :many
SELECT id, CAST(1000 + OCTET_LENGTH(title) + OCTET_LENGTH(prompt) + OCTET_LENGTH(instructions) + OCTET_LENGTH(untrusted_context)
    + OCTET_LENGTH(plan) + OCTET_LENGTH(result) + OCTET_LENGTH(error_message) AS INTEGER) AS bytes
FROM sessions WHERE id < @before ORDER BY id DESC LIMIT @n;

-- name: BytesOfOutputs :many
SELECT session_id, CAST(head_bytes + tail_bytes AS INTEGER) AS bytes FROM outputs
WHERE session_id < @before ORDER BY session_id DESC LIMIT @n;

-- name: BytesOfFiles :many
SELECT session_id, CAST(SUM(200 + OCTET_LENGTH(patch)) AS INTEGER) AS bytes FROM changed_files
WHERE session_id < @before GROUP BY session_id ORDER BY session_id DESC LIMIT @n;

-- name: BytesOfAttachments :many
SELECT session_id, CAST(SUM(200 + size) AS INTEGER) AS bytes FROM attachments
WHERE session_id < @before GROUP BY session_id ORDER BY session_id DESC LIMIT @n;

-- name: BytesOfEvents :many
SELECT session_id, CAST(150 + SUM(100 + OCTET_LENGTH(data)) AS INTEGER) AS bytes FROM events
WHERE session_id > 0 AND session_id < @before GROUP BY session_id ORDER BY session_id DESC LIMIT @n;

-- name: BytesOfAudit :many
SELECT seq, CAST(100 + OCTET_LENGTH(data) AS INTEGER) AS bytes FROM events
WHERE seq < @before AND session_id + 0 = 0 AND type NOT IN ('slot_decided', 'worker_online', 'worker_stale', 'worker_offline')
ORDER BY seq DESC LIMIT @n;

-- name: BytesOfDeliveries :many
SELECT id, CAST(200 + OCTET_LENGTH(body) + OCTET_LENGTH(answer) + OCTET_LENGTH(problem) AS INTEGER) AS bytes FROM deliveries
WHERE id < @before ORDER BY id DESC LIMIT @n;

-- name: CountEventsOf :one
SELECT COUNT(*) AS n FROM events WHERE session_id = @session_id AND session_id > 0;

-- name: RetentionState :one
SELECT * FROM retention WHERE id = 1;

-- name: NoteLooked :execrows
UPDATE retention SET looked_at = @looked_at WHERE id = 1;

-- name: NoteRound :execrows
UPDATE retention SET looked_at = @looked_at, removed_at = @removed_at, removed = @removed WHERE id = 1;

-- name: SetKept :execrows
UPDATE sessions SET kept_at = @kept_at WHERE id = @id;
