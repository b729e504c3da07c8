-- +goose Up
-- What a program was allowed to do with the tools at /mcp, as words with spaces between them;
-- empty = all that its resource has.
ALTER TABLE oauth_codes ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE programs ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
