-- Puts a new agent, or a new version of one over the version before it. What other statements
-- count stays as it is, so that nothing depends on when the row was read. The arguments are the
-- table's columns in their order: a row converts to them.
-- name: PutAgent :execrows
INSERT INTO agents (
    id, workspace_id, slug, name, description, mode, type, run, run_set_by, prompt, instructions, schedule, time_zone,
    catch_up, catch_up_window, overlap, jitter, runs_as_user_id, paused, paused_reason, paused_at, unpaused_at,
    max_concurrent, priority, labels, lease_seconds, reclaim_delay, turn_timeout, stall_timeout, queue_timeout,
    max_lapses, anchor_at, next_slot_at, schedule_error, last_triggered_at, running, failures_in_row, version,
    created_at, updated_at, deleted_at, session_spend_limit, daily_spend_limit, spend_day, spent_on_day,
    timeouts_set_by, task_updates, skip_until
) VALUES (
    @id, @workspace_id, @slug, @name, @description, @mode, @type, @run, @run_set_by, @prompt, @instructions,
    @schedule, @time_zone, @catch_up, @catch_up_window, @overlap, @jitter, @runs_as_user_id, @paused, @paused_reason,
    @paused_at, @unpaused_at, @max_concurrent, @priority, @labels, @lease_seconds, @reclaim_delay, @turn_timeout,
    @stall_timeout, @queue_timeout, @max_lapses, @anchor_at, @next_slot_at, @schedule_error, @last_triggered_at,
    @running, @failures_in_row, @version, @created_at, @updated_at, @deleted_at, @session_spend_limit,
    @daily_spend_limit, @spend_day, @spent_on_day, @timeouts_set_by, @task_updates, @skip_until
) ON CONFLICT (id) DO UPDATE SET
    slug = excluded.slug, name = excluded.name, description = excluded.description, mode = excluded.mode,
    type = excluded.type, run = excluded.run, run_set_by = excluded.run_set_by, prompt = excluded.prompt,
    instructions = excluded.instructions, schedule = excluded.schedule, time_zone = excluded.time_zone,
    catch_up = excluded.catch_up, catch_up_window = excluded.catch_up_window, overlap = excluded.overlap,
    jitter = excluded.jitter, runs_as_user_id = excluded.runs_as_user_id, paused = excluded.paused,
    paused_reason = excluded.paused_reason, paused_at = excluded.paused_at, unpaused_at = excluded.unpaused_at,
    max_concurrent = excluded.max_concurrent, priority = excluded.priority, labels = excluded.labels,
    lease_seconds = excluded.lease_seconds, reclaim_delay = excluded.reclaim_delay,
    turn_timeout = excluded.turn_timeout, stall_timeout = excluded.stall_timeout,
    queue_timeout = excluded.queue_timeout, max_lapses = excluded.max_lapses, anchor_at = excluded.anchor_at,
    next_slot_at = excluded.next_slot_at, schedule_error = excluded.schedule_error,
    failures_in_row = excluded.failures_in_row, version = excluded.version, updated_at = excluded.updated_at,
    session_spend_limit = excluded.session_spend_limit, daily_spend_limit = excluded.daily_spend_limit,
    timeouts_set_by = excluded.timeouts_set_by, task_updates = excluded.task_updates
WHERE agents.version = excluded.version - 1 AND agents.deleted_at = 0;

-- name: Agent :one
SELECT * FROM agents WHERE id = @id AND deleted_at = 0;

-- name: AgentEvenDeleted :one
SELECT * FROM agents WHERE id = @id;

-- name: AgentBySlug :one
SELECT * FROM agents WHERE workspace_id = @workspace_id AND slug = @slug AND deleted_at = 0;

-- name: ListAgents :many
SELECT * FROM agents WHERE workspace_id = @workspace_id AND deleted_at = 0 AND id < @before ORDER BY id DESC LIMIT @n;

-- name: ListSchedules :many
SELECT * FROM agents WHERE workspace_id = @workspace_id AND deleted_at = 0 AND schedule <> '' AND id < @before ORDER BY id DESC LIMIT @n;

-- name: InsertAgentVersion :exec
INSERT INTO agent_versions (agent_id, version, at, actor, snapshot, run_set_by, timeouts_set_by)
VALUES (@agent_id, @version, @at, @actor, @snapshot, @run_set_by, @timeouts_set_by);

-- name: AgentVersion :one
SELECT * FROM agent_versions WHERE agent_id = @agent_id AND version = @version;

-- name: DeleteAgent :execrows
UPDATE agents SET deleted_at = @deleted_at, next_slot_at = 0 WHERE id = @id AND deleted_at = 0;

-- What a batch has counted: written only over what it was counted from.
-- name: SetAgentCounts :execrows
UPDATE agents SET running = @running, last_triggered_at = @last_triggered_at
WHERE id = @id AND running = @from_running AND last_triggered_at = @from_triggered_at;

-- name: SetSkipUntil :execrows
UPDATE agents SET skip_until = @skip_until WHERE id = @id AND deleted_at = 0;

-- name: SetFailuresInRow :execrows
UPDATE agents SET failures_in_row = @failures_in_row WHERE id = @id;

-- name: DueAgents :many
SELECT id FROM agents WHERE next_slot_at > 0 AND next_slot_at <= @now ORDER BY next_slot_at LIMIT @n;

-- name: NextAgentSlot :one
SELECT next_slot_at FROM agents WHERE next_slot_at > 0 AND next_slot_at > @now ORDER BY next_slot_at LIMIT 1;

-- name: MoveAnchor :execrows
UPDATE agents SET anchor_at = @anchor_at, next_slot_at = @next_slot_at, schedule_error = @schedule_error
WHERE id = @id AND anchor_at = @from_anchor AND deleted_at = 0;

-- name: ScheduledAgents :many
SELECT * FROM agents WHERE deleted_at = 0 AND schedule <> '' ORDER BY id;
