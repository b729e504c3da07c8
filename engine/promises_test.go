package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func TestCheck_AQuietLifeBreaksNoPromise(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("*/5 * * * *"))
	k := w.Worker(a)
	s := w.New(a)
	c := k.Claim(s.ID)
	w.Check()
	must[api.Finished](t)(k.Complete(c, "done"))
	w.Advance(11 * time.Minute)
	w.Want(s.ID, api.Complete)
	if n := len(w.All(a.ID)); n != 2 {
		t.Fatalf("%d sessions", n)
	}
}

// fullHouse is a file with a bit of everything in it.
func fullHouse(t *testing.T) (image []byte, at time.Time) {
	t.Helper()
	ctx := context.Background()
	w := enginetest.Open(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow), func(in *api.AgentInput) { in.MaxConcurrent = 10 }))
	k := w.Worker(a)
	other := w.Worker(a)
	w.Advance(3 * time.Minute)
	w.Jump(5 * time.Minute)
	w.Advance(0)
	k.Beat()
	var ids []api.SessionID
	for range 9 {
		ids = append(ids, w.New(a).ID)
	}
	done := k.Claim(ids[0])
	must[api.Finished](t)(k.Complete(done, ""))
	failed := k.Claim(ids[1])
	must[api.Finished](t)(k.Release(failed))
	must[api.Finished](t)(k.Fail(k.Claim(ids[1]), "X"))
	must[api.Session](t)(k.Ask(k.Claim(ids[2]), "May I?"))
	k.Claim(ids[3]) // continues
	must[api.Finished](t)(other.Release(other.Claim(ids[4])))
	k.Claim(ids[5])
	must[api.Changed](t)(w.CancelSession(ctx, w.Owner, ids[5], api.CancelInput{})) // undrained
	w.New(a, notBefore(w.Now().Add(time.Hour)))
	w.New(a, func(in *api.SessionInput) { in.After = ids[6] })
	must[api.Retried](t)(w.RetrySession(ctx, w.Owner, ids[0]))
	_, _, err := w.CreateSession(ctx, w.Owner, a.Slug, api.SessionInput{Prompt: new("keyed")}, keyed("k"))
	if err != nil {
		t.Fatal(err)
	}
	must[api.SignalAnswer](t)(w.SignalWorker(ctx, w.Owner, other.ID, api.SignalPause))
	must[api.SignalAnswer](t)(w.SignalWorker(ctx, w.Owner, other.ID, api.SignalStop))
	w.Task("held by hand", func(in *api.TaskInput) { in.State = api.TaskInProgress })
	w.Task("held by a session", func(in *api.TaskInput) {
		in.BlockedBy = []string{w.Task("done", func(in *api.TaskInput) { in.State = api.TaskDone }).Key}
	})
	w.Dispatch("T-3", api.DispatchInput{Agent: a.Slug})
	must[api.TaskComment](t)(w.CommentTask(ctx, w.Owner, "T-3", api.TaskCommentInput{Text: "Go on."}))
	w.Check()
	return w.Image(), w.Clock.Now()
}

