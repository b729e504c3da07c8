-- What the coordinator finds wrong and a person should know: the inbox shows it, channels tell it (contract 17). One that
-- is over stays for an hour, so that what comes and goes is one cause.

-- +goose Up
CREATE TABLE findings (
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
    kind         TEXT NOT NULL CHECK (kind IN ('schedule', 'worker_lost', 'spend_limit', 'disk', 'backup')),
    agent_id     INTEGER NOT NULL,  -- 0 = of the coordinator itself
    session_id   INTEGER NOT NULL,  -- 0 = of no session
    code         TEXT NOT NULL,
    title        TEXT NOT NULL,
    detail       TEXT NOT NULL,
    mend         TEXT NOT NULL,
    since        INTEGER NOT NULL,
    told_seq     INTEGER NOT NULL,  -- the event that told of it; 0 = none yet, it has only just come back
    ended_at     INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, kind, agent_id, session_id)
) STRICT, WITHOUT ROWID;

-- A channel that tells of everything goes on telling of everything.
UPDATE webhooks SET causes = 'backup,disk,failed,failing,needs_you,recovered,schedule,spend_limit,worker_lost'
WHERE scope <> '' AND causes = 'failed,failing,needs_you,recovered';
