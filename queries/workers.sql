-- The arguments are the table's columns in their order: a row converts to them.
-- name: InsertWorker :exec
INSERT INTO workers (
    id, workspace_id, agent_id, owner_user_id, mode, name, instance_id, process_id, instructions, types, labels,
    max_concurrent, platform, version, folder_key, folder_shared, state, desired, last_beat_at, graced, created_at,
    deleted_at, pinned, notices, notices_since, staging, lost_at, instructions_set_by, process_slots,
    task_updates, unsent, unsent_since, land, approvals_state
) VALUES (
    @id, @workspace_id, @agent_id, @owner_user_id, @mode, @name, @instance_id, @process_id, @instructions, @types,
    @labels, @max_concurrent, @platform, @version, @folder_key, @folder_shared, @state, @desired, @last_beat_at,
    @graced, @created_at, @deleted_at, @pinned, @notices, @notices_since, @staging, @lost_at, @instructions_set_by,
    @process_slots, @task_updates, @unsent, @unsent_since, @land, @approvals_state
);

-- name: Worker :one
SELECT * FROM workers WHERE id = @id AND deleted_at = 0;

-- A worker, what it runs (live or not drained) and what any worker runs in its plain folder,
-- in one above it or below it. A folder's key is its parent's key, a slash and a part of its
-- own.
-- name: WorkerAndLoad :one
SELECT sqlc.embed(w),
       (SELECT COUNT(*) FROM claims c WHERE c.worker_id = w.id AND c.drained = 0) AS running,
       (SELECT COUNT(*) FROM claims f WHERE f.drained = 0 AND f.folder_key <> '' AND w.folder_key <> '' AND w.folder_shared = 0
           AND (f.folder_key = w.folder_key OR f.folder_key LIKE w.folder_key || '/%' OR w.folder_key LIKE f.folder_key || '/%')) AS in_folder
FROM workers w WHERE w.id = @id AND w.deleted_at = 0;

-- The first worker of an agent that may be able to take something, with its load.
-- name: LikelyWorker :one
SELECT sqlc.embed(w),
       (SELECT COUNT(*) FROM claims c WHERE c.worker_id = w.id AND c.drained = 0) AS running,
       (SELECT COUNT(*) FROM claims f WHERE f.drained = 0 AND f.folder_key <> '' AND w.folder_key <> '' AND w.folder_shared = 0
           AND (f.folder_key = w.folder_key OR f.folder_key LIKE w.folder_key || '/%' OR w.folder_key LIKE f.folder_key || '/%')) AS in_folder
FROM workers w WHERE w.agent_id = @agent_id AND w.deleted_at = 0 AND w.state <> 'offline' AND w.desired = 'running' LIMIT 1;

-- What a worker's process runs, live or not drained, for all the agents that it serves.
-- name: ProcessLoad :one
SELECT COUNT(*) AS running FROM workers v JOIN claims c ON c.worker_id = v.id AND c.drained = 0
WHERE v.process_id = @process_id AND v.owner_user_id = @owner_user_id AND v.workspace_id = @workspace_id AND v.deleted_at = 0;

-- name: WorkerEvenDeleted :one
SELECT * FROM workers WHERE id = @id;

-- name: WorkerByName :one
SELECT * FROM workers WHERE agent_id = @agent_id AND owner_user_id = @owner_user_id AND name = @name AND deleted_at = 0;

-- name: WorkersOfAgent :many
SELECT * FROM workers WHERE agent_id = @agent_id AND deleted_at = 0 ORDER BY id;

-- name: ListWorkers :many
SELECT * FROM workers
WHERE workspace_id = @workspace_id AND deleted_at = 0 AND id < @before
  AND (CAST(@agent_id AS INTEGER) = 0 OR agent_id = CAST(@agent_id AS INTEGER))
  AND (mode = 'cloud' OR owner_user_id = @me OR CAST(@admin AS INTEGER) = 1)
ORDER BY id DESC LIMIT @n;

-- Processes: one has a record for each agent that it serves. One that doesn't say which it is
-- goes by its name.
-- name: CountProcesses :one
SELECT COUNT(*) AS n, CAST(COALESCE(SUM(p.online), 0) AS INTEGER) AS online FROM (
    SELECT MAX(CASE WHEN state = 'online' THEN 1 ELSE 0 END) AS online FROM workers
    WHERE workspace_id = @workspace_id AND deleted_at = 0 AND (mode = 'cloud' OR owner_user_id = @me OR CAST(@admin AS INTEGER) = 1)
    GROUP BY owner_user_id, process_id, CASE WHEN process_id = '' THEN name ELSE '' END
) p;

-- name: ReregisterWorker :execrows
UPDATE workers SET
    instance_id = @instance_id, process_id = @process_id, mode = @mode, instructions = @instructions,
    instructions_set_by = @instructions_set_by, types = @types,
    labels = @labels, max_concurrent = @max_concurrent, platform = @platform, version = @version,
    folder_key = @folder_key, folder_shared = @folder_shared, state = 'online', desired = @desired, last_beat_at = @last_beat_at, graced = 0,
    staging = @staging, process_slots = @process_slots, task_updates = @task_updates, land = @land, lost_at = 0
WHERE id = @id AND instance_id = @from_instance_id AND deleted_at = 0;

