-- +goose Up
-- What an agent acts with: made with each answer to a claim, good as long as the
-- claim lives.
CREATE TABLE run_tokens (
    hash     BLOB PRIMARY KEY,
    claim_id INTEGER NOT NULL REFERENCES claims (id)
) STRICT;
CREATE INDEX run_tokens_claim ON run_tokens (claim_id);

ALTER TABLE claims ADD COLUMN started INTEGER NOT NULL DEFAULT 0; -- sessions that its agent started

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
