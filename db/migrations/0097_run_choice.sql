-- What a session runs by in place of what its agent says (contract 15.6).

-- +goose Up
ALTER TABLE sessions ADD COLUMN model TEXT NOT NULL DEFAULT '';          -- the model; '' = the agent's
ALTER TABLE sessions ADD COLUMN effort TEXT NOT NULL DEFAULT '';         -- how much it is to think; '' = the agent's
ALTER TABLE sessions ADD COLUMN plan_mode INTEGER NOT NULL DEFAULT 0;    -- 1 = it only plans; 0 = as the agent says
