-- What retention needs (contract 13.2): what people keep, what of a session is gone, and which
-- sessions there were.

-- +goose Up
ALTER TABLE sessions ADD COLUMN kept_at INTEGER NOT NULL DEFAULT 0;           -- 0 = it goes with its age
ALTER TABLE sessions ADD COLUMN output_removed_at INTEGER NOT NULL DEFAULT 0; -- when retention began to remove its output
ALTER TABLE sessions ADD COLUMN events_removed_at INTEGER NOT NULL DEFAULT 0; -- likewise its events

-- A removed session's id is answered with the day it went. Who might see it might see that too.
CREATE TABLE removed_sessions (
    id            INTEGER PRIMARY KEY,
    workspace_id  INTEGER NOT NULL,
    owner_user_id INTEGER NOT NULL, -- of a local one
    day           INTEGER NOT NULL  -- since 1970, UTC
) STRICT;

-- What the sessions that were removed came to, by the day on which they ended.
CREATE TABLE daily_figures (
    agent_id      INTEGER NOT NULL REFERENCES agents (id),
    day           INTEGER NOT NULL, -- since 1970, UTC
    complete      INTEGER NOT NULL,
    failed        INTEGER NOT NULL,
    cancelled     INTEGER NOT NULL,
    run_seconds   INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros   INTEGER NOT NULL,
    turns         INTEGER NOT NULL,
    PRIMARY KEY (agent_id, day)
) STRICT, WITHOUT ROWID;

-- No event up to this number is certain to be there.
INSERT INTO counters (name, value) SELECT 'forgotten', COALESCE(MIN(seq), 1) - 1 FROM events;

-- The last round that looked at everything.
CREATE TABLE retention (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    looked_at  INTEGER NOT NULL DEFAULT 0,
    removed_at INTEGER NOT NULL DEFAULT 0, -- of the last round that removed something
    removed    TEXT    NOT NULL DEFAULT '' -- JSON of how much that was
) STRICT;
INSERT INTO retention (id) VALUES (1);

CREATE INDEX messages_session ON messages (session_id);
