-- Retention alone may take the oldest events away, through a door: a row here, within one
-- transaction, says below which number. It refers to a row that can't be there, so no
-- transaction commits while the door is open.

-- +goose Up
CREATE TABLE events_door_frames (below INTEGER PRIMARY KEY CHECK (below < 0)) STRICT;
CREATE TABLE events_door (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    below INTEGER NOT NULL CHECK (below > 0) REFERENCES events_door_frames (below) DEFERRABLE INITIALLY DEFERRED
) STRICT;
DROP TRIGGER events_kept;
-- +goose StatementBegin
CREATE TRIGGER events_kept BEFORE DELETE ON events
WHEN old.seq >= (SELECT COALESCE(MAX(below), 0) FROM events_door) BEGIN
    SELECT RAISE(ABORT, 'the event log is append-only');
END;
-- +goose StatementEnd
