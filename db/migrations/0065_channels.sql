-- Channels that tell people (contract 17). A channel is a webhook whose receiver is a person: the same place in the event
-- log, the same deliveries. Each message has its cause, and no channel is told of one twice.

-- +goose Up
ALTER TABLE webhooks ADD COLUMN scope TEXT NOT NULL DEFAULT '' CHECK (scope IN ('', 'person', 'workspace')); -- '' = signed messages to a program
ALTER TABLE webhooks ADD COLUMN target TEXT NOT NULL DEFAULT '';     -- what may be shown of a channel's address
ALTER TABLE webhooks ADD COLUMN causes TEXT NOT NULL DEFAULT '';     -- what a channel tells, comma-separated
ALTER TABLE webhooks ADD COLUMN details INTEGER NOT NULL DEFAULT 0;  -- 1 = with questions and errors in their words
ALTER TABLE deliveries ADD COLUMN cause TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX deliveries_cause ON deliveries (webhook_id, cause) WHERE cause <> '';

-- How often each agent has failed in a row, of the runs that a channel's readers may know.
CREATE TABLE failure_streaks (
    webhook_id INTEGER NOT NULL REFERENCES webhooks (id),
    agent_id   INTEGER NOT NULL REFERENCES agents (id),
    failures   INTEGER NOT NULL,
    PRIMARY KEY (webhook_id, agent_id)
) STRICT, WITHOUT ROWID;
