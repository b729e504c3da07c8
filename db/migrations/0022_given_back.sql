-- Sessions that are given back again and again rest and end at last; workers say how long they take to end
-- what runs; a request that a silent worker left open is given nothing.

-- +goose Up
ALTER TABLE sessions ADD COLUMN releases INTEGER NOT NULL DEFAULT 0; -- times in a row that its workers gave it back
ALTER TABLE sessions ADD COLUMN tries INTEGER NOT NULL DEFAULT 0; -- that failed and were followed by another
ALTER TABLE workers ADD COLUMN staging INTEGER NOT NULL DEFAULT 0; -- seconds that it takes at most to end what runs; 0 = not told
ALTER TABLE workers ADD COLUMN lost_at INTEGER NOT NULL DEFAULT 0; -- when a claim of its was last taken away for its silence

-- +goose Down
