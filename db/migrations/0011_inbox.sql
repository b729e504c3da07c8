-- What waits for a person is looked up on every page: questions that are open, and
-- sessions that ended in error and that nobody has put away.

-- +goose Up
CREATE INDEX sessions_asking ON sessions (workspace_id, prompt_id) WHERE prompt_id > 0;
CREATE INDEX sessions_failed ON sessions (workspace_id, id) WHERE status = 'error' AND archived_at = 0;

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
