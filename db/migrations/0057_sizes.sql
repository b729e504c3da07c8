-- What a million sessions need. An index of SQLite ends with the row's key by itself; named once
-- more in the index, the key is there twice, in each entry of the largest indexes: some 60 bytes of a finished session.

-- +goose Up
DROP INDEX sessions_newest;
CREATE INDEX sessions_newest ON sessions (workspace_id);
DROP INDEX sessions_agent;
CREATE INDEX sessions_agent ON sessions (agent_id);
DROP INDEX sessions_ended;
-- Nearly all that has ended is complete: lists find that among the newest.
CREATE INDEX sessions_ended ON sessions (agent_id, status) WHERE ended_at > 0 AND status <> 'complete';
DROP INDEX claims_session;
CREATE INDEX claims_session ON claims (session_id);
DROP INDEX activities_session;
CREATE INDEX activities_session ON activities (session_id);
DROP INDEX events_session;
CREATE INDEX events_session ON events (session_id) WHERE session_id > 0;

-- The audit by a type that is about no session: few among millions.
CREATE INDEX events_other ON events (type) WHERE session_id = 0;

-- Small ones that must come after those of all sessions: without statistics SQLite takes the later of two that look alike.
DROP INDEX sessions_open;
CREATE INDEX sessions_open ON sessions (agent_id, status) WHERE ended_at = 0;
DROP INDEX sessions_held;
CREATE INDEX sessions_held ON sessions (agent_id) WHERE status = 'pending' AND overlap_held = 1;
DROP INDEX sessions_failed;
CREATE INDEX sessions_failed ON sessions (workspace_id) WHERE status = 'error' AND archived_at = 0;

-- No statement goes by it: folders are looked for among all claims that are not drained.
DROP INDEX claims_folder;
