-- Sessions that wait for the worker process which can resume them.

-- +goose Up
CREATE INDEX sessions_awaiting_process ON sessions (agent_id, affinity_until, process_id) WHERE status IN ('queued', 'stale') AND affinity_until > 0;

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
