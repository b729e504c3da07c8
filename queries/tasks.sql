-- name: InsertTask :exec
INSERT INTO tasks (
    id, workspace_id, number, slug, title, description, state, rule_state, priority, labels, links, assignee_user_id,
    assignee_agent_id, lease_user_id, lease_session_id, lease_seconds, lease_expires_at, leased_at, last_session_id, lease_graced, lease_renewed_at, open_blockers,
    open_blocked, comments, version, created_by, created_at, updated_at, done_at
) VALUES (
    @id, @workspace_id, @number, @slug, @title, @description, @state, @rule_state, @priority, @labels, @links, @assignee_user_id,
    @assignee_agent_id, @lease_user_id, @lease_session_id, @lease_seconds, @lease_expires_at, @leased_at, @last_session_id, @lease_graced, @lease_renewed_at, @open_blockers,
    @open_blocked, @comments, @version, @created_by, @created_at, @updated_at, @done_at
);

-- name: NextTaskNumber :one
SELECT CAST(COALESCE(MAX(number), 0) + 1 AS INTEGER) AS number FROM tasks WHERE workspace_id = @workspace_id;

-- name: Task :one
SELECT * FROM tasks WHERE id = @id;

-- name: TaskByNumber :one
SELECT * FROM tasks WHERE workspace_id = @workspace_id AND number = @number;

-- name: TaskBySlug :one
SELECT * FROM tasks WHERE workspace_id = @workspace_id AND slug = @slug AND slug <> '';

-- The counters have statements of their own: they follow from other rows.
-- name: UpdateTask :execrows
UPDATE tasks SET
    slug = @slug, title = @title, description = @description, state = @state, rule_state = @rule_state, priority = @priority,
    labels = @labels, links = @links, assignee_user_id = @assignee_user_id, assignee_agent_id = @assignee_agent_id,
    lease_user_id = @lease_user_id, lease_session_id = @lease_session_id, lease_seconds = @lease_seconds,
    lease_expires_at = @lease_expires_at, leased_at = @leased_at, last_session_id = @last_session_id, lease_graced = @lease_graced, lease_renewed_at = @lease_renewed_at, version = @version, updated_at = @updated_at, done_at = @done_at
WHERE id = @id AND version = @from_version AND state = @from_state AND lease_user_id = @from_lease_user_id
  AND lease_session_id = @from_lease_session_id;

-- name: AddBlocker :execrows
INSERT INTO task_blockers (task_id, blocker_id) VALUES (@task_id, @blocker_id) ON CONFLICT (task_id, blocker_id) DO NOTHING;

-- name: DropBlocker :execrows
DELETE FROM task_blockers WHERE task_id = @task_id AND blocker_id = @blocker_id;

-- name: BlockersOf :many
SELECT t.id, t.number, t.title, t.state FROM task_blockers b JOIN tasks t ON t.id = b.blocker_id
WHERE b.task_id = @task_id ORDER BY t.id;

-- name: BlockedBy :many
SELECT t.id, t.number, t.title, t.state FROM task_blockers b JOIN tasks t ON t.id = b.task_id
WHERE b.blocker_id = @blocker_id ORDER BY t.id LIMIT @n;

-- name: BlockerIDs :many
SELECT blocker_id FROM task_blockers WHERE task_id = @task_id ORDER BY blocker_id;

-- name: BlockedIDs :many
SELECT task_id FROM task_blockers WHERE blocker_id = @blocker_id ORDER BY task_id;

-- name: RecountBlockers :execrows
UPDATE tasks SET open_blockers = (
    SELECT COUNT(*) FROM task_blockers b JOIN tasks o ON o.id = b.blocker_id WHERE b.task_id = tasks.id AND o.state <> 'done'
) WHERE tasks.id = @id;

-- name: RecountBlocked :execrows
UPDATE tasks SET open_blocked = (
    SELECT COUNT(*) FROM task_blockers b JOIN tasks o ON o.id = b.task_id WHERE b.blocker_id = tasks.id AND o.state <> 'done'
) WHERE tasks.id = @id;

-- name: CountComment :execrows
UPDATE tasks SET comments = comments + 1 WHERE id = @id;

-- name: InsertTaskComment :exec
INSERT INTO task_comments (id, task_id, user_id, session_id, text, at) VALUES (@id, @task_id, @user_id, @session_id, @text, @at);

-- name: TaskComments :many
SELECT sqlc.embed(c), u.name AS author FROM task_comments c JOIN users u ON u.id = c.user_id
WHERE c.task_id = @task_id AND c.id < @before ORDER BY c.id DESC LIMIT @n;

