-- What the owners of workers allowed agents from now on, as the workers last said it, and what
-- they were asked to remove (contract 15.3).

-- +goose Up
CREATE TABLE standing_approvals (
    worker_id INTEGER NOT NULL,
    approval TEXT NOT NULL,              -- its name on the worker
    area TEXT NOT NULL,
    tool TEXT NOT NULL,
    what TEXT NOT NULL,
    any_word INTEGER NOT NULL,           -- 1 = what is a pattern
    beyond INTEGER NOT NULL,             -- 1 = also out of the program's sandbox
    session_id INTEGER NOT NULL,         -- whose question it answered; 0 = unknown
    approved_by INTEGER NOT NULL,        -- 0 = unknown
    approved_at INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    used_at INTEGER NOT NULL,            -- 0 = never
    removal_asked_at INTEGER NOT NULL,   -- 0 = nobody asked
    PRIMARY KEY (worker_id, approval)
);
ALTER TABLE workers ADD COLUMN approvals_state TEXT NOT NULL DEFAULT ''; -- the worker's word for the list that it reported; '' = none

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
