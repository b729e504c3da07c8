-- name: InsertSession :execrows
INSERT INTO sessions (
    id, workspace_id, agent_id, thread_id, status, mode, triggered_by, triggered_by_user_id, triggered_at,
    owner_user_id, lane, labels, priority, title, prompt, instructions, untrusted_context, not_before, admit_at,
    after_id, after_any, followers, overlap_held, prompt_id, claim_id, worker_id, fence, attempt, retry_of,
    parent_id, depth, agent_session_id, process_id, affinity_until, reclaim_at, stop_requested_at, lapses, plan,
    external_url, result, outcome, error_code, error_message, input_tokens, output_tokens, cost_micros, turns,
    created_at, queued_at, started_at, ended_at, archived_at, place_at, task_id, model, effort, plan_mode
) VALUES (
    @id, @workspace_id, @agent_id, @thread_id, @status, @mode, @triggered_by, @triggered_by_user_id, @triggered_at,
    @owner_user_id, @lane, @labels, @priority, @title, @prompt, @instructions, @untrusted_context, @not_before, @admit_at,
    @after_id, @after_any, 0, @overlap_held, 0, 0, 0, 0, @attempt, @retry_of,
    @parent_id, @depth, @agent_session_id, @process_id, @affinity_until, 0, 0, 0, '',
    '', '', '', '', '', 0, 0, 0, 0,
    @created_at, @queued_at, 0, 0, 0, @queued_at, @task_id, @model, @effort, @plan_mode
) ON CONFLICT (agent_id, triggered_at) DO NOTHING;

-- name: SessionByTrigger :one
SELECT id, triggered_by FROM sessions WHERE agent_id = @agent_id AND triggered_at = @triggered_at;

-- name: Session :one
SELECT * FROM sessions WHERE id = @id;

-- Whether a session exists for a given caller: a local one only for its owner.
-- name: SessionVisibility :one
SELECT workspace_id, agent_id, mode, owner_user_id, parent_id FROM sessions WHERE id = @id;

-- name: SessionStatus :one
SELECT status FROM sessions WHERE id = @id;

-- The only statement that changes a status: it repeats the old status and the live claim.
-- name: MoveSession :execrows
UPDATE sessions SET
    status = @status, claim_id = @claim_id, worker_id = @worker_id, fence = @fence, queued_at = @queued_at,
    started_at = @started_at, ended_at = @ended_at, admit_at = @admit_at, not_before = @not_before,
    overlap_held = @overlap_held, prompt_id = @prompt_id, reclaim_at = @reclaim_at, affinity_until = @affinity_until,
    process_id = @process_id, stop_requested_at = @stop_requested_at, lapses = @lapses, result = @result,
    outcome = @outcome, error_code = @error_code, error_message = @error_message, place_at = @place_at,
    instructions = @instructions, releases = @releases, tries = @tries
WHERE id = @id AND status = @from_status AND claim_id = @from_claim_id;

-- name: RequestStop :execrows
UPDATE sessions SET stop_requested_at = @stop_requested_at
WHERE id = @id AND status IN ('active', 'awaiting_input') AND stop_requested_at = 0;

-- name: ReportSession :execrows
UPDATE sessions SET
    plan = @plan, external_url = @external_url, agent_session_id = @agent_session_id, process_id = @process_id,
    input_tokens = @input_tokens, output_tokens = @output_tokens, cost_micros = @cost_micros, turns = @turns,
    releases = @releases, tries = @tries, work_path = @work_path, resume_command = @resume_command
WHERE id = @id AND claim_id = @claim_id AND status IN ('active', 'awaiting_input');

-- name: MarkSession :execrows
UPDATE sessions SET refused = @refused, tools_failed = @tools_failed, unmet = @unmet, mark_reason = @mark_reason
WHERE id = @id AND claim_id = @claim_id AND status IN ('active', 'awaiting_input');

-- name: AddFollower :execrows
UPDATE sessions SET followers = followers + 1 WHERE id = @id;

-- name: Followers :many
SELECT * FROM sessions WHERE after_id = @after_id AND status = 'pending' AND after_id > 0 ORDER BY id;

