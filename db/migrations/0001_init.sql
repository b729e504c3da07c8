-- House rules for this schema: every time is integer Unix microseconds in UTC and
-- 0 means "not set"; every id is a 63-bit integer and 0 means "none"; statuses and
-- other words are the wire's own texts. Only SQL that SQLite and PostgreSQL share.

-- +goose Up
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
INSERT INTO counters (name, value) VALUES ('id', 0), ('event', 0), ('alive', 0);

CREATE TABLE workspaces (
    id         INTEGER PRIMARY KEY,
    slug       TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE users (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE members (
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
    user_id      INTEGER NOT NULL REFERENCES users (id),
    role         TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
) STRICT;

-- Bearer tokens, browser sign-ins and one-time sign-in links. Only SHA-256 hashes are kept.
CREATE TABLE tokens (
    id           INTEGER PRIMARY KEY,
    user_id      INTEGER NOT NULL REFERENCES users (id),
    kind         TEXT NOT NULL CHECK (kind IN ('bearer', 'cookie', 'link')),
    hash         BLOB NOT NULL UNIQUE,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    used_at      INTEGER NOT NULL,
    revoked_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE agents (
    id                     INTEGER PRIMARY KEY,
    workspace_id           INTEGER NOT NULL REFERENCES workspaces (id),
    slug                   TEXT NOT NULL,
    name                   TEXT NOT NULL,
    description            TEXT NOT NULL,
    mode                   TEXT NOT NULL CHECK (mode IN ('local', 'cloud')),
    type                   TEXT NOT NULL,
    run                    TEXT NOT NULL, -- JSON of the run block
    run_set_by             INTEGER NOT NULL,
    prompt                 TEXT NOT NULL,
    instructions           TEXT NOT NULL,
    schedule               TEXT NOT NULL,
    time_zone              TEXT NOT NULL,
    catch_up               TEXT NOT NULL CHECK (catch_up IN ('latest', 'none')),
    catch_up_window        INTEGER NOT NULL, -- seconds, 0 = no limit
    overlap                TEXT NOT NULL CHECK (overlap IN ('skip', 'queue_one', 'allow', 'replace')),
    jitter                 INTEGER NOT NULL, -- seconds
    runs_as_user_id        INTEGER NOT NULL,
    paused                 INTEGER NOT NULL CHECK (paused IN (0, 1)),
    paused_reason          TEXT NOT NULL,
    paused_at              INTEGER NOT NULL,
    unpaused_at            INTEGER NOT NULL,
    max_concurrent         INTEGER NOT NULL,
    priority               INTEGER NOT NULL,
    labels                 TEXT NOT NULL,
    lease_seconds          INTEGER NOT NULL,
    reclaim_delay          INTEGER NOT NULL, -- seconds
    turn_timeout           INTEGER NOT NULL, -- seconds, 0 = off
    stall_timeout          INTEGER NOT NULL, -- seconds, 0 = off
    queue_timeout          INTEGER NOT NULL, -- seconds, 0 = none
    max_lapses             INTEGER NOT NULL,
    anchor_at              INTEGER NOT NULL, -- whole seconds; the last slot that was decided
    next_slot_at           INTEGER NOT NULL, -- 0 = none; derived from schedule and anchor
    schedule_error         TEXT NOT NULL,
    last_triggered_at      INTEGER NOT NULL,
    running                INTEGER NOT NULL CHECK (running >= 0), -- claims live or not yet drained
    failures_in_row        INTEGER NOT NULL,
    version                INTEGER NOT NULL,
    created_at             INTEGER NOT NULL,
    updated_at             INTEGER NOT NULL,
    deleted_at             INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX agents_slug ON agents (workspace_id, slug) WHERE deleted_at = 0;
CREATE INDEX agents_due ON agents (next_slot_at) WHERE next_slot_at > 0;

CREATE TABLE agent_versions (
    agent_id INTEGER NOT NULL REFERENCES agents (id),
    version  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    snapshot TEXT NOT NULL, -- JSON of what a person sets
    PRIMARY KEY (agent_id, version)
) STRICT;

CREATE TABLE workers (
    id             INTEGER PRIMARY KEY,
    workspace_id   INTEGER NOT NULL REFERENCES workspaces (id),
    agent_id       INTEGER NOT NULL REFERENCES agents (id),
    owner_user_id  INTEGER NOT NULL,
    mode           TEXT NOT NULL,
    name           TEXT NOT NULL,
    instance_id    TEXT NOT NULL,
    process_id     TEXT NOT NULL,
    instructions   TEXT NOT NULL,
    types          TEXT NOT NULL,
    labels         TEXT NOT NULL,
    max_concurrent INTEGER NOT NULL,
    platform       TEXT NOT NULL,
    version        TEXT NOT NULL,
    folder_key     TEXT NOT NULL,
    folder_shared  INTEGER NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('online', 'stale', 'offline')),
    desired        TEXT NOT NULL CHECK (desired IN ('running', 'paused', 'stopped')),
    last_beat_at   INTEGER NOT NULL,
    graced         INTEGER NOT NULL, -- it was given outage grace since its last beat
    created_at     INTEGER NOT NULL,
    deleted_at     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX workers_name ON workers (agent_id, owner_user_id, name) WHERE deleted_at = 0;
CREATE INDEX workers_beat ON workers (last_beat_at) WHERE deleted_at = 0 AND state <> 'offline';

CREATE TABLE sessions (
    id                   INTEGER PRIMARY KEY,
    workspace_id         INTEGER NOT NULL,
    agent_id             INTEGER NOT NULL REFERENCES agents (id),
    thread_id            INTEGER NOT NULL, -- the id of the thread's first session
    status               TEXT NOT NULL CHECK (status IN ('pending', 'queued', 'active', 'awaiting_input', 'complete', 'error', 'stale', 'cancelled')),
    mode                 TEXT NOT NULL,
    triggered_by         TEXT NOT NULL CHECK (triggered_by IN ('user', 'scheduler', 'webhook', 'agent')),
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
CREATE UNIQUE INDEX sessions_trigger ON sessions (agent_id, triggered_at);
CREATE INDEX sessions_agent ON sessions (agent_id, id);
CREATE INDEX sessions_thread ON sessions (thread_id, id) WHERE thread_id <> id;
CREATE INDEX sessions_open ON sessions (agent_id, status, id) WHERE status IN ('pending', 'queued', 'active', 'awaiting_input', 'stale');
CREATE INDEX sessions_claimable ON sessions (agent_id, lane, priority DESC, queued_at, id) WHERE status IN ('queued', 'stale');
CREATE INDEX sessions_admit ON sessions (admit_at) WHERE status = 'pending' AND admit_at > 0;
CREATE INDEX sessions_after ON sessions (after_id) WHERE status = 'pending' AND after_id > 0;
CREATE INDEX sessions_held ON sessions (agent_id) WHERE status = 'pending' AND overlap_held = 1;

CREATE TABLE claims (
    id            INTEGER PRIMARY KEY,
    secret        BLOB NOT NULL,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    agent_id      INTEGER NOT NULL,
    thread_id     INTEGER NOT NULL,
    worker_id     INTEGER NOT NULL,
    instance_id   TEXT NOT NULL,
    fence         INTEGER NOT NULL,
    lease_seconds INTEGER NOT NULL,
    offline_after INTEGER NOT NULL, -- seconds
    granted_at    INTEGER NOT NULL,
    renewed_at    INTEGER NOT NULL, -- what expires_at, and once closed drain_by, is counted from
    expires_at    INTEGER NOT NULL,
    graced        INTEGER NOT NULL, -- it was given outage grace since its last renewal, or since it was closed
    folder_key    TEXT NOT NULL,    -- empty when the folder may be shared
    request_id    TEXT NOT NULL,
    closed_at     INTEGER NOT NULL,
    closed_by     TEXT NOT NULL, -- complete, fail, release, lapse, offline, deleted, cancel
    finish_hash   BLOB NOT NULL, -- of the body that finished it
    drained       INTEGER NOT NULL CHECK (drained IN (0, 1)),
    drain_by      INTEGER NOT NULL -- when an unreported drain counts as done
) STRICT;
CREATE UNIQUE INDEX claims_live ON claims (session_id) WHERE closed_at = 0;
CREATE INDEX claims_session ON claims (session_id, id);
CREATE INDEX claims_expiry ON claims (expires_at) WHERE closed_at = 0;
CREATE INDEX claims_thread ON claims (thread_id) WHERE drained = 0;
CREATE INDEX claims_worker ON claims (worker_id) WHERE drained = 0;
CREATE INDEX claims_folder ON claims (folder_key) WHERE drained = 0 AND folder_key <> '';
CREATE INDEX claims_drain ON claims (drain_by) WHERE drained = 0 AND closed_at > 0;
CREATE INDEX claims_request ON claims (worker_id, request_id) WHERE request_id <> '';

CREATE TABLE prompts (
    id          INTEGER PRIMARY KEY,
    session_id  INTEGER NOT NULL REFERENCES sessions (id),
    kind        TEXT NOT NULL,
    text        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    closed_at   INTEGER NOT NULL,
    closed_by   TEXT NOT NULL,
    resolution  TEXT NOT NULL, -- answered, withdrawn, cancelled
    answer      TEXT NOT NULL
) STRICT;
CREATE INDEX prompts_session ON prompts (session_id, id);

CREATE TABLE activities (
    id         INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    client_key TEXT NOT NULL,
    type       TEXT NOT NULL,
    text       TEXT NOT NULL,
    detail     TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX activities_session ON activities (session_id, id);
CREATE UNIQUE INDEX activities_key ON activities (session_id, client_key) WHERE client_key <> '';

CREATE TABLE items (
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    seq        INTEGER NOT NULL,
    client_id  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    stream     TEXT NOT NULL,
    text       TEXT NOT NULL,
    truncated  INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX items_client ON items (session_id, client_id) WHERE client_id <> '';

CREATE TABLE events (
    seq          INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL, -- 0 on a session's event: the session knows
    agent_id     INTEGER NOT NULL, -- likewise
    session_id   INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    actor        TEXT NOT NULL,
    type         TEXT NOT NULL,
    data         TEXT NOT NULL -- JSON; empty for none
) STRICT;
CREATE INDEX events_session ON events (session_id, seq) WHERE session_id > 0;
CREATE INDEX events_agent ON events (agent_id, seq) WHERE agent_id > 0 AND session_id = 0;

CREATE TABLE ledger (
    id         INTEGER PRIMARY KEY,
    agent_id   INTEGER NOT NULL REFERENCES agents (id),
    verdict    TEXT NOT NULL CHECK (verdict IN ('fired', 'folded', 'skipped', 'missed', 'paused')),
    reason     TEXT NOT NULL,
    first_slot INTEGER NOT NULL,
    last_slot  INTEGER NOT NULL,
    slots      INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    decided_at INTEGER NOT NULL,
    CHECK (first_slot <= last_slot)
) STRICT;
CREATE INDEX ledger_agent ON ledger (agent_id, last_slot);
CREATE UNIQUE INDEX ledger_fired ON ledger (agent_id, last_slot) WHERE verdict = 'fired';

CREATE TABLE idempotency_keys (
    user_id    INTEGER NOT NULL,
    route      TEXT NOT NULL,
    key        TEXT NOT NULL,
    body_hash  BLOB NOT NULL,
    session_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, route, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency_keys (created_at);

CREATE TABLE late_results (
    id         INTEGER PRIMARY KEY,
    claim_id   INTEGER NOT NULL UNIQUE,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    verb       TEXT NOT NULL,
    result     TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX late_results_session ON late_results (session_id, id);

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
