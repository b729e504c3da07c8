package engine

// promises are the rules that one query each can check. They use only SQL on the rows. A query
// must return one text column: || binds closer than arithmetic, which therefore needs
// parentheses.
var promises = []promise{
	{rule: "a session has a live claim exactly while it runs", query: `
SELECT 'session ' || id || ' is ' || status || ' with live claim ' || claim_id FROM sessions
WHERE (status IN ('active', 'awaiting_input')) <> (claim_id <> 0)`},
	{rule: "the live claim of a session is a live row of its own", query: `
SELECT 'session ' || s.id || ' names claim ' || s.claim_id FROM sessions s LEFT JOIN claims c ON c.id = s.claim_id
WHERE s.claim_id <> 0 AND (c.id IS NULL OR c.session_id <> s.id OR c.closed_at <> 0 OR c.worker_id <> s.worker_id OR c.fence <> s.fence)`},
	{rule: "a live claim is the one its session names", query: `
SELECT 'claim ' || c.id || ' of session ' || c.session_id FROM claims c LEFT JOIN sessions s ON s.id = c.session_id
WHERE c.closed_at = 0 AND (s.id IS NULL OR s.claim_id <> c.id)`},
	{rule: "a claim belongs to its session's agent and thread", query: `
SELECT 'claim ' || c.id FROM claims c JOIN sessions s ON s.id = c.session_id
WHERE c.agent_id <> s.agent_id OR c.thread_id <> s.thread_id`},
	{rule: "a thread has one live or undrained claim at most", query: `
SELECT 'thread ' || thread_id || ' has ' || COUNT(*) FROM claims WHERE drained = 0 GROUP BY thread_id HAVING COUNT(*) > 1`},
	{rule: "fences grow by one with each claim, and by more after a restore alone", query: `
SELECT 'claim ' || id || ' has fence ' || fence || ' after ' || last FROM
  (SELECT id, fence, LAG(fence, 1, 0) OVER (PARTITION BY session_id ORDER BY id) AS last FROM claims)
WHERE fence <> last + 1 AND NOT (fence > last AND EXISTS (SELECT 1 FROM counters WHERE name = 'fence'))`},
	{rule: "a session's fence is that of its last claim", query: `
SELECT 'session ' || s.id || ' has fence ' || s.fence FROM sessions s
WHERE s.fence <> (SELECT COALESCE(MAX(c.fence), 0) FROM claims c WHERE c.session_id = s.id)`},
	{rule: "claim ids never repeat", query: `
SELECT 'a secret is shared by ' || COUNT(*) || ' claims, one of them ' || MIN(id) FROM claims GROUP BY secret HAVING COUNT(*) > 1`},
	{rule: "a claim is closed as a whole", query: `
SELECT 'claim ' || id FROM claims
WHERE (closed_at = 0 AND (drained = 1 OR closed_by <> ''))
   OR (closed_at <> 0 AND (closed_by = '' OR (drained = 0 AND drain_by = 0)))`},
	{rule: "a live claim is held by a worker that is there", query: `
SELECT 'claim ' || c.id || ' of worker ' || c.worker_id FROM claims c LEFT JOIN workers w ON w.id = c.worker_id
WHERE c.closed_at = 0 AND (w.id IS NULL OR w.deleted_at <> 0 OR w.state = 'offline' OR w.instance_id <> c.instance_id OR w.agent_id <> c.agent_id)`},
	{rule: "an agent's counter is the number of its live and undrained claims", query: `
SELECT 'agent ' || a.id || ' counts ' || a.running FROM agents a
WHERE a.running <> (SELECT COUNT(*) FROM claims c WHERE c.agent_id = a.id AND c.drained = 0)`},
	{rule: "no lease is longer than the longest", timed: true, query: `
SELECT 'claim ' || c.id || ' runs ' || ((c.expires_at - MAX(?1, p.value)) / 1000000) || ' s more' FROM claims c JOIN counters p ON p.name = 'alive'
WHERE c.closed_at = 0 AND c.expires_at - MAX(?1, p.value) > ?2 + 2000000`},
	{rule: "a closed claim is drained before its worker would be offline", timed: true, query: `
SELECT 'claim ' || c.id || ' drains in ' || ((c.drain_by - MAX(?1, p.value)) / 1000000) || ' s' FROM claims c JOIN counters p ON p.name = 'alive'
WHERE c.drained = 0 AND c.closed_at > 0 AND c.drain_by - MAX(?1, p.value) > MAX(?3, c.offline_after * 1000000) + 2000000`},

	{rule: "a lease on a task is whole", query: `
SELECT 'task ' || id FROM tasks
WHERE (lease_user_id = 0 AND (lease_session_id <> 0 OR lease_expires_at <> 0 OR leased_at <> 0))
   OR (lease_user_id <> 0 AND (lease_session_id <> 0) = (lease_expires_at <> 0))`},
	{rule: "a session that holds a task is about it and hasn't ended", query: `
SELECT 'task ' || t.id || ' is held by session ' || t.lease_session_id FROM tasks t LEFT JOIN sessions s ON s.id = t.lease_session_id
WHERE t.lease_session_id <> 0 AND (s.id IS NULL OR s.task_id <> t.id OR s.ended_at <> 0)`},
	{rule: "a done task is nobody's, and done since some time", query: `
SELECT 'task ' || id || ' is ' || state FROM tasks
WHERE (state = 'done') <> (done_at <> 0) OR (state = 'done' AND (lease_user_id <> 0 OR assignee_user_id <> 0 OR assignee_agent_id <> 0))`},
	{rule: "a task is assigned to one at most", query: `
SELECT 'task ' || id FROM tasks WHERE assignee_user_id <> 0 AND assignee_agent_id <> 0`},
	{rule: "the state that a rule may change is the task's", query: `
SELECT 'task ' || id || ' is ' || state FROM tasks WHERE rule_state NOT IN ('', state)`},
	{rule: "a task counts its comments and the open tasks before and behind it", query: `
SELECT 'task ' || t.id FROM tasks t
WHERE t.comments <> (SELECT COUNT(*) FROM task_comments c WHERE c.task_id = t.id)
   OR t.open_blockers <> (SELECT COUNT(*) FROM task_blockers b JOIN tasks o ON o.id = b.blocker_id WHERE b.task_id = t.id AND o.state <> 'done')
   OR t.open_blocked <> (SELECT COUNT(*) FROM task_blockers b JOIN tasks o ON o.id = b.task_id WHERE b.blocker_id = t.id AND o.state <> 'done')`},
	{rule: "a session has ended exactly when its status says so", query: `
SELECT 'session ' || id || ' is ' || status FROM sessions
WHERE (status IN ('complete', 'error', 'cancelled')) <> (ended_at <> 0) OR (archived_at <> 0 AND ended_at = 0)`},
	{rule: "a session awaits input on an open prompt", query: `
SELECT 'session ' || id || ' is ' || status || ' with prompt ' || prompt_id FROM sessions
WHERE (status = 'awaiting_input' AND prompt_id = 0) OR (prompt_id <> 0 AND status NOT IN ('awaiting_input', 'stale', 'pending'))`},
	{rule: "an open prompt is its session's", query: `
SELECT 'prompt ' || p.id || ' of session ' || p.session_id FROM prompts p JOIN sessions s ON s.id = p.session_id
WHERE (p.closed_at = 0) <> (s.prompt_id = p.id)
UNION ALL
SELECT 'session ' || s.id || ' names prompt ' || s.prompt_id FROM sessions s
WHERE s.prompt_id <> 0 AND NOT EXISTS (SELECT 1 FROM prompts p WHERE p.id = s.prompt_id AND p.session_id = s.id)`},
	{rule: "a prompt is closed as a whole", query: `
SELECT 'prompt ' || id FROM prompts WHERE (closed_at = 0) <> (resolution = '') OR (closed_at = 0) <> (closed_by = '')`},
	{rule: "a pending session has a gate that something will lift", query: `
SELECT 'session ' || s.id FROM sessions s JOIN agents a ON a.id = s.agent_id
WHERE s.status = 'pending' AND s.admit_at = 0
  AND NOT (s.prompt_id <> 0)
  AND NOT EXISTS (SELECT 1 FROM sessions p WHERE p.id = s.after_id AND p.status NOT IN ('complete', 'error', 'cancelled') AND p.followers > 0)
  AND NOT (s.overlap_held <> 0 AND CASE a.overlap
        WHEN 'replace' THEN EXISTS (SELECT 1 FROM claims c JOIN sessions o ON o.id = c.session_id
                                    WHERE c.agent_id = a.id AND c.drained = 0 AND o.triggered_by = 'scheduler' AND o.id <> s.id)
        ELSE EXISTS (SELECT 1 FROM claims c WHERE c.agent_id = a.id AND c.drained = 0) END)`},
	{rule: "only a pending session waits for the timer", query: `
SELECT 'session ' || id || ' is ' || status FROM sessions WHERE status <> 'pending' AND (admit_at <> 0 OR overlap_held <> 0)`},
	{rule: "a session that hasn't ended has an agent", query: `
SELECT 'session ' || s.id || ' is ' || s.status FROM sessions s LEFT JOIN agents a ON a.id = s.agent_id
WHERE s.ended_at = 0 AND (a.id IS NULL OR a.deleted_at <> 0)`},
	{rule: "a local session has an owner and a cloud session none", query: `
SELECT 'session ' || id || ' is ' || mode FROM sessions WHERE (mode = 'local') <> (owner_user_id <> 0)`},
	{rule: "an open local session has an owner who may run it", query: `
SELECT 'session ' || s.id || ' of user ' || s.owner_user_id FROM sessions s
WHERE s.ended_at = 0 AND s.mode = 'local'
  AND NOT EXISTS (SELECT 1 FROM members m WHERE m.workspace_id = s.workspace_id AND m.user_id = s.owner_user_id AND m.role <> 'viewer')`},
	{rule: "a local agent that fires runs as somebody who may", query: `
SELECT 'agent ' || a.id || ' runs as user ' || a.runs_as_user_id FROM agents a
WHERE a.next_slot_at <> 0 AND a.mode = 'local'
  AND NOT EXISTS (SELECT 1 FROM members m WHERE m.workspace_id = a.workspace_id AND m.user_id = a.runs_as_user_id AND m.role <> 'viewer')`},
	{rule: "a signal is closed as a whole", query: `
SELECT 'signal ' || id FROM signals WHERE (closed_at = 0) <> (resolution = '')`},
	{rule: "a pending signal is its worker's newest and says what is desired of it", query: `
SELECT 'signal ' || g.id || ' (' || g.kind || ') of worker ' || g.worker_id FROM signals g LEFT JOIN workers w ON w.id = g.worker_id
WHERE g.closed_at = 0 AND (w.id IS NULL OR w.deleted_at <> 0
   OR EXISTS (SELECT 1 FROM signals n WHERE n.worker_id = g.worker_id AND n.id > g.id)
   OR w.desired <> CASE g.kind WHEN 'stop' THEN 'stopped' WHEN 'pause' THEN 'paused' WHEN 'resume' THEN 'running' ELSE w.desired END)`},
	{rule: "a worker had the right to what it claimed", query: `
SELECT 'claim ' || c.id FROM claims c JOIN sessions s ON s.id = c.session_id JOIN workers w ON w.id = c.worker_id
WHERE c.closed_at = 0 AND s.mode = 'local' AND w.owner_user_id <> s.owner_user_id`},

	{rule: "the ranges of a ledger don't overlap", query: `
SELECT 'ledger row ' || id || ' (' || verdict || ') of agent ' || agent_id || ' begins at ' || first_slot || ', the one before ends at ' || before FROM
  (SELECT id, agent_id, verdict, first_slot, LAG(last_slot) OVER (PARTITION BY agent_id ORDER BY first_slot, last_slot) AS before FROM ledger)
WHERE before >= first_slot`},
	{rule: "a ledger row counts its slots", query: `
SELECT 'ledger row ' || id || ' counts ' || slots FROM ledger
WHERE slots < 1 OR (slots = 1) <> (first_slot = last_slot) OR (last_slot - first_slot) / 60000000 + 1 < slots
   OR first_slot % 1000000 <> 0 OR last_slot % 1000000 <> 0`},
	{rule: "a slot that fired has the session of that slot", query: `
SELECT 'ledger row ' || l.id FROM ledger l LEFT JOIN sessions s ON s.id = l.session_id
WHERE l.verdict = 'fired' AND (s.id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM removed_spans r WHERE r.first_id <= l.session_id AND r.last_id >= l.session_id)) AND (s.id IS NULL OR s.agent_id <> l.agent_id OR s.triggered_by <> 'scheduler' OR s.triggered_at <> l.last_slot)`},
	{rule: "a scheduled session has one slot that fired", query: `
SELECT 'session ' || s.id FROM sessions s
WHERE s.triggered_by = 'scheduler'
  AND (SELECT COUNT(*) FROM ledger l WHERE l.agent_id = s.agent_id AND l.last_slot = s.triggered_at AND l.verdict = 'fired' AND l.session_id = s.id) <> 1`},
	{rule: "only the scheduler triggers at a whole second", query: `
SELECT 'session ' || id FROM sessions WHERE (triggered_by = 'scheduler') <> (triggered_at % 1000000 = 0)`},
	{rule: "an agent has a next slot only while it can fire", query: `
SELECT 'agent ' || id FROM agents
WHERE (next_slot_at <> 0 AND (paused = 1 OR deleted_at <> 0 OR schedule = '' OR schedule_error <> '')) OR anchor_at % 1000000 <> 0
   OR (next_slot_at <> 0 AND next_slot_at <= anchor_at)`},

	{rule: "event numbers have no gap", query: `
SELECT n || ' events after number ' || forgotten || ', the counter says ' || counter FROM
  (SELECT (SELECT COUNT(*) FROM events e WHERE e.seq > f.value) AS n, f.value AS forgotten, c.value AS counter FROM counters f, counters c
   WHERE f.name = 'forgotten' AND c.name = 'event')
WHERE n <> counter - forgotten OR counter < COALESCE((SELECT MAX(seq) FROM events), 0)`},
	{rule: "what was removed is not there", query: `
SELECT 'session ' || s.id FROM removed_spans r JOIN sessions s ON s.workspace_id = r.workspace_id AND s.id >= r.first_id AND s.id <= r.last_id`},
	{rule: "an event's session exists", query: `
SELECT 'event ' || e.seq FROM events e WHERE e.session_id > 0 AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = e.session_id)`},
	{rule: "each claim left one event", query: `
SELECT 'session ' || s.id FROM sessions s
WHERE s.events_removed_at = 0 AND (SELECT COUNT(*) FROM claims c WHERE c.session_id = s.id) <> (SELECT COUNT(*) FROM events e WHERE e.session_id = s.id AND e.session_id > 0 AND e.type = 'session_claimed')`},
	{rule: "an Idempotency-Key has the session or the task that it made", query: `
SELECT 'key of user ' || user_id FROM idempotency_keys k
WHERE (k.session_id <> 0) = (k.task_id <> 0)
   OR (k.session_id <> 0 AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = k.session_id) AND NOT EXISTS (SELECT 1 FROM removed_spans r WHERE r.first_id <= k.session_id AND r.last_id >= k.session_id))
   OR (k.task_id <> 0 AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = k.task_id))`},
	{rule: "ids come from the counter", query: `
SELECT 'an id is ' || MAX(i) FROM (SELECT MAX(id) AS i FROM sessions UNION ALL SELECT MAX(id) FROM claims UNION ALL SELECT MAX(id) FROM workers
  UNION ALL SELECT MAX(id) FROM agents UNION ALL SELECT MAX(id) FROM ledger
  UNION ALL SELECT MAX(id) FROM signals)
HAVING MAX(i) > (SELECT value FROM counters WHERE name = 'id')`},
	{rule: "no row refers to a missing one", query: `
SELECT "table" || ' row ' || COALESCE(rowid, '?') || ' refers to ' || parent FROM pragma_foreign_key_check`},
}