-- name: DueAdmissions :many
SELECT id FROM sessions WHERE status = 'pending' AND admit_at > 0 AND admit_at <= @now ORDER BY admit_at LIMIT @n;

-- name: NextAdmission :one
SELECT admit_at FROM sessions WHERE status = 'pending' AND admit_at > 0 AND admit_at > @now ORDER BY admit_at LIMIT 1;

-- name: SetAdmitAt :execrows
UPDATE sessions SET admit_at = @admit_at WHERE id = @id AND status = 'pending';

-- name: HeldByOverlap :many
SELECT * FROM sessions WHERE agent_id = @agent_id AND status = 'pending' AND overlap_held = 1 ORDER BY id;

-- name: OpenOfAgent :many
SELECT * FROM sessions
WHERE agent_id = @agent_id AND ended_at = 0 ORDER BY status, id;

-- name: WaitingScheduled :many
SELECT id, status, overlap_held FROM sessions
WHERE agent_id = @agent_id AND ended_at = 0
  AND status IN ('pending', 'queued', 'stale') AND triggered_by = 'scheduler' ORDER BY status, id;

-- The next session that may be claimable, from a place on: within a lane the best first, then
-- the next lane's. It leaves out only what the gates hold back as well; they have the last
-- word (contract 2.4). next_lane is the lane after the session's own.
-- name: NextLane :one
SELECT s.id, s.lane, s.priority, s.place_at, CAST(COALESCE((
    SELECT n.lane FROM sessions n
    WHERE n.agent_id = @agent_id AND n.lane > s.lane AND n.status IN ('queued', 'stale')
    ORDER BY n.lane LIMIT 1), '') AS TEXT) AS next_lane
FROM sessions s
WHERE s.agent_id = @agent_id AND s.lane >= @lane AND s.status IN ('queued', 'stale')
  AND NOT (s.lane = @lane AND (s.priority > @priority
    OR (s.priority = @priority AND (s.place_at < @place_at OR (s.place_at = @place_at AND s.id <= @id)))))
  AND s.reclaim_at <= @now AND s.prompt_id = 0
  AND (s.affinity_until <= @now OR s.process_id = @process_id)
  AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.thread_id = s.thread_id AND c.drained = 0)
ORDER BY s.lane, s.priority DESC, s.place_at, s.id LIMIT 1;

-- Whether anything of an agent waits to be claimed, held back or not.
-- name: AnyWaiting :one
SELECT id FROM sessions WHERE agent_id = @agent_id AND lane >= '' AND status IN ('queued', 'stale') LIMIT 1;

-- The worker processes that sessions of an agent wait for.
-- name: AwaitedProcesses :many
SELECT DISTINCT process_id FROM sessions
WHERE agent_id = @agent_id AND status IN ('queued', 'stale') AND affinity_until > 0 AND affinity_until > @now LIMIT @n;

-- Sessions that wait with no gate of their own except one that time has lifted by now.
-- name: LiftedByTime :many
SELECT r.id FROM sessions r WHERE r.reclaim_at > 0 AND r.reclaim_at <= @now AND r.ended_at = 0 AND r.status IN ('queued', 'stale')
UNION ALL
SELECT f.id FROM sessions f WHERE f.affinity_until > 0 AND f.affinity_until <= @now AND f.ended_at = 0 AND f.status IN ('queued', 'stale')
LIMIT @n;

-- name: NextReclaim :one
SELECT reclaim_at FROM sessions WHERE reclaim_at > @now AND reclaim_at > 0 AND ended_at = 0 ORDER BY reclaim_at LIMIT 1;

-- name: NextAffinity :one
SELECT affinity_until FROM sessions WHERE affinity_until > @now AND affinity_until > 0 AND ended_at = 0 ORDER BY affinity_until LIMIT 1;

-- name: ClearLifted :execrows
UPDATE sessions SET
    reclaim_at = CASE WHEN reclaim_at <= @now THEN 0 ELSE reclaim_at END,
    affinity_until = CASE WHEN affinity_until <= @now THEN 0 ELSE affinity_until END
