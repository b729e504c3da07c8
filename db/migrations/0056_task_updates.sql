-- +goose Up
-- What of a session may change the state of the task that it holds: all that the agent lets, and of
-- that what the worker leaves.
ALTER TABLE agents ADD COLUMN task_updates TEXT NOT NULL DEFAULT 'awaiting_input,claimed,completed,failed,released';
ALTER TABLE workers ADD COLUMN task_updates TEXT NOT NULL DEFAULT 'awaiting_input,claimed,completed,failed,released';

-- A key may have made a task instead of a session.
ALTER TABLE idempotency_keys ADD COLUMN task_id INTEGER NOT NULL DEFAULT 0;
