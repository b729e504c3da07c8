-- A session's place among those of its priority: when it was first queued, or queued
-- anew. One that its worker gives back keeps it, while queued_at, from which the queue
-- time-out counts, begins again.

-- +goose Up
ALTER TABLE sessions ADD COLUMN place_at INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET place_at = queued_at WHERE ended_at = 0;
DROP INDEX sessions_claimable;
CREATE INDEX sessions_claimable ON sessions (agent_id, lane, priority DESC, place_at, id, queued_at) WHERE status IN ('queued', 'stale');

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