WHERE id = @id AND status IN ('queued', 'stale');

-- After a clock was set back: what is counted from the moment of queueing is counted from now.
-- name: ClampQueued :execrows
UPDATE sessions SET
    reclaim_at = CASE WHEN reclaim_at > queued_at THEN @now + (reclaim_at - queued_at) ELSE reclaim_at END,
    affinity_until = CASE WHEN affinity_until > queued_at THEN @now + (affinity_until - queued_at) ELSE affinity_until END,
    queued_at = @now,
    place_at = CASE WHEN place_at > @now THEN @now ELSE place_at END
WHERE status IN ('queued', 'stale') AND queued_at > @now;

-- name: AgentsWithQueueTimeout :many
SELECT * FROM agents WHERE queue_timeout > 0 AND deleted_at = 0 AND paused = 0;

-- name: OldestWaiting :many
SELECT id FROM sessions
WHERE agent_id = @agent_id AND status IN ('queued', 'stale') AND queued_at <= @before AND lane >= '' LIMIT @n;

-- name: FirstWaitingSince :one
SELECT CAST(COALESCE(MIN(queued_at), 0) AS INTEGER) AS queued_at FROM sessions
WHERE agent_id = @agent_id AND status IN ('queued', 'stale') AND lane >= '' AND queued_at > @since;

-- name: SetArchived :execrows
UPDATE sessions SET archived_at = @archived_at
WHERE id = @id AND archived_at = 0 AND status IN ('complete', 'error', 'cancelled');

-- The retry of a session, unless it is over; a retry is in the thread of what it retries.
-- name: OpenRetry :one
SELECT * FROM sessions
WHERE thread_id = @thread_id AND thread_id <> id AND retry_of = @retry_of AND ended_at = 0 ORDER BY id DESC LIMIT 1;

-- name: NewestOfThread :one
SELECT * FROM sessions WHERE thread_id = @thread_id AND thread_id <> id ORDER BY id DESC LIMIT 1;

-- Whether a status is rare: how many sessions have it, at most so many. What is common is found
-- among the newest sessions; complete is, so no index holds it.
-- name: CountOpenSessions :one
SELECT COUNT(*) AS n FROM (
    SELECT s.id FROM agents a CROSS JOIN sessions s
    WHERE s.agent_id = a.id AND a.workspace_id = @workspace_id AND (CAST(@agent_id AS INTEGER) = 0 OR a.id = CAST(@agent_id AS INTEGER))
      AND s.ended_at = 0 AND s.status = @status
    LIMIT @most
) x;

-- name: CountEndedSessions :one
SELECT COUNT(*) AS n FROM (
    SELECT s.id FROM agents a CROSS JOIN sessions s
    WHERE s.agent_id = a.id AND a.workspace_id = @workspace_id AND (CAST(@agent_id AS INTEGER) = 0 OR a.id = CAST(@agent_id AS INTEGER))
      AND s.ended_at > 0 AND s.status <> 'complete' AND s.status = @status
    LIMIT @most
) x;

-- name: WaitingIDsOfAgent :many
SELECT id FROM sessions
WHERE agent_id = @agent_id AND ended_at = 0 AND mode = @mode AND owner_user_id = @owner_user_id
  AND status IN ('pending', 'queued', 'stale')
ORDER BY priority DESC, place_at, id LIMIT @n;

-- name: ClearPrompt :execrows
UPDATE sessions SET prompt_id = 0 WHERE id = @id AND status = @status AND prompt_id > 0;

-- name: LiftOverlap :execrows
UPDATE sessions SET overlap_held = 0 WHERE id = @id AND status = 'pending' AND overlap_held = 1;

-- Sessions that are marked as running though no claim on them is live.
-- name: SessionsWithoutClaim :many
SELECT s.* FROM agents a CROSS JOIN sessions s
WHERE s.agent_id = a.id AND s.ended_at = 0 AND s.status IN ('active', 'awaiting_input')
  AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.id = s.claim_id AND c.closed_at = 0);
