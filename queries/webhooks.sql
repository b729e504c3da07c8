-- The arguments are the table's columns in their order: a row converts to them.
-- name: InsertWebhook :exec
INSERT INTO webhooks (
    id, workspace_id, url, description, types, secret, old_secret, old_until, enabled, disabled_reason, after_seq,
    created_by, created_at, deleted_at, scope, target, causes, details, quiet_from, quiet_to, digest_at, time_zone, told_at
) VALUES (
    @id, @workspace_id, @url, @description, @types, @secret, @old_secret, @old_until, @enabled, @disabled_reason,
    @after_seq, @created_by, @created_at, @deleted_at, @scope, @target, @causes, @details, @quiet_from, @quiet_to,
    @digest_at, @time_zone, @told_at
);

-- name: Webhook :one
SELECT * FROM webhooks WHERE id = @id AND deleted_at = 0;

-- name: WebhookEvenDeleted :one
SELECT * FROM webhooks WHERE id = @id;

-- name: ListWebhooks :many
SELECT * FROM webhooks WHERE workspace_id = @workspace_id AND deleted_at = 0 AND scope = '' AND id < @before ORDER BY id DESC LIMIT @n;

-- A person's channels, and the workspace's for those who may look at them.
-- name: ListChannels :many
SELECT * FROM webhooks
WHERE workspace_id = @workspace_id AND deleted_at = 0 AND id < @before
  AND ((scope = 'person' AND created_by = @me) OR (scope = 'workspace' AND CAST(@may_all AS INTEGER) = 1))
ORDER BY id DESC LIMIT @n;

-- name: UpdateWebhook :execrows
UPDATE webhooks SET
    url = @url, description = @description, types = @types, enabled = @enabled, disabled_reason = @disabled_reason,
    after_seq = @after_seq, created_by = @created_by, target = @target, causes = @causes, details = @details,
    quiet_from = @quiet_from, quiet_to = @quiet_to, digest_at = @digest_at, time_zone = @time_zone
WHERE id = @id AND deleted_at = 0;

-- name: RotateWebhook :execrows
UPDATE webhooks SET secret = @secret, old_secret = @old_secret, old_until = @old_until, created_by = @created_by
WHERE id = @id AND deleted_at = 0;

-- name: DeleteWebhook :execrows
UPDATE webhooks SET deleted_at = @deleted_at, enabled = 0, secret = x'', old_secret = x'' WHERE id = @id AND deleted_at = 0;

-- The address of a channel is a secret.
-- name: DeleteChannel :execrows
UPDATE webhooks SET deleted_at = @deleted_at, enabled = 0, url = '' WHERE id = @id AND deleted_at = 0 AND scope <> '';

-- name: WebhooksOf :many
SELECT * FROM webhooks WHERE workspace_id = @workspace_id AND created_by = @created_by AND deleted_at = 0 ORDER BY id;

-- name: WebhooksBehind :many
SELECT id FROM webhooks WHERE deleted_at = 0 AND enabled = 1 AND after_seq < @newest ORDER BY id LIMIT @n;

-- name: MoveWebhook :execrows
UPDATE webhooks SET after_seq = @after_seq WHERE id = @id AND after_seq = @from_seq AND enabled = 1 AND deleted_at = 0;

-- name: InsertDelivery :exec
INSERT INTO deliveries (
    id, webhook_id, message, type, body, state, tries, next_at, tried_at, status_code, answer, problem, again_of, created_at, ended_at, cause, held, part_of
) VALUES (
    @id, @webhook_id, @message, @type, @body, 'waiting', 0, @next_at, 0, 0, '', '', @again_of, @created_at, 0, @cause, @held, 0
);

-- name: ToldOf :one
SELECT id FROM deliveries WHERE webhook_id = @webhook_id AND cause = @cause AND cause <> '';

-- name: FailureStreak :one
SELECT failures FROM failure_streaks WHERE webhook_id = @webhook_id AND agent_id = @agent_id;

-- name: SetFailureStreak :exec
INSERT INTO failure_streaks (webhook_id, agent_id, failures) VALUES (@webhook_id, @agent_id, @failures)
ON CONFLICT (webhook_id, agent_id) DO UPDATE SET failures = excluded.failures;

-- name: EndFailureStreak :execrows
DELETE FROM failure_streaks WHERE webhook_id = @webhook_id AND agent_id = @agent_id;

-- name: EndFailureStreaks :execrows
DELETE FROM failure_streaks WHERE webhook_id = @webhook_id;

-- name: Delivery :one
SELECT * FROM deliveries WHERE id = @id;

-- name: ListDeliveries :many
SELECT * FROM deliveries WHERE webhook_id = @webhook_id AND id < @before ORDER BY id DESC LIMIT @n;

