-- +goose Up
-- Programs that a person signed in through a browser: one row is one sign-in, a
-- family of tokens that ends as a whole. Its id is from the same counter as those
-- of tokens.
CREATE TABLE programs (
    id           INTEGER PRIMARY KEY,
    user_id      INTEGER NOT NULL REFERENCES users (id),
    client       TEXT NOT NULL, -- its client id
    resource     TEXT NOT NULL, -- path of the part of the server that its tokens are good for; empty = the API
    label        TEXT NOT NULL,
    address      TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL, -- whatever it does until then
    last_used_at INTEGER NOT NULL,
    revoked_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX programs_user ON programs (user_id, id) WHERE revoked_at = 0;

-- Access and refresh tokens. A refresh token that was traded stays until its end,
-- so that its second use is noticed.
CREATE TABLE program_tokens (
    hash       BLOB PRIMARY KEY,
    program_id INTEGER NOT NULL REFERENCES programs (id),
    kind       TEXT NOT NULL CHECK (kind IN ('access', 'refresh')),
    expires_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL, -- when a refresh token was traded
    salt       BLOB NOT NULL     -- with the traded token itself, it makes what that was traded for
) STRICT;
CREATE INDEX program_tokens_age ON program_tokens (expires_at);
CREATE INDEX program_tokens_program ON program_tokens (program_id);

-- Answers to a consent, to be traded for tokens once, within a minute.
CREATE TABLE oauth_codes (
    hash         BLOB PRIMARY KEY,
    user_id      INTEGER NOT NULL REFERENCES users (id),
    client       TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    challenge    TEXT NOT NULL, -- SHA-256 of the verifier
    resource     TEXT NOT NULL,
    expires_at   INTEGER NOT NULL,
    used_at      INTEGER NOT NULL,
    program_id   INTEGER NOT NULL -- what it was traded for
) STRICT;
CREATE INDEX oauth_codes_age ON oauth_codes (expires_at);

-- Programs without a browser that wait for a person to type their code.
CREATE TABLE device_codes (
    hash       BLOB PRIMARY KEY,
    user_code  BLOB NOT NULL UNIQUE, -- SHA-256 of the letters
    client     TEXT NOT NULL,
    resource   TEXT NOT NULL,
    label      TEXT NOT NULL,
    address    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    wait       INTEGER NOT NULL, -- seconds between two questions
    asked_at   INTEGER NOT NULL,
    decided_at INTEGER NOT NULL,
    user_id    INTEGER NOT NULL, -- who said yes; 0 = nobody, or a no
    used_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX device_codes_age ON device_codes (expires_at);

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
