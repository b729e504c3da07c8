-- name: InsertAgent :exec
INSERT INTO agents (
    id, workspace_id, slug, name, description, mode, type, run, run_set_by, prompt, instructions, schedule, time_zone,
    catch_up, catch_up_window, overlap, jitter, runs_as_user_id, paused, paused_reason, paused_at, unpaused_at,
    max_concurrent, priority, labels, lease_seconds, reclaim_delay, turn_timeout, stall_timeout, queue_timeout,
    max_lapses, anchor_at, next_slot_at, schedule_error, last_triggered_at, running, failures_in_row, version,
    created_at, updated_at, deleted_at, session_spend_limit, daily_spend_limit, timeouts_set_by
) VALUES (
    @id, @workspace_id, @slug, @name, @description, @mode, @type, @run, @run_set_by, @prompt, @instructions, @schedule, @time_zone,
    @catch_up, @catch_up_window, @overlap, @jitter, @runs_as_user_id, @paused, @paused_reason, @paused_at, @unpaused_at,
    @max_concurrent, @priority, @labels, @lease_seconds, @reclaim_delay, @turn_timeout, @stall_timeout, @queue_timeout,
    @max_lapses, @anchor_at, @next_slot_at, '', 0, 0, 0, 1,
    @created_at, @created_at, 0, @session_spend_limit, @daily_spend_limit, @timeouts_set_by
);

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

-- name: UpdateAgent :execrows
UPDATE agents SET
    slug = @slug, name = @name, description = @description, mode = @mode, type = @type, run = @run,
    run_set_by = @run_set_by, prompt = @prompt, instructions = @instructions, schedule = @schedule,
    time_zone = @time_zone, catch_up = @catch_up, catch_up_window = @catch_up_window, overlap = @overlap,
    jitter = @jitter, runs_as_user_id = @runs_as_user_id, paused = @paused, paused_reason = @paused_reason,
    paused_at = @paused_at, unpaused_at = @unpaused_at, max_concurrent = @max_concurrent, priority = @priority,
    labels = @labels, lease_seconds = @lease_seconds, reclaim_delay = @reclaim_delay, turn_timeout = @turn_timeout,
    stall_timeout = @stall_timeout, queue_timeout = @queue_timeout, max_lapses = @max_lapses,
    anchor_at = @anchor_at, next_slot_at = @next_slot_at, schedule_error = @schedule_error,
    failures_in_row = @failures_in_row, version = @version, updated_at = @updated_at,
    session_spend_limit = @session_spend_limit, daily_spend_limit = @daily_spend_limit, timeouts_set_by = @timeouts_set_by
WHERE id = @id AND version = @from_version AND deleted_at = 0;

-- name: InsertAgentVersion :exec
INSERT INTO agent_versions (agent_id, version, at, actor, snapshot, run_set_by, timeouts_set_by)
VALUES (@agent_id, @version, @at, @actor, @snapshot, @run_set_by, @timeouts_set_by);

-- name: AgentVersion :one
SELECT * FROM agent_versions WHERE agent_id = @agent_id AND version = @version;

-- name: DeleteAgent :execrows
UPDATE agents SET deleted_at = @deleted_at, next_slot_at = 0 WHERE id = @id AND deleted_at = 0;

-- name: TriggerAgent :execrows
UPDATE agents SET last_triggered_at = @triggered_at WHERE id = @id AND last_triggered_at < @triggered_at AND deleted_at = 0;

-- name: TakeAgentSlot :execrows
UPDATE agents SET running = running + 1
WHERE id = @id AND running < max_concurrent AND paused = 0 AND deleted_at = 0
  AND NOT (daily_spend_limit > 0 AND spent_on_day >= daily_spend_limit AND spend_day >= @today);

-- name: TakeAgentSlotExempt :execrows
UPDATE agents SET running = running + 1 WHERE id = @id AND deleted_at = 0;

-- name: FreeAgentSlot :execrows
UPDATE agents SET running = running - 1 WHERE id = @id AND running > 0;

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
