-- What ended sessions came to, by agent, day and whose they were, so that sums over months need
-- no session. A session is counted once, when it ends, and stays counted when retention removes
-- it: the figures that were kept for removed sessions go into the same table.

-- +goose Up
CREATE TABLE figures (
    agent_id           INTEGER NOT NULL REFERENCES agents (id),
    owner_user_id      INTEGER NOT NULL, -- 0 = cloud sessions, which everybody of the workspace sees
    day                INTEGER NOT NULL, -- since 1970, UTC
    complete           INTEGER NOT NULL, -- the marked ones included
    marked             INTEGER NOT NULL, -- of those: no plain success, or stopped by a person
    failed             INTEGER NOT NULL,
    cancelled          INTEGER NOT NULL,
    started            INTEGER NOT NULL, -- those that a worker ever took
    run_seconds        INTEGER NOT NULL,
    wait_seconds       INTEGER NOT NULL, -- until a worker took them
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cost_micros        INTEGER NOT NULL,
    turns              INTEGER NOT NULL,
    longest_seconds    INTEGER NOT NULL,
    longest_session    INTEGER NOT NULL, -- 0 = unknown
    costliest_micros   INTEGER NOT NULL,
    costliest_session  INTEGER NOT NULL, -- 0 = unknown
    PRIMARY KEY (agent_id, owner_user_id, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE failure_figures (
    agent_id      INTEGER NOT NULL REFERENCES agents (id),
    owner_user_id INTEGER NOT NULL,
    day           INTEGER NOT NULL,
    code          TEXT NOT NULL,
    failures      INTEGER NOT NULL,
    last_session  INTEGER NOT NULL,
    PRIMARY KEY (agent_id, owner_user_id, day, code)
) STRICT, WITHOUT ROWID;

INSERT INTO figures
SELECT f.agent_id, CASE WHEN a.mode = 'cloud' THEN 0 ELSE a.runs_as_user_id END, f.day, f.complete, 0, f.failed, f.cancelled,
       f.complete + f.failed, f.run_seconds, 0, f.input_tokens, f.output_tokens, f.cost_micros, f.turns, 0, 0, 0, 0
FROM daily_figures f JOIN agents a ON a.id = f.agent_id;
DROP TABLE daily_figures;

INSERT INTO figures
SELECT s.agent_id, CASE WHEN s.mode = 'cloud' THEN 0 ELSE s.owner_user_id END, s.ended_at / 86400000000,
       SUM(CASE WHEN s.status = 'complete' THEN 1 ELSE 0 END),
       SUM(CASE WHEN s.status = 'complete' AND s.outcome IN ('expectation_unmet', 'refused', 'tools_failed', 'unfinished', 'stopped_by_user') THEN 1 ELSE 0 END),
       SUM(CASE WHEN s.status = 'error' THEN 1 ELSE 0 END), SUM(CASE WHEN s.status = 'cancelled' THEN 1 ELSE 0 END),
       SUM(CASE WHEN s.started_at > 0 THEN 1 ELSE 0 END),
       SUM(CASE WHEN s.started_at > 0 THEN (s.ended_at - s.started_at) / 1000000 ELSE 0 END),
       SUM(CASE WHEN s.started_at = 0 THEN 0 WHEN s.not_before > s.created_at THEN (s.started_at - s.not_before) / 1000000
                ELSE (s.started_at - s.created_at) / 1000000 END),
       SUM(s.input_tokens), SUM(s.output_tokens), SUM(s.cost_micros), SUM(s.turns), 0, 0, 0, 0
FROM sessions s WHERE s.ended_at > 0
GROUP BY 1, 2, 3
ON CONFLICT (agent_id, owner_user_id, day) DO UPDATE SET
    complete = figures.complete + excluded.complete, marked = figures.marked + excluded.marked, failed = figures.failed + excluded.failed,
    cancelled = figures.cancelled + excluded.cancelled, started = figures.started + excluded.started,
    run_seconds = figures.run_seconds + excluded.run_seconds, wait_seconds = figures.wait_seconds + excluded.wait_seconds,
    input_tokens = figures.input_tokens + excluded.input_tokens, output_tokens = figures.output_tokens + excluded.output_tokens,
    cost_micros = figures.cost_micros + excluded.cost_micros, turns = figures.turns + excluded.turns;

INSERT INTO failure_figures
SELECT s.agent_id, CASE WHEN s.mode = 'cloud' THEN 0 ELSE s.owner_user_id END, s.ended_at / 86400000000, s.error_code, COUNT(*), MAX(s.id)
FROM sessions s WHERE s.status = 'error'
GROUP BY 1, 2, 3, 4;
