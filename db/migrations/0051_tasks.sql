-- Tasks: what is to be done, by whom (the assignment, which lasts) and who is at work on it
-- now (the lease, which ends by itself or with the session that it is bound to).

-- +goose Up
CREATE TABLE tasks (
    id                INTEGER PRIMARY KEY,
    workspace_id      INTEGER NOT NULL REFERENCES workspaces (id),
    number            INTEGER NOT NULL, -- T-42
    slug              TEXT NOT NULL,    -- '' = none
    title             TEXT NOT NULL,
    description       TEXT NOT NULL,
    state             TEXT NOT NULL CHECK (state IN ('todo', 'in_progress', 'blocked', 'review', 'done')),
    rule_state        TEXT NOT NULL,    -- the state that a rule set or found, which it may change; '' = a person set it
    priority          TEXT NOT NULL CHECK (priority IN ('p1', 'p2', 'p3')),
    labels            TEXT NOT NULL,
    links             TEXT NOT NULL,    -- JSON; '' = none
    assignee_user_id  INTEGER NOT NULL,
    assignee_agent_id INTEGER NOT NULL,
    lease_user_id     INTEGER NOT NULL, -- who holds the lease; 0 = nobody
    lease_session_id  INTEGER NOT NULL, -- the session that it lives with; 0 = it lives by its clock
    lease_seconds     INTEGER NOT NULL,
    lease_expires_at  INTEGER NOT NULL, -- 0 = it has no clock
    leased_at         INTEGER NOT NULL,
    last_session_id   INTEGER NOT NULL, -- the latest that the lease was bound to, which alone a retry carries over
    lease_graced      INTEGER NOT NULL, -- it got grace after an outage since it was last renewed
    lease_renewed_at  INTEGER NOT NULL, -- what lease_expires_at is counted from
    open_blockers     INTEGER NOT NULL, -- tasks that block this one and aren't done
    open_blocked      INTEGER NOT NULL, -- tasks that this one blocks and that aren't done
    comments          INTEGER NOT NULL,
    version           INTEGER NOT NULL, -- of what people and rules set
    created_by        INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    done_at           INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tasks_number ON tasks (workspace_id, number);
CREATE UNIQUE INDEX tasks_slug ON tasks (workspace_id, slug) WHERE slug <> '';
CREATE INDEX tasks_list ON tasks (workspace_id, state, id);
CREATE INDEX tasks_mine ON tasks (workspace_id, assignee_user_id, assignee_agent_id, id) WHERE state <> 'done';
CREATE INDEX tasks_ready ON tasks (workspace_id, assignee_user_id, assignee_agent_id, MIN(open_blocked, 1) DESC, id) WHERE state <> 'done' AND open_blockers = 0;
CREATE INDEX tasks_lapse ON tasks (lease_expires_at) WHERE lease_expires_at > 0;
CREATE INDEX tasks_leased ON tasks (workspace_id, id) WHERE lease_user_id > 0;

CREATE TABLE task_blockers (
    task_id    INTEGER NOT NULL REFERENCES tasks (id),
    blocker_id INTEGER NOT NULL REFERENCES tasks (id), -- is to be done before it
    PRIMARY KEY (task_id, blocker_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_blockers_blocker ON task_blockers (blocker_id);

CREATE TABLE task_comments (
    id         INTEGER PRIMARY KEY,
    task_id    INTEGER NOT NULL REFERENCES tasks (id),
    user_id    INTEGER NOT NULL, -- who wrote it, or for whom the session's agent did
    session_id INTEGER NOT NULL, -- whose agent wrote it; 0 = a person did
    text       TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT;
CREATE INDEX task_comments_task ON task_comments (task_id, id);

ALTER TABLE sessions ADD COLUMN task_id INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_task ON sessions (task_id, id) WHERE task_id > 0;

ALTER TABLE events ADD COLUMN task_id INTEGER NOT NULL DEFAULT 0;
CREATE INDEX events_task ON events (task_id, seq) WHERE task_id > 0;
