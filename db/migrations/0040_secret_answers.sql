-- +goose Up
-- Whether the row holds an answer to a secret question that is still to be removed:
-- when the turn that asked it has ended, or its session (contract 10.11).
ALTER TABLE prompts ADD COLUMN secret INTEGER NOT NULL DEFAULT 0;

UPDATE prompts SET secret = 1 WHERE detail LIKE '%"secret":true%' AND (answer_detail <> '' OR fallback <> '' OR closed_at = 0);
UPDATE prompts SET secret = 0, answer_detail = '{}', fallback = ''
WHERE secret = 1 AND closed_at <> 0
    AND session_id IN (SELECT id FROM sessions WHERE status IN ('complete', 'error', 'cancelled'));

CREATE INDEX prompts_secret ON prompts (session_id) WHERE secret = 1;
