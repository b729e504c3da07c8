-- What a worker has not handed in of what its sessions did, as of its last beat.

-- +goose Up
ALTER TABLE workers ADD COLUMN unsent INTEGER NOT NULL DEFAULT 0;       -- reports in its outbox
ALTER TABLE workers ADD COLUMN unsent_since INTEGER NOT NULL DEFAULT 0; -- since when none of them was taken; 0 = there are none

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
