-- +goose Up
-- What somebody asked for is refused when they lose the right to it.
CREATE INDEX landings_by ON landings (requested_by, id) WHERE closed_at = 0;
