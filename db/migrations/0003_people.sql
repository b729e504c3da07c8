-- +goose Up
-- How a person signs in. A user without a row here signs in by one-time links alone.
CREATE TABLE logins (
    user_id    INTEGER PRIMARY KEY REFERENCES users (id),
    name       TEXT NOT NULL UNIQUE, -- in lower case
    password   TEXT NOT NULL,        -- argon2id with its salt and costs
    changed_at INTEGER NOT NULL
) STRICT;

ALTER TABLE tokens ADD COLUMN label TEXT NOT NULL DEFAULT '';   -- what holds it, such as a browser's name
ALTER TABLE tokens ADD COLUMN address TEXT NOT NULL DEFAULT ''; -- from where it was made
CREATE INDEX tokens_user ON tokens (user_id, id) WHERE revoked_at = 0;

CREATE INDEX members_user ON members (user_id);

-- One-time links that make their holder a member.
CREATE TABLE invitations (
    id           INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
    role         TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
    note         TEXT NOT NULL,
    hash         BLOB NOT NULL UNIQUE,
    invited_by   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    used_at      INTEGER NOT NULL,
    used_by      INTEGER NOT NULL,
    revoked_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX invitations_open ON invitations (workspace_id, id) WHERE used_at = 0 AND revoked_at = 0;

-- What programs act with, for the user who made it, in one workspace.
CREATE TABLE api_keys (
    id           INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
    user_id      INTEGER NOT NULL REFERENCES users (id),
    name         TEXT NOT NULL,
    scopes       TEXT NOT NULL, -- joined by commas
    hash         BLOB NOT NULL UNIQUE,
    hint         TEXT NOT NULL, -- the last characters of the key
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    revoked_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX api_keys_live ON api_keys (workspace_id, id) WHERE revoked_at = 0;

-- Guesses at secrets within a span of time. A key is a hash: what was typed as a
-- name may be a password.
CREATE TABLE tries (
    key   BLOB PRIMARY KEY,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    count INTEGER NOT NULL
) STRICT;
CREATE INDEX tries_age ON tries (until);

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
