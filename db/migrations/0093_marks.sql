-- Why a session that ended well is no plain success (contract 15.4).

-- +goose Up
ALTER TABLE sessions ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;      -- acts of its agent that were refused
ALTER TABLE sessions ADD COLUMN tools_failed INTEGER NOT NULL DEFAULT 0; -- tools that could not be started
ALTER TABLE sessions ADD COLUMN unmet INTEGER NOT NULL DEFAULT 0;        -- 1 = not what its agent says must come of it
ALTER TABLE sessions ADD COLUMN mark_reason TEXT NOT NULL DEFAULT '';    -- of the gravest mark, the first of its kind
ALTER TABLE activities ADD COLUMN mark TEXT NOT NULL DEFAULT '';
