-- +goose Up
ALTER TABLE claims ADD COLUMN started INTEGER NOT NULL DEFAULT 0; -- sessions that its agent started

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
