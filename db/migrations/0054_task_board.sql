-- The board shows each state's most pressing tasks, and what was done last.

-- +goose Up
CREATE INDEX tasks_board ON tasks (workspace_id, state, priority, id);
CREATE INDEX tasks_done ON tasks (workspace_id, done_at, id) WHERE state = 'done';
