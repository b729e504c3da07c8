-- +goose Up
-- What people told workers to do (contract 5.3). A worker has one pending signal at most.
CREATE TABLE signals (
    id         INTEGER PRIMARY KEY,
    worker_id  INTEGER NOT NULL REFERENCES workers (id),
    kind       TEXT NOT NULL CHECK (kind IN ('stop', 'pause', 'resume', 'restart')),
    sent_by    INTEGER NOT NULL REFERENCES users (id),
    sent_at    INTEGER NOT NULL,
    closed_at  INTEGER NOT NULL,
    resolution TEXT NOT NULL CHECK (resolution IN ('', 'acknowledged', 'replaced', 'registered', 'deleted'))
) STRICT;
CREATE UNIQUE INDEX signals_pending ON signals (worker_id) WHERE closed_at = 0;
CREATE INDEX signals_worker ON signals (worker_id, id);

-- The fields of a worker that a person set: a registration leaves them alone. Words joined by commas.
ALTER TABLE workers ADD COLUMN pinned TEXT NOT NULL DEFAULT '';

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
