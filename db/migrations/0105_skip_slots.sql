-- Until when an agent's slots are skipped because a person asked for it; 0 = none are
-- (contract 3.4).

-- +goose Up
ALTER TABLE agents ADD COLUMN skip_until INTEGER NOT NULL DEFAULT 0;

-- What didn't run is found without going through what did.
CREATE INDEX ledger_not_run ON ledger (decided_at) WHERE verdict IN ('skipped', 'missed');
