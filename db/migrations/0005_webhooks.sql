-- Webhooks out and in (contract 9.4). What goes out is taken from the event log,
-- which is written in the transaction of each change: a webhook remembers how far
-- it has read, and what it is to deliver is made in the transaction that moves that on.

-- +goose Up
CREATE TABLE webhooks (
    id              INTEGER PRIMARY KEY,
    workspace_id    INTEGER NOT NULL REFERENCES workspaces (id),
    url             TEXT NOT NULL,
    description     TEXT NOT NULL,
    types           TEXT NOT NULL,    -- of events, comma-separated; empty = all
    secret          BLOB NOT NULL,
    old_secret      BLOB NOT NULL,    -- signs too until old_until
    old_until       INTEGER NOT NULL,
    enabled         INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    disabled_reason TEXT NOT NULL,
    after_seq       INTEGER NOT NULL, -- the last event that was looked at
    created_by      INTEGER NOT NULL, -- whose local sessions it may tell of
    created_at      INTEGER NOT NULL,
    deleted_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_workspace ON webhooks (workspace_id, id) WHERE deleted_at = 0;

CREATE TABLE deliveries (
    id           INTEGER PRIMARY KEY,
    webhook_id   INTEGER NOT NULL REFERENCES webhooks (id),
    message      TEXT NOT NULL, -- id by which the receiver knows a repetition
    type         TEXT NOT NULL,
    body         TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
    tries        INTEGER NOT NULL,
    next_at      INTEGER NOT NULL, -- of the next try; 0 once it has ended
    tried_at     INTEGER NOT NULL,
    status_code  INTEGER NOT NULL, -- of the latest answer, 0 = none
    answer       TEXT NOT NULL,    -- its beginning
    problem      TEXT NOT NULL,    -- why there was no good answer
    again_of     INTEGER NOT NULL, -- the delivery that a person had repeated
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'waiting';
CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id);

-- Addresses by which other programs start an agent. Only a hash of the address is kept.
CREATE TABLE trigger_urls (
    id           INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
    agent_id     INTEGER NOT NULL REFERENCES agents (id),
    hash         BLOB NOT NULL UNIQUE,
    signature    TEXT NOT NULL CHECK (signature IN ('standard', 'github')),
    secret       BLOB NOT NULL,
    description  TEXT NOT NULL,
    created_by   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    deleted_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX trigger_urls_agent ON trigger_urls (agent_id, id) WHERE deleted_at = 0;
