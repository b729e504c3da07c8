-- The log of events is for adding to alone: whatever goes wrong above, a row that
-- was written stays as it is (contract 2.7, 8.4).

-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER events_append_only BEFORE UPDATE ON events BEGIN
    SELECT RAISE(ABORT, 'the event log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_kept BEFORE DELETE ON events BEGIN
    SELECT RAISE(ABORT, 'the event log is append-only');
END;
-- +goose StatementEnd
