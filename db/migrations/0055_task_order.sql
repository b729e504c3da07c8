-- What is next goes by priority before age, and what is blocked or in review comes last. The
-- list of all tasks is read in its order, without sorting them.

-- +goose Up
CREATE INDEX tasks_newest ON tasks (workspace_id, id);
DROP INDEX tasks_ready;
CREATE INDEX tasks_ready ON tasks (workspace_id, assignee_user_id, assignee_agent_id, MIN(open_blocked, 1) DESC, priority, id) WHERE state IN ('todo', 'in_progress') AND open_blockers = 0;
CREATE INDEX tasks_later ON tasks (workspace_id, assignee_user_id, assignee_agent_id, id) WHERE state <> 'done' AND (open_blockers > 0 OR state IN ('blocked', 'review'));
