-- SQLite looks a word up in a list of more than two by filling a table of the list's
-- words first, for each row written. The same rules said without such lists make the
-- statements of a session's life a third cheaper; the table has to be written anew.

-- +goose Up
CREATE TABLE sessions_new (
    id                   INTEGER PRIMARY KEY,
    workspace_id         INTEGER NOT NULL,
    agent_id             INTEGER NOT NULL REFERENCES agents (id),
    thread_id            INTEGER NOT NULL, -- the id of the thread's first session
    status               TEXT NOT NULL CHECK (
        status = 'pending' OR status = 'queued' OR status = 'active' OR status = 'awaiting_input'
        OR status = 'complete' OR status = 'error' OR status = 'stale' OR status = 'cancelled'),
    mode                 TEXT NOT NULL,
    triggered_by         TEXT NOT NULL CHECK (
        triggered_by = 'user' OR triggered_by = 'scheduler' OR triggered_by = 'webhook' OR triggered_by = 'agent'),
    triggered_by_user_id INTEGER NOT NULL,
    triggered_at         INTEGER NOT NULL,
    owner_user_id        INTEGER NOT NULL, -- of a local session
    lane                 TEXT NOT NULL,    -- owner and labels: sessions of one lane fit the same workers
    labels               TEXT NOT NULL,
    priority             INTEGER NOT NULL,
    title                TEXT NOT NULL,
    prompt               TEXT NOT NULL,
    instructions         TEXT NOT NULL, -- trusted; frozen at the first claim
    untrusted_context    TEXT NOT NULL,
    not_before           INTEGER NOT NULL,
    admit_at             INTEGER NOT NULL, -- when the timer must look at a pending row; 0 = never
    after_id             INTEGER NOT NULL,
    after_any            INTEGER NOT NULL,
    followers            INTEGER NOT NULL, -- sessions that name this one in after_id
    overlap_held         INTEGER NOT NULL, -- made behind the gate overlap
    prompt_id            INTEGER NOT NULL, -- the open prompt
    claim_id             INTEGER NOT NULL, -- the live claim
    worker_id            INTEGER NOT NULL, -- of the live or latest claim
    fence                INTEGER NOT NULL,
    attempt              INTEGER NOT NULL,
    retry_of             INTEGER NOT NULL,
    parent_id            INTEGER NOT NULL,
    depth                INTEGER NOT NULL,
    agent_session_id     TEXT NOT NULL,
    process_id           TEXT NOT NULL, -- the worker process that can resume agent_session_id
    affinity_until       INTEGER NOT NULL,
    reclaim_at           INTEGER NOT NULL, -- not claimable before this, after a lapse
    stop_requested_at    INTEGER NOT NULL,
    lapses               INTEGER NOT NULL,
    plan                 TEXT NOT NULL,
    external_url         TEXT NOT NULL,
    result               TEXT NOT NULL,
    outcome              TEXT NOT NULL,
    error_code           TEXT NOT NULL,
    error_message        TEXT NOT NULL,
    input_tokens         INTEGER NOT NULL,
    output_tokens        INTEGER NOT NULL,
    cost_micros          INTEGER NOT NULL,
    turns                INTEGER NOT NULL,
    created_at           INTEGER NOT NULL,
    queued_at            INTEGER NOT NULL, -- when it last became queued or stale
    started_at           INTEGER NOT NULL,
    ended_at             INTEGER NOT NULL,
    archived_at          INTEGER NOT NULL
) STRICT;
INSERT INTO sessions_new (
    id, workspace_id, agent_id, thread_id, status, mode, triggered_by, triggered_by_user_id, triggered_at,
    owner_user_id, lane, labels, priority, title, prompt, instructions, untrusted_context, not_before,
    admit_at, after_id, after_any, followers, overlap_held, prompt_id, claim_id, worker_id, fence, attempt,
    retry_of, parent_id, depth, agent_session_id, process_id, affinity_until, reclaim_at, stop_requested_at,
    lapses, plan, external_url, result, outcome, error_code, error_message, input_tokens, output_tokens,
    cost_micros, turns, created_at, queued_at, started_at, ended_at, archived_at
) SELECT
    id, workspace_id, agent_id, thread_id, status, mode, triggered_by, triggered_by_user_id, triggered_at,
    owner_user_id, lane, labels, priority, title, prompt, instructions, untrusted_context, not_before,
    admit_at, after_id, after_any, followers, overlap_held, prompt_id, claim_id, worker_id, fence, attempt,
    retry_of, parent_id, depth, agent_session_id, process_id, affinity_until, reclaim_at, stop_requested_at,
    lapses, plan, external_url, result, outcome, error_code, error_message, input_tokens, output_tokens,
    cost_micros, turns, created_at, queued_at, started_at, ended_at, archived_at
FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_new RENAME TO sessions;
CREATE UNIQUE INDEX sessions_trigger ON sessions (agent_id, triggered_at);
CREATE INDEX sessions_agent ON sessions (agent_id, id);
CREATE INDEX sessions_thread ON sessions (thread_id, id) WHERE thread_id <> id;
CREATE INDEX sessions_open ON sessions (agent_id, status, id) WHERE ended_at = 0;
CREATE INDEX sessions_claimable ON sessions (agent_id, lane, priority DESC, queued_at, id) WHERE status IN ('queued', 'stale');
CREATE INDEX sessions_admit ON sessions (admit_at) WHERE status = 'pending' AND admit_at > 0;
CREATE INDEX sessions_after ON sessions (after_id) WHERE status = 'pending' AND after_id > 0;
CREATE INDEX sessions_held ON sessions (agent_id) WHERE status = 'pending' AND overlap_held = 1;
CREATE INDEX sessions_asking ON sessions (workspace_id, prompt_id) WHERE prompt_id > 0;
CREATE INDEX sessions_failed ON sessions (workspace_id, id) WHERE status = 'error' AND archived_at = 0;

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
