-- Programs that registered themselves, so that people can sign them in (RFC 7591).
-- All are public: they have no secret.

-- +goose Up
CREATE TABLE oauth_clients (
    id         INTEGER PRIMARY KEY,
    client     TEXT NOT NULL UNIQUE, -- the client id, which is the id's text
    name       TEXT NOT NULL,        -- of its own choosing
    redirects  TEXT NOT NULL,        -- joined by spaces
    address    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,     -- when somebody last signed it in
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX oauth_clients_unused ON oauth_clients (id) WHERE used_at = 0;
CREATE INDEX oauth_clients_age ON oauth_clients (expires_at);
CREATE INDEX programs_client ON programs (client, id) WHERE revoked_at = 0;

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
