-- Conversations (contract 6): questions with parts and deadlines, what people say
-- between turns, tool calls in the transcript; and what agents may spend (10.9).

-- +goose Up
ALTER TABLE prompts ADD COLUMN detail TEXT NOT NULL DEFAULT '';        -- JSON: the action or the choices; empty for none
ALTER TABLE prompts ADD COLUMN deadline_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE prompts ADD COLUMN fallback TEXT NOT NULL DEFAULT '';      -- JSON of the answer that the deadline gives
ALTER TABLE prompts ADD COLUMN answer_detail TEXT NOT NULL DEFAULT ''; -- JSON of the whole answer
CREATE INDEX prompts_deadline ON prompts (deadline_at) WHERE closed_at = 0 AND deadline_at > 0;

ALTER TABLE items ADD COLUMN tool TEXT NOT NULL DEFAULT '';
ALTER TABLE items ADD COLUMN call_id TEXT NOT NULL DEFAULT ''; -- pairs a result with its call, an answer with its question
ALTER TABLE items ADD COLUMN failed INTEGER NOT NULL DEFAULT 0 CHECK (failed IN (0, 1));
ALTER TABLE items ADD COLUMN user_id INTEGER NOT NULL DEFAULT 0; -- who wrote a message

-- A thread has a row once a worker or a person has moved one of its cursors.
CREATE TABLE threads (
    id            INTEGER PRIMARY KEY,
    last_consumed INTEGER NOT NULL, -- the last message that a finished turn has taken in
    last_posted   INTEGER NOT NULL, -- the last message that a person wrote
    turn_ended_at INTEGER NOT NULL -- when the last turn was finished
) STRICT;

CREATE TABLE messages (
    id         INTEGER PRIMARY KEY,
    thread_id  INTEGER NOT NULL,
    session_id INTEGER NOT NULL REFERENCES sessions (id), -- in whose transcript it stands
    client_id  TEXT NOT NULL,
    user_id    INTEGER NOT NULL,
    text       TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_thread ON messages (thread_id, id);
CREATE UNIQUE INDEX messages_client ON messages (thread_id, client_id) WHERE client_id <> '';

ALTER TABLE agents ADD COLUMN session_spend_limit INTEGER NOT NULL DEFAULT 0; -- millionths of a US dollar, 0 = none
ALTER TABLE agents ADD COLUMN daily_spend_limit INTEGER NOT NULL DEFAULT 0;   -- likewise
ALTER TABLE agents ADD COLUMN spend_day INTEGER NOT NULL DEFAULT 0;           -- yyyymmdd in the agent's zone
ALTER TABLE agents ADD COLUMN spent_on_day INTEGER NOT NULL DEFAULT 0;        -- millionths of a US dollar

-- +goose Down
-- Migrations are forward-only: a snapshot is taken first, see docs.
