-- What lists of sessions look through: a workspace's sessions, newest first, and an
-- agent's ended ones by status. Those that have not ended have sessions_open. And who holds an
-- agent's sessions.

-- +goose Up
CREATE INDEX sessions_newest ON sessions (workspace_id, id);
CREATE INDEX sessions_ended ON sessions (agent_id, status, id) WHERE ended_at > 0;

CREATE INDEX claims_agent ON claims (agent_id) WHERE drained = 0;

-- +goose Down