-- name: EditWorker :execrows
UPDATE workers SET
    name = @name, instructions = @instructions, instructions_set_by = @instructions_set_by, labels = @labels,
    max_concurrent = @max_concurrent, pinned = @pinned
WHERE id = @id AND deleted_at = 0;

-- name: SetDesired :execrows
UPDATE workers SET desired = @desired WHERE id = @id AND deleted_at = 0;

-- name: BeatWorker :execrows
UPDATE workers SET
    last_beat_at = @last_beat_at, graced = 0, lost_at = 0, state = @state, platform = @platform, version = @version,
    notices = @notices, notices_since = @notices_since, unsent = @unsent, unsent_since = @unsent_since
WHERE id = @id AND deleted_at = 0;

-- name: SetWorkerState :execrows
UPDATE workers SET state = @state WHERE id = @id AND deleted_at = 0 AND state <> @state;

-- name: DeleteWorker :execrows
UPDATE workers SET deleted_at = @deleted_at, state = 'offline' WHERE id = @id AND deleted_at = 0;

-- name: OfflineDue :many
SELECT * FROM workers WHERE deleted_at = 0 AND state <> 'offline' AND last_beat_at <= @before ORDER BY last_beat_at LIMIT @n;

-- name: StaleDue :many
SELECT * FROM workers
WHERE deleted_at = 0 AND state <> 'offline' AND state = 'online' AND last_beat_at <= @before ORDER BY last_beat_at LIMIT @n;

-- name: NextBeat :one
SELECT last_beat_at FROM workers WHERE deleted_at = 0 AND state <> 'offline' AND last_beat_at > @after ORDER BY last_beat_at LIMIT 1;

-- name: NextOnlineBeat :one
SELECT last_beat_at FROM workers WHERE deleted_at = 0 AND state <> 'offline' AND state = 'online' AND last_beat_at > @after ORDER BY last_beat_at LIMIT 1;

-- A worker's claim was taken away because the worker was silent.
-- name: NoteLoss :execrows
UPDATE workers SET lost_at = @lost_at WHERE id = @id;

-- How long the slowest worker of an agent takes to end what it runs, in seconds.
-- name: LongestStaging :one
SELECT CAST(COALESCE(MAX(staging), 0) AS INTEGER) AS staging FROM workers WHERE agent_id = @agent_id AND deleted_at = 0;

-- name: GraceWorkers :execrows
UPDATE workers SET last_beat_at = @beat, graced = 1
WHERE deleted_at = 0 AND state <> 'offline' AND graced = 0 AND last_beat_at < @beat AND last_beat_at > @oldest;

-- name: ClampBeats :execrows
UPDATE workers SET last_beat_at = @now WHERE deleted_at = 0 AND last_beat_at > @now;

-- name: NoticedWorkers :many
SELECT * FROM workers
WHERE workspace_id = @workspace_id AND deleted_at = 0 AND notices <> '' AND state <> 'offline'
  AND (mode = 'cloud' OR owner_user_id = @me)
ORDER BY notices_since DESC LIMIT @n;

-- The other agents whose workers would run in a plain folder of an agent's workers, or in one
-- above it or below.
-- name: AgentsInFoldersOf :many
SELECT DISTINCT o.agent_id FROM workers w JOIN workers o ON o.workspace_id = w.workspace_id
WHERE w.agent_id = @agent_id AND w.deleted_at = 0 AND w.folder_key <> '' AND w.folder_shared = 0
  AND o.agent_id <> w.agent_id AND o.deleted_at = 0 AND o.folder_key <> '' AND o.folder_shared = 0
  AND (o.folder_key = w.folder_key OR o.folder_key LIKE w.folder_key || '/%' OR w.folder_key LIKE o.folder_key || '/%');

-- What a worker's owner allowed its agent from now on, the newest first.
-- name: StandingApprovals :many
SELECT * FROM standing_approvals WHERE worker_id = @worker_id ORDER BY approved_at DESC, approval;

-- name: AskedRemovals :many
SELECT approval FROM standing_approvals WHERE worker_id = @worker_id AND removal_asked_at <> 0 ORDER BY approval;

-- name: PutStandingApproval :exec
INSERT INTO standing_approvals (worker_id, approval, area, tool, what, any_word, beyond, session_id, approved_by, approved_at, uses, used_at, removal_asked_at)
VALUES (@worker_id, @approval, @area, @tool, @what, @any_word, @beyond, @session_id, @approved_by, @approved_at, @uses, @used_at, 0)
ON CONFLICT (worker_id, approval) DO UPDATE SET
    area = excluded.area, tool = excluded.tool, what = excluded.what, any_word = excluded.any_word, beyond = excluded.beyond,
    session_id = excluded.session_id, approved_by = excluded.approved_by, approved_at = excluded.approved_at,
    uses = excluded.uses, used_at = excluded.used_at;

-- name: AskRemoval :execrows
UPDATE standing_approvals SET removal_asked_at = @at WHERE worker_id = @worker_id AND approval = @approval AND removal_asked_at = 0;

-- name: DropStandingApproval :execrows
DELETE FROM standing_approvals WHERE worker_id = @worker_id AND approval = @approval;

-- name: DropStandingApprovals :execrows
DELETE FROM standing_approvals WHERE worker_id = @worker_id;

-- name: SetApprovalsState :execrows
UPDATE workers SET approvals_state = @approvals_state WHERE id = @id AND deleted_at = 0;
