-- The arguments are the table's columns in their order: a row converts to them.
-- name: InsertWebhook :exec
INSERT INTO webhooks (
    id, workspace_id, url, description, types, secret, old_secret, old_until, enabled, disabled_reason, after_seq,
    created_by, created_at, deleted_at
) VALUES (
    @id, @workspace_id, @url, @description, @types, @secret, @old_secret, @old_until, @enabled, @disabled_reason,
    @after_seq, @created_by, @created_at, @deleted_at
);

-- name: Webhook :one
SELECT * FROM webhooks WHERE id = @id AND deleted_at = 0;

-- name: ListWebhooks :many
SELECT * FROM webhooks WHERE workspace_id = @workspace_id AND deleted_at = 0 AND id < @before ORDER BY id DESC LIMIT @n;

-- name: UpdateWebhook :execrows
UPDATE webhooks SET
    url = @url, description = @description, types = @types, enabled = @enabled, disabled_reason = @disabled_reason,
    after_seq = @after_seq, created_by = @created_by
WHERE id = @id AND deleted_at = 0;

-- name: RotateWebhook :execrows
UPDATE webhooks SET secret = @secret, old_secret = @old_secret, old_until = @old_until, created_by = @created_by
WHERE id = @id AND deleted_at = 0;

-- name: DeleteWebhook :execrows
UPDATE webhooks SET deleted_at = @deleted_at, enabled = 0, secret = x'', old_secret = x'' WHERE id = @id AND deleted_at = 0;

-- name: WebhooksOf :many
SELECT id FROM webhooks WHERE workspace_id = @workspace_id AND created_by = @created_by AND deleted_at = 0 ORDER BY id;

-- name: WebhooksBehind :many
SELECT id FROM webhooks WHERE deleted_at = 0 AND enabled = 1 AND after_seq < @newest ORDER BY id LIMIT @n;

-- name: MoveWebhook :execrows
UPDATE webhooks SET after_seq = @after_seq WHERE id = @id AND after_seq = @from_seq AND enabled = 1 AND deleted_at = 0;

-- name: InsertDelivery :exec
INSERT INTO deliveries (
    id, webhook_id, message, type, body, state, tries, next_at, tried_at, status_code, answer, problem, again_of, created_at, ended_at
) VALUES (
    @id, @webhook_id, @message, @type, @body, 'waiting', 0, @next_at, 0, 0, '', '', @again_of, @created_at, 0
);

-- name: Delivery :one
SELECT * FROM deliveries WHERE id = @id;

-- name: ListDeliveries :many
SELECT * FROM deliveries WHERE webhook_id = @webhook_id AND id < @before ORDER BY id DESC LIMIT @n;

-- name: DueDeliveries :many
SELECT id, webhook_id, next_at FROM deliveries
WHERE state = 'waiting' AND next_at <= @now AND next_at >= @from_at AND (next_at > @from_at OR id > @after)
ORDER BY next_at, id LIMIT @n;

-- name: DeliveredSince :one
SELECT id FROM deliveries WHERE webhook_id = @webhook_id AND state = 'delivered' AND ended_at >= @since ORDER BY id DESC LIMIT 1;

-- name: NextDelivery :one
SELECT next_at FROM deliveries WHERE state = 'waiting' AND next_at > @now ORDER BY next_at LIMIT 1;

-- A try begins: if this process dies, the delivery is due again at next_at.
-- name: TryDelivery :execrows
UPDATE deliveries SET tries = tries + 1, tried_at = @now, next_at = @next_at
WHERE id = @id AND state = 'waiting' AND next_at <= @now;

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

-- name: OldDeliveries :many
SELECT id FROM deliveries WHERE id < @first_retained AND created_at < @before AND state <> 'waiting' ORDER BY id LIMIT @n;

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
