-- What a worker wants its owner to look at, such as a workflow file that can't be used.

-- +goose Up
ALTER TABLE workers ADD COLUMN notices TEXT NOT NULL DEFAULT '';         -- JSON; empty for none
ALTER TABLE workers ADD COLUMN notices_since INTEGER NOT NULL DEFAULT 0; -- when they became what they are
CREATE INDEX workers_notices ON workers (workspace_id) WHERE deleted_at = 0 AND notices <> '';

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
