-- Lists look at no more than a number of sessions, the newest of those that an index names.
-- This is the last of them, and how many there are: fewer than scan when that is all.
-- name: ReachOfSessions :one
SELECT CAST(COALESCE(MIN(x.id), 0) AS INTEGER) AS reach, COUNT(*) AS n FROM (
    SELECT s.id FROM sessions s WHERE s.workspace_id = @workspace_id AND s.id < @before AND s.id >= @reach ORDER BY s.id DESC LIMIT @scan
) x;

-- name: ReachOfAgentsSessions :one
SELECT CAST(COALESCE(MIN(x.id), 0) AS INTEGER) AS reach, COUNT(*) AS n FROM (
    SELECT s.id FROM sessions s WHERE s.agent_id = @agent_id AND s.id < @before AND s.id >= @reach ORDER BY s.id DESC LIMIT @scan
) x;

-- Which sessions fit a filter, the newest first: the one place that says what fits. Where to look
-- is one of several places with an index each; those of a status have two, and none for what is
-- complete, which nearly all are. The join that keeps its order makes SQLite use them. Texts are
-- compared in lower case.
-- name: FitSessions :many
SELECT s.id, s.status, s.outcome FROM sessions s
WHERE s.id IN (
    SELECT x.id FROM sessions x
    WHERE CAST(@place AS TEXT) = 'workspace' AND x.workspace_id = @workspace_id AND x.id >= @reach AND x.id < @before
    UNION ALL
    SELECT x.id FROM sessions x
    WHERE CAST(@place AS TEXT) = 'agent' AND x.agent_id = CAST(@agent_id AS INTEGER) AND x.id >= @reach AND x.id < @before
    UNION ALL
    SELECT x.id FROM agents a CROSS JOIN sessions x
    WHERE CAST(@place AS TEXT) = 'open' AND x.agent_id = a.id AND a.workspace_id = @workspace_id AND (CAST(@agent_id AS INTEGER) = 0 OR a.id = CAST(@agent_id AS INTEGER))
      AND x.ended_at = 0 AND x.status = @status AND x.id >= @reach AND x.id < @before
    UNION ALL
    SELECT x.id FROM agents a CROSS JOIN sessions x
    WHERE CAST(@place AS TEXT) = 'ended' AND x.agent_id = a.id AND a.workspace_id = @workspace_id AND (CAST(@agent_id AS INTEGER) = 0 OR a.id = CAST(@agent_id AS INTEGER))
      AND x.ended_at > 0 AND x.status <> 'complete' AND x.status = @status AND x.id >= @reach AND x.id < @before
    UNION ALL
    SELECT x.id FROM sessions x
    WHERE CAST(@place AS TEXT) = 'thread' AND x.thread_id = CAST(@thread_id AS INTEGER) AND x.thread_id <> x.id
    UNION ALL
    SELECT x.id FROM sessions x
    WHERE CAST(@place AS TEXT) = 'thread' AND x.id = CAST(@thread_id AS INTEGER)
    UNION ALL
    SELECT x.id FROM sessions x
    WHERE CAST(@place AS TEXT) = 'id' AND x.id = @id
    UNION ALL
    SELECT c.session_id FROM changes c
    WHERE CAST(@place AS TEXT) = 'unlanded' AND c.workspace_id = @workspace_id AND c.waiting = 1
  )
  AND s.workspace_id + 0 = @workspace_id AND (s.mode = 'cloud' OR s.owner_user_id = @me)
  AND s.id >= @reach AND s.id < @before
  AND (CAST(@statuses AS TEXT) = '' OR CAST(@statuses AS TEXT) LIKE '%,' || s.status || ',%')
  AND (CAST(@agent_id AS INTEGER) = 0 OR s.agent_id + 0 = CAST(@agent_id AS INTEGER))
  AND (CAST(@trigger AS TEXT) = '' OR s.triggered_by = CAST(@trigger AS TEXT))
  AND (CAST(@thread_id AS INTEGER) = 0 OR s.thread_id + 0 = CAST(@thread_id AS INTEGER))
  AND (CAST(@retry_of AS INTEGER) = 0 OR s.retry_of = CAST(@retry_of AS INTEGER))
  AND (CAST(@worker AS TEXT) = '' OR s.worker_id = @worker_id
    OR s.worker_id IN (SELECT w.id FROM workers w WHERE w.workspace_id = @workspace_id AND w.name = CAST(@worker AS TEXT)))
  AND (CAST(@code AS TEXT) = '' OR s.error_code = CAST(@code AS TEXT))
  AND s.created_at >= @since AND s.created_at < @until
  AND s.cost_micros >= @cost_min AND s.cost_micros <= @cost_max
  AND s.input_tokens + s.output_tokens >= CAST(@tokens_min AS INTEGER) AND s.input_tokens + s.output_tokens <= CAST(@tokens_max AS INTEGER)
  AND s.tries >= @tries_min AND s.tries <= @tries_max
  AND CASE WHEN s.started_at = 0 THEN 0 WHEN s.ended_at = 0 THEN CAST(@now AS INTEGER) - s.started_at ELSE s.ended_at - s.started_at END >= CAST(@took_min AS INTEGER)
  AND CASE WHEN s.started_at = 0 THEN 0 WHEN s.ended_at = 0 THEN CAST(@now AS INTEGER) - s.started_at ELSE s.ended_at - s.started_at END <= CAST(@took_max AS INTEGER)
  AND (CAST(@archived AS TEXT) = 'too' OR (s.archived_at > 0) = (CAST(@archived AS TEXT) = 'only'))
  AND (CAST(@kept AS INTEGER) = 0 OR s.kept_at > 0)
  AND (CAST(@ended AS INTEGER) = 0 OR s.ended_at > 0)
  AND (CAST(@outcomes AS TEXT) = '' OR (s.status = 'complete' AND CAST(@outcomes AS TEXT) LIKE '%,' || s.outcome || ',%'))
  AND (CAST(@text1 AS TEXT) = '' OR REPLACE(LOWER(s.title), CAST(@text1 AS TEXT), '') <> LOWER(s.title) OR REPLACE(LOWER(s.prompt), CAST(@text1 AS TEXT), '') <> LOWER(s.prompt))
  AND (CAST(@text2 AS TEXT) = '' OR REPLACE(LOWER(s.title), CAST(@text2 AS TEXT), '') <> LOWER(s.title) OR REPLACE(LOWER(s.prompt), CAST(@text2 AS TEXT), '') <> LOWER(s.prompt))
  AND (CAST(@text3 AS TEXT) = '' OR REPLACE(LOWER(s.title), CAST(@text3 AS TEXT), '') <> LOWER(s.title) OR REPLACE(LOWER(s.prompt), CAST(@text3 AS TEXT), '') <> LOWER(s.prompt))
  AND (CAST(@text4 AS TEXT) = '' OR REPLACE(LOWER(s.title), CAST(@text4 AS TEXT), '') <> LOWER(s.title) OR REPLACE(LOWER(s.prompt), CAST(@text4 AS TEXT), '') <> LOWER(s.prompt))
ORDER BY s.id DESC LIMIT @n;
