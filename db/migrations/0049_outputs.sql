-- How much output of a session is kept: its beginning, and its end from tail_from on. What
-- lay between is gone; one item at tail_from says how much that was.

-- +goose Up
CREATE TABLE outputs (
    session_id    INTEGER PRIMARY KEY REFERENCES sessions (id),
    head_bytes    INTEGER NOT NULL,
    tail_from     INTEGER NOT NULL, -- sequence number of the item with which the end begins, 0 = everything is the beginning
    tail_bytes    INTEGER NOT NULL,
    dropped_bytes INTEGER NOT NULL
) STRICT;
