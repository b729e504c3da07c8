-- Where the worker of a local session works when that isn't the agent's work folder, and
-- how its owner goes on with the agent session by hand. Both are its owner's alone.

-- +goose Up
ALTER TABLE sessions ADD COLUMN work_path TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN resume_command TEXT NOT NULL DEFAULT '';
