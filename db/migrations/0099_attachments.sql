-- Files and images that people give with a prompt or a message (contract 15.7).

-- +goose Up
CREATE TABLE attachments (
    id         INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id), -- whose prompt or transcript it belongs to; it goes with its output
    message_id INTEGER NOT NULL,                          -- 0 = it came with the prompt
    name       TEXT NOT NULL,
    type       TEXT NOT NULL,                             -- the media type as its bytes say it
    size       INTEGER NOT NULL,                          -- bytes
    data       BLOB NOT NULL,
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX attachments_session ON attachments (session_id, message_id, id);

ALTER TABLE messages ADD COLUMN files INTEGER NOT NULL DEFAULT 0; -- how many came with it
