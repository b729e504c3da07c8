-- What people say to a turn that runs (contract 6.6).

-- +goose Up
ALTER TABLE messages ADD COLUMN now INTEGER NOT NULL DEFAULT 0 CHECK (now IN (0, 1));           -- for the running turn, where its agent takes it in
ALTER TABLE messages ADD COLUMN taken_at INTEGER NOT NULL DEFAULT 0;                            -- when the running turn had taken it in
ALTER TABLE messages ADD COLUMN consumed INTEGER NOT NULL DEFAULT 0 CHECK (consumed IN (0, 1)); -- 1 = that turn has ended
