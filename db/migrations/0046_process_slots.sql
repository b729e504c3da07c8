-- How many sessions a worker's process runs at once for all the agents that it serves,
-- 0 = not told: why a session waits names it where all are busy (contract 2.4).

-- +goose Up
ALTER TABLE workers ADD COLUMN process_slots INTEGER NOT NULL DEFAULT 0;

CREATE INDEX workers_process ON workers (process_id) WHERE deleted_at = 0;
