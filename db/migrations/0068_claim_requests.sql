-- A request for work gets one claim, whichever of its process's workers it names when it is made again.

-- +goose Up
DROP INDEX claims_request;
CREATE INDEX claims_request ON claims (request_id) WHERE request_id <> '';
