-- Adds an ended session to the figures of its day. Its own length and cost are given twice: as
-- part of the sums, and as what may be the day's largest.
-- name: AddFigures :exec
INSERT INTO figures (
    agent_id, owner_user_id, day, complete, marked, failed, cancelled, started, run_seconds, wait_seconds, input_tokens,
    output_tokens, cost_micros, turns, longest_seconds, longest_session, costliest_micros, costliest_session
) VALUES (
    @agent_id, @owner_user_id, @day, @complete, @marked, @failed, @cancelled, @started, @run_seconds, @wait_seconds,
    @input_tokens, @output_tokens, @cost_micros, @turns, @run_seconds, @session, @cost_micros, @session
) ON CONFLICT (agent_id, owner_user_id, day) DO UPDATE SET
    complete = figures.complete + excluded.complete, marked = figures.marked + excluded.marked,
    failed = figures.failed + excluded.failed, cancelled = figures.cancelled + excluded.cancelled,
    started = figures.started + excluded.started, run_seconds = figures.run_seconds + excluded.run_seconds,
    wait_seconds = figures.wait_seconds + excluded.wait_seconds, input_tokens = figures.input_tokens + excluded.input_tokens,
    output_tokens = figures.output_tokens + excluded.output_tokens, cost_micros = figures.cost_micros + excluded.cost_micros,
    turns = figures.turns + excluded.turns,
    longest_session = CASE WHEN excluded.longest_seconds > figures.longest_seconds THEN excluded.longest_session ELSE figures.longest_session END,
    longest_seconds = CASE WHEN excluded.longest_seconds > figures.longest_seconds THEN excluded.longest_seconds ELSE figures.longest_seconds END,
    costliest_session = CASE WHEN excluded.costliest_micros > figures.costliest_micros THEN excluded.costliest_session ELSE figures.costliest_session END,
    costliest_micros = CASE WHEN excluded.costliest_micros > figures.costliest_micros THEN excluded.costliest_micros ELSE figures.costliest_micros END;

-- name: AddFailure :exec
INSERT INTO failure_figures (agent_id, owner_user_id, day, code, failures, last_session)
VALUES (@agent_id, @owner_user_id, @day, @code, 1, @session)
ON CONFLICT (agent_id, owner_user_id, day, code) DO UPDATE SET
    failures = failure_figures.failures + 1, last_session = excluded.last_session;

-- The figures of a workspace since a day that one person may see, of deleted agents too; SQLite
-- keeps the order of a CROSS JOIN.
-- name: FiguresSince :many
SELECT sqlc.embed(f), a.slug, a.name, a.deleted_at FROM agents a CROSS JOIN figures f
WHERE a.workspace_id = @workspace_id AND f.agent_id = a.id AND (f.owner_user_id = 0 OR f.owner_user_id = @me) AND f.day >= @since;

-- name: FailuresSince :many
SELECT sqlc.embed(f), a.slug FROM agents a CROSS JOIN failure_figures f
WHERE a.workspace_id = @workspace_id AND f.agent_id = a.id AND (f.owner_user_id = 0 OR f.owner_user_id = @me) AND f.day >= @since;