-- name: DueDeliveries :many
SELECT id, webhook_id, next_at FROM deliveries
WHERE state = 'waiting' AND part_of = 0 AND next_at <= @now AND next_at >= @from_at AND (next_at > @from_at OR id > @after)
ORDER BY next_at, id LIMIT @n;

-- name: DeliveredSince :one
SELECT id FROM deliveries WHERE webhook_id = @webhook_id AND state = 'delivered' AND ended_at >= @since ORDER BY id DESC LIMIT 1;

-- name: NextDelivery :one
SELECT next_at FROM deliveries WHERE state = 'waiting' AND part_of = 0 AND next_at > @now ORDER BY next_at LIMIT 1;

-- A try begins: if this process dies, the delivery is due again at next_at.
-- name: TryDelivery :execrows
UPDATE deliveries SET tries = tries + 1, tried_at = @now, next_at = @next_at
WHERE id = @id AND state = 'waiting' AND part_of = 0 AND next_at <= @now;

-- What else of a channel nobody has been told: it goes into the message that is due now.
-- name: UntoldOf :many
SELECT * FROM deliveries
WHERE webhook_id = @webhook_id AND state = 'waiting' AND tries = 0 AND cause <> '' AND part_of = 0 AND next_at <= @before
ORDER BY next_at, id LIMIT @n;

-- name: JoinDelivery :execrows
UPDATE deliveries SET part_of = @part_of WHERE id = @id AND state = 'waiting' AND tries = 0 AND part_of = 0;

-- name: PartsOf :many
SELECT * FROM deliveries WHERE part_of = @part_of AND part_of <> 0 ORDER BY id;

-- The parts of a message end as it does.
-- name: EndParts :execrows
UPDATE deliveries SET
    state = @state, tries = @tries, next_at = 0, tried_at = @tried_at, status_code = @status_code, problem = @problem, ended_at = @ended_at
WHERE part_of = @part_of AND part_of <> 0 AND state = 'waiting';

-- name: HoldDelivery :execrows
UPDATE deliveries SET next_at = @next_at, held = @held WHERE id = @id AND state = 'waiting';

-- The times at which a channel may tell were changed: whether something is held back is decided again.
-- name: RecallHeld :execrows
UPDATE deliveries SET next_at = @now WHERE webhook_id = @webhook_id AND state = 'waiting' AND tries = 0 AND cause <> '' AND next_at > @now;

-- name: NoteTold :execrows
UPDATE webhooks SET told_at = @told_at WHERE id = @id;

-- name: EndDelivery :execrows
UPDATE deliveries SET
    state = @state, next_at = @next_at, status_code = @status_code, answer = @answer, problem = @problem, ended_at = @ended_at
WHERE id = @id AND state = 'waiting' AND tries = @tries;

-- name: DropWaiting :execrows
UPDATE deliveries SET state = 'failed', next_at = 0, problem = @problem, ended_at = @ended_at
WHERE webhook_id = @webhook_id AND state = 'waiting';

-- name: WaitingDeliveries :many
SELECT id, body FROM deliveries WHERE webhook_id = @webhook_id AND state = 'waiting' ORDER BY id;

-- name: DropWaitingOne :execrows
UPDATE deliveries SET state = 'failed', next_at = 0, problem = @problem, ended_at = @ended_at
WHERE id = @id AND state = 'waiting';

-- name: DropDelivery :execrows
DELETE FROM deliveries WHERE id = @id AND state <> 'waiting';

-- name: InsertTriggerURL :exec
INSERT INTO trigger_urls (
    id, workspace_id, agent_id, hash, signature, secret, description, created_by, created_at, last_used_at, deleted_at
) VALUES (
    @id, @workspace_id, @agent_id, @hash, @signature, @secret, @description, @created_by, @created_at, 0, 0
);

-- name: TriggerURLByHash :one
SELECT * FROM trigger_urls WHERE hash = @hash AND deleted_at = 0;

-- name: TriggerURL :one
SELECT * FROM trigger_urls WHERE id = @id AND deleted_at = 0;

-- name: TriggerURLsOfAgent :many
SELECT * FROM trigger_urls WHERE agent_id = @agent_id AND deleted_at = 0 AND id < @before ORDER BY id DESC LIMIT @n;

-- name: UseTriggerURL :execrows
UPDATE trigger_urls SET last_used_at = @last_used_at WHERE id = @id AND deleted_at = 0;

-- name: DeleteTriggerURL :execrows
UPDATE trigger_urls SET deleted_at = @deleted_at, secret = x'' WHERE id = @id AND deleted_at = 0;

-- name: TriggerURLsBy :many
SELECT * FROM trigger_urls WHERE workspace_id = @workspace_id AND created_by = @created_by AND deleted_at = 0 ORDER BY id;
