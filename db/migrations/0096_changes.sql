-- What sessions changed in git, what people say of it, and what they ask to be done with it
-- (contract 16).

-- +goose Up
CREATE TABLE changes (
    session_id INTEGER PRIMARY KEY,
    thread_id INTEGER NOT NULL,
    workspace_id INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    snapshot TEXT NOT NULL,       -- of the files below; '' = the first report isn't complete
    state TEXT NOT NULL,          -- JSON: branch, commits, …
    file_count INTEGER NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    taken_at INTEGER NOT NULL,
    waiting INTEGER NOT NULL      -- 1 = there is something that nobody has landed or discarded
);
CREATE INDEX changes_waiting ON changes (workspace_id, session_id) WHERE waiting = 1;
CREATE INDEX changes_thread ON changes (thread_id, session_id);

CREATE TABLE changed_files (
    session_id INTEGER NOT NULL,
    snapshot TEXT NOT NULL,
    position INTEGER NOT NULL,
    path TEXT NOT NULL,
    old_path TEXT NOT NULL,
    change TEXT NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    binary INTEGER NOT NULL,
    cut INTEGER NOT NULL,
    patch TEXT NOT NULL,
    PRIMARY KEY (session_id, snapshot, position)
);

CREATE TABLE landings (
    id INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL,
    session_id INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    verb TEXT NOT NULL,
    method TEXT NOT NULL,
    message TEXT NOT NULL,
    confirm TEXT NOT NULL,
    requested_by INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,        -- JSON: what its worker said came of it
    closed_at INTEGER NOT NULL    -- 0 = pending
);
CREATE UNIQUE INDEX landings_open ON landings (session_id) WHERE closed_at = 0;
CREATE INDEX landings_asked ON landings (worker_id, id) WHERE closed_at = 0;
CREATE INDEX landings_session ON landings (session_id, id);

CREATE TABLE review_comments (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    path TEXT NOT NULL,
    line INTEGER NOT NULL,
    side TEXT NOT NULL,
    quote TEXT NOT NULL,
    text TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX review_comments_mine ON review_comments (session_id, user_id, id);

ALTER TABLE workers ADD COLUMN land TEXT NOT NULL DEFAULT 'off'; -- how far its owner lets changes be landed