// Every rule of the check has been seen to find what breaks it.
func TestCheck_EveryRuleFindsWhatBreaksIt(t *testing.T) {
	image, at := fullHouse(t)
	const (
		running = "(SELECT id FROM sessions WHERE status = 'active' LIMIT 1)"
		waiting = "(SELECT id FROM sessions WHERE status = 'queued' AND fence = 0 LIMIT 1)"
		live    = "(SELECT id FROM claims WHERE closed_at = 0 LIMIT 1)"
		closed  = "(SELECT id FROM claims WHERE closed_at <> 0 AND drained = 1 LIMIT 1)"
		twice   = "(SELECT id FROM claims WHERE fence = 2 LIMIT 1)"
		asking  = "(SELECT id FROM sessions WHERE status = 'awaiting_input' LIMIT 1)"
		later   = "(SELECT id FROM sessions WHERE status = 'pending' AND not_before > 0)"
		after   = "(SELECT id FROM sessions WHERE status = 'pending' AND after_id > 0)"
		fired   = "(SELECT MAX(id) FROM ledger)"
	)
	untried := engine.Promises()
	for _, c := range []struct{ rule, damage string }{
		{"a session has a live claim exactly while it runs", "UPDATE sessions SET status = 'queued' WHERE id = " + running},
		{"the live claim of a session is a live row of its own", "UPDATE sessions SET claim_id = claim_id + 1 WHERE id = " + running},
		{"a live claim is the one its session names", "UPDATE sessions SET claim_id = 0 WHERE id = " + running},
		{"a claim belongs to its session's agent and thread", "UPDATE claims SET thread_id = thread_id + 1 WHERE id = " + live},
		{"a thread has one live or undrained claim at most", "UPDATE claims SET drained = 0, drain_by = 1 WHERE id IN (SELECT id FROM claims WHERE session_id = (SELECT session_id FROM claims WHERE fence = 2))"},
		{"fences grow by one with each claim, and by more after a restore alone", "UPDATE claims SET fence = 1 WHERE id = " + twice},
		{"fences grow by one with each claim, and by more after a restore alone", "UPDATE claims SET fence = 7 WHERE id = " + twice},
		{"fences grow by one with each claim, and by more after a restore alone", "INSERT INTO counters VALUES ('fence', 1); UPDATE claims SET fence = 1 WHERE id = " + twice},
		{"a session's fence is that of its last claim", "UPDATE sessions SET fence = fence + 1 WHERE id = " + waiting},
		{"claim ids never repeat", "UPDATE claims SET secret = (SELECT secret FROM claims WHERE id = " + live + ") WHERE id = " + closed},
		{"a claim is closed as a whole", "UPDATE claims SET closed_by = '' WHERE id = " + closed},
		{"a live claim is held by a worker that is there", "UPDATE workers SET deleted_at = 1 WHERE id = (SELECT worker_id FROM claims WHERE closed_at = 0 LIMIT 1)"},
		{"an agent's counter is the number of its live and undrained claims", "UPDATE agents SET running = running + 1"},
		{"no lease is longer than the longest", "UPDATE claims SET expires_at = expires_at + 14400000000 WHERE id = " + live},
		{"a closed claim is drained before its worker would be offline", "UPDATE claims SET drain_by = drain_by + 7200000000 WHERE drained = 0 AND closed_at > 0"},
		{"a lease on a task is whole", "UPDATE tasks SET lease_expires_at = 0 WHERE lease_expires_at > 0"},
		{"a lease on a task is whole", "UPDATE tasks SET lease_user_id = 0 WHERE lease_session_id > 0"},
		{"a session that holds a task is about it and hasn't ended", "UPDATE sessions SET task_id = 0 WHERE task_id > 0"},
		{"a done task is nobody's, and done since some time", "UPDATE tasks SET assignee_user_id = created_by WHERE state = 'done'"},
		{"a task is assigned to one at most", "UPDATE tasks SET assignee_user_id = 1, assignee_agent_id = 1 WHERE state <> 'done'"},
		{"the state that a rule may change is the task's", "UPDATE tasks SET rule_state = 'review' WHERE state = 'todo'"},
		{"a task counts its comments and the open tasks before and behind it", "UPDATE tasks SET comments = comments + 1 WHERE number = 3"},
		{"a task counts its comments and the open tasks before and behind it", "UPDATE tasks SET open_blockers = 1 WHERE number = 3"},
		{"no tasks wait for each other in a circle", "INSERT INTO task_blockers SELECT t.blocker_id, t.task_id FROM task_blockers t"},
		{"a session has ended exactly when its status says so", "UPDATE sessions SET ended_at = 0 WHERE id = (SELECT id FROM sessions WHERE status = 'complete')"},
		{"a session awaits input on an open prompt", "UPDATE sessions SET prompt_id = 0 WHERE id = " + asking},
		{"an open prompt is its session's", "UPDATE prompts SET closed_at = 1, closed_by = 'x', resolution = 'answered'"},
		{"a prompt is closed as a whole", "UPDATE prompts SET closed_by = 'x'"},
		{"a pending session has a gate that something will lift", "UPDATE sessions SET admit_at = 0 WHERE id = " + later},
		{"a pending session has a gate that something will lift", "UPDATE sessions SET followers = 0 WHERE id = (SELECT after_id FROM sessions WHERE id = " + after + ")"},
		{"only a pending session waits for the timer", "UPDATE sessions SET admit_at = 1 WHERE id = " + waiting},
		{"a session that hasn't ended has an agent", "UPDATE agents SET deleted_at = 1"},
		{"a local session has an owner and a cloud session none", "UPDATE sessions SET owner_user_id = 0 WHERE id = " + waiting},
		{"an open local session has an owner who may run it", "UPDATE members SET role = 'viewer'"},
		{"a local agent that fires runs as somebody who may", "DELETE FROM members"},
		{"a worker had the right to what it claimed", "UPDATE workers SET owner_user_id = owner_user_id + 1 WHERE id = (SELECT worker_id FROM claims WHERE closed_at = 0 LIMIT 1)"},
		{"a signal is closed as a whole", "UPDATE signals SET closed_at = 1 WHERE closed_at = 0"},
		{"a pending signal is its worker's newest and says what is desired of it", "UPDATE workers SET desired = 'running' WHERE desired = 'stopped'"},
		{"a pending signal is its worker's newest and says what is desired of it", "UPDATE signals SET worker_id = (SELECT MIN(id) FROM workers), kind = 'restart' WHERE kind = 'stop'; UPDATE workers SET deleted_at = 1 WHERE id = (SELECT MIN(id) FROM workers)"},
		{"the ranges of a ledger don't overlap", "UPDATE ledger SET first_slot = first_slot - 600000000, slots = slots + 10 WHERE id = " + fired},
		{"a ledger row counts its slots", "UPDATE ledger SET slots = slots + 1 WHERE id = " + fired},
		{"a slot that fired has the session of that slot", "UPDATE ledger SET session_id = " + waiting + " WHERE id = " + fired},
		{"a scheduled session has one slot that fired", "DELETE FROM ledger WHERE id = " + fired},
		{"only the scheduler triggers at a whole second", "UPDATE sessions SET triggered_at = 1000000 WHERE id = (SELECT id FROM sessions WHERE triggered_by = 'user' LIMIT 1)"},
		{"an agent has a next slot only while it can fire", "UPDATE agents SET paused = 1"},
		{"event numbers have no gap", "DELETE FROM events WHERE seq = 3"},
		{"what was removed is not there", "INSERT INTO removed_spans SELECT workspace_id, 0, id, id, 1 FROM sessions LIMIT 1"},
		{"an event's session exists", "UPDATE events SET session_id = 12345 WHERE seq = (SELECT MAX(seq) FROM events WHERE session_id > 0)"},
		{"each claim left one event", "UPDATE events SET type = 'session_queued' WHERE seq = (SELECT MAX(seq) FROM events WHERE type = 'session_claimed')"},
		{"an Idempotency-Key has the session or the task that it made", "UPDATE idempotency_keys SET session_id = 12345"},
		{"an Idempotency-Key has the session or the task that it made", "UPDATE idempotency_keys SET session_id = 0"},
		{"an Idempotency-Key has the session or the task that it made", "UPDATE idempotency_keys SET session_id = 0, task_id = 12345"},
		{"ids come from the counter", "UPDATE counters SET value = 7 WHERE name = 'id'"},
		{"no row refers to a missing one", "PRAGMA foreign_keys = OFF; UPDATE prompts SET session_id = 12345"},
		{"the event log tells what the rows say", "UPDATE sessions SET status = 'stale' WHERE id = " + waiting},
		{"the event log tells what the rows say", "UPDATE events SET data = REPLACE(data, 'queued', 'stale') WHERE seq = (SELECT MIN(seq) FROM events WHERE type = 'session_claimed')"},
		{"the event log tells what the rows say", "UPDATE events SET type = 'activity', data = '' WHERE seq = (SELECT MIN(seq) FROM events WHERE type = 'session_created')"},
		{"the event log tells what the rows say", "UPDATE events SET data = REPLACE(data, '\"fence\":2', '\"fence\":3') WHERE type = 'session_claimed'"},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			w := enginetest.Open(t, enginetest.From(image, at))
			damage(t, w, c.damage)
			found, err := w.Engine.Check(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			var rules []string
			for _, v := range found {
				rules = append(rules, v.Rule)
			}
			if !slices.Contains(rules, c.rule) {
				t.Fatalf("%s\nwas found to break %v", c.damage, found)
			}
		})
		untried = slices.DeleteFunc(untried, func(rule string) bool { return rule == c.rule })
	}
	if len(untried) > 0 {
		t.Errorf("no damage tries the rules %q", untried)
	}
}
