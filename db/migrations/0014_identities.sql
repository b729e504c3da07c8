-- Who a person is at an external OpenID Connect provider. The issuer and the subject
-- decide, never a name or an address.

-- +goose Up
CREATE TABLE identities (
    id           INTEGER PRIMARY KEY,
    user_id      INTEGER NOT NULL REFERENCES users (id),
    issuer       TEXT NOT NULL,
    subject      TEXT NOT NULL,
    label        TEXT NOT NULL, -- what the provider called the person, for people to tell it by
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    UNIQUE (issuer, subject)
) STRICT;
CREATE UNIQUE INDEX identities_user ON identities (user_id, issuer);

-- Browsers that are on their way to the provider and back, within minutes. One is
-- used once, by who has the cookie that its hash is of.
CREATE TABLE detours (
    hash       BLOB PRIMARY KEY,
    purpose    TEXT NOT NULL CHECK (purpose IN ('sign_in', 'join', 'set_up', 'link')),
    user_id    INTEGER NOT NULL, -- who links, in the sign-in token_id; 0 = nobody is signed in
    token_id   INTEGER NOT NULL,
    ticket     BLOB NOT NULL,    -- SHA-256 of the invitation's or set-up link's code
    next       TEXT NOT NULL,    -- the page to go on to
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX detours_age ON detours (expires_at);

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
