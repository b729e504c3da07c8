-- When a channel may tell (contract 17): quiet hours, a digest, and several things in one message.

-- +goose Up
ALTER TABLE webhooks ADD COLUMN quiet_from TEXT NOT NULL DEFAULT '';      -- HH:MM, '' = no quiet hours
ALTER TABLE webhooks ADD COLUMN quiet_to TEXT NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN digest_at TEXT NOT NULL DEFAULT '';       -- HH:MM, '' = told as it happens
ALTER TABLE webhooks ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';       -- that these times are read in
ALTER TABLE webhooks ADD COLUMN told_at INTEGER NOT NULL DEFAULT 0;       -- when it last told something other than a question
ALTER TABLE deliveries ADD COLUMN held TEXT NOT NULL DEFAULT '';          -- why it was held back
ALTER TABLE deliveries ADD COLUMN part_of INTEGER NOT NULL DEFAULT 0;     -- the delivery whose message tells this, too
CREATE INDEX deliveries_parts ON deliveries (part_of) WHERE part_of <> 0;
CREATE INDEX deliveries_untold ON deliveries (webhook_id, next_at) WHERE state = 'waiting' AND tries = 0 AND cause <> '';