-- name: TasksBefore :many
SELECT * FROM tasks WHERE workspace_id = @workspace_id AND id < @before ORDER BY id DESC LIMIT @n;

-- name: TasksInState :many
SELECT * FROM tasks WHERE workspace_id = @workspace_id AND state = @state AND id < @before ORDER BY id DESC LIMIT @n;

-- A column of the board: of one priority the oldest first.
-- name: BoardTasks :many
SELECT * FROM tasks
WHERE workspace_id = @workspace_id AND state = @state AND priority = @priority AND id > @after
ORDER BY id LIMIT @n;

-- The column of what is done: the latest first.
-- name: DoneTasks :many
SELECT * FROM tasks
WHERE workspace_id = @workspace_id AND state = 'done' AND done_at <= @before AND (done_at < @before OR id < @before_id)
ORDER BY done_at DESC, id DESC LIMIT @n;

-- name: TasksAssigned :many
SELECT * FROM tasks
WHERE workspace_id = @workspace_id AND assignee_user_id = @assignee_user_id AND assignee_agent_id = @assignee_agent_id
  AND state <> 'done' AND id < @before
ORDER BY id DESC LIMIT @n;

-- name: TasksLeased :many
SELECT * FROM tasks WHERE workspace_id = @workspace_id AND lease_user_id > 0 AND id + 0 < @before ORDER BY id DESC LIMIT @n;

-- What somebody, or nobody, is to do and could begin now: what blocks others first, then the
-- most urgent, then the oldest.
-- name: ReadyTasks :many
SELECT * FROM tasks
WHERE workspace_id = @workspace_id AND assignee_user_id = @assignee_user_id AND assignee_agent_id = 0
  AND state IN ('todo', 'in_progress') AND open_blockers = 0
ORDER BY MIN(open_blocked, 1) DESC, priority, id LIMIT @n;

-- name: UrgentTasks :many
SELECT * FROM tasks
WHERE workspace_id = @workspace_id AND assignee_user_id = @assignee_user_id AND assignee_agent_id = 0
  AND state IN ('todo', 'in_progress') AND open_blockers = 0 AND priority = 'p1'
ORDER BY MIN(open_blocked, 1) DESC, priority, id LIMIT @n;

-- What waits: for other tasks, or in a state from which a person moves it on.
-- name: LaterTasks :many
SELECT * FROM tasks
WHERE workspace_id = @workspace_id AND assignee_user_id = @assignee_user_id AND assignee_agent_id = 0
  AND state <> 'done' AND (open_blockers > 0 OR state IN ('blocked', 'review'))
ORDER BY id LIMIT @n;

-- name: TasksOfAgent :many
SELECT * FROM tasks WHERE workspace_id = @workspace_id AND assignee_user_id = 0 AND assignee_agent_id = @agent_id AND state <> 'done' ORDER BY id;

-- name: TasksOfUser :many
SELECT * FROM tasks WHERE workspace_id = @workspace_id AND assignee_user_id = @user_id AND assignee_agent_id = 0 AND state <> 'done' ORDER BY id;

-- name: TasksHeldBy :many
SELECT * FROM tasks WHERE workspace_id = @workspace_id AND lease_user_id > 0 AND lease_user_id = @user_id ORDER BY id;

-- name: CountTasks :many
SELECT state, COUNT(*) AS n FROM tasks WHERE workspace_id = @workspace_id GROUP BY state;

-- name: DueTaskLapses :many
SELECT id FROM tasks WHERE lease_expires_at > 0 AND lease_expires_at <= @now ORDER BY lease_expires_at LIMIT @n;

-- name: NextTaskLapse :one
SELECT lease_expires_at FROM tasks WHERE lease_expires_at > 0 AND lease_expires_at > @now ORDER BY lease_expires_at LIMIT 1;

-- name: GraceTasks :execrows
UPDATE tasks SET lease_expires_at = @until, lease_renewed_at = @now, lease_graced = 1
WHERE lease_graced = 0 AND lease_expires_at > 0 AND lease_expires_at > @last_alive AND lease_expires_at < @until;

-- name: ClampTasks :execrows
UPDATE tasks SET lease_expires_at = @now + (lease_expires_at - lease_renewed_at), lease_renewed_at = @now
WHERE lease_expires_at > 0 AND lease_renewed_at > @now;

-- name: SessionsOfTask :many
SELECT id FROM sessions WHERE task_id = @task_id AND task_id > 0 AND id < @before ORDER BY id DESC LIMIT @n;

-- name: EventsOfTask :many
SELECT * FROM events WHERE task_id = @task_id AND task_id > 0 AND seq < @before ORDER BY seq DESC LIMIT @n;
