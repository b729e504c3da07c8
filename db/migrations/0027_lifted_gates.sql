-- What time alone lifts from a waiting session is found by its instant.

-- +goose Up
CREATE INDEX sessions_reclaim ON sessions (reclaim_at) WHERE reclaim_at > 0 AND ended_at = 0;
CREATE INDEX sessions_affinity ON sessions (affinity_until) WHERE affinity_until > 0 AND ended_at = 0;

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
