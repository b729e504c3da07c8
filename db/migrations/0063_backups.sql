-- +goose Up
-- What became of the scheduled backups: the last good one and the last that failed.
CREATE TABLE backups (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    good_at   INTEGER NOT NULL DEFAULT 0,
    file      TEXT    NOT NULL DEFAULT '', -- its name, without the directory
    bytes     INTEGER NOT NULL DEFAULT 0,
    sha256    TEXT    NOT NULL DEFAULT '',
    failed_at INTEGER NOT NULL DEFAULT 0,
    failure   TEXT    NOT NULL DEFAULT ''
) STRICT;
INSERT INTO backups (id) VALUES (1);
