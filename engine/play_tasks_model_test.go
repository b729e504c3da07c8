package engine_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"stint/api"
	"stint/engine"
)

// seenTask is a task as far as verbs, rules and clocks change it: what its row says, or what it
// must say next. The methods are contract 7 written down once more: none of the engine's code
// takes part.
type seenTask struct {
	ID, Number    int64
	Priority      api.TaskPriority
	State, Rule   api.TaskState // Rule: what the rules may change, "" once a person has decided
	User, Agent   int64         // the assignee
	Holder        int64
	Session, Last int64 // that the lease lives with, and the latest that it lived with
	Seconds       int64
	Expires       int64 // microseconds
	Version       int64
	Before        []int64 // the tasks that are to be done before it
}

const (
	taskLease    = 7200 // seconds, as the configuration has them
	maxTaskLease = 86400
	minTaskLease = 60
)

// tasksNow reads all tasks.
func (p *play) tasksNow() map[int64]*seenTask {
	p.Helper()
	out := map[int64]*seenTask{}
	for _, line := range p.w.Tell(`
SELECT json_object('ID', t.id, 'Number', number, 'Priority', priority, 'State', state, 'Rule', rule_state, 'User', assignee_user_id, 'Agent', assignee_agent_id,
  'Holder', lease_user_id, 'Session', lease_session_id, 'Last', last_session_id, 'Seconds', lease_seconds, 'Expires', lease_expires_at, 'Version', version,
  'Before', json((SELECT json_group_array(blocker_id) FROM (SELECT blocker_id FROM task_blockers WHERE task_id = t.id ORDER BY blocker_id)))) FROM tasks t`) {
		t := seenTask{}
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			p.broken("read a task: %v", err)
		}
		out[t.ID] = &t
	}
	return out
}

func (t *seenTask) key() string { return api.TaskKey(t.Number) }

func (t *seenTask) live(now int64) bool { return t.Holder != 0 && (t.Session != 0 || t.Expires > now) }

func (t *seenTask) free() { t.Holder, t.Session, t.Seconds, t.Expires = 0, 0, 0, 0 }

// lapse ends what is over. Whose the task is stays.
func (t *seenTask) lapse(now int64) {
	if !t.live(now) {
		t.free()
	}
}

// against: held by somebody else, or by a session.
func (t *seenTask) against(user, now int64) bool {
	return t.live(now) && (t.Holder != user || t.Session != 0)
}

// take is a claim by hand. It returns the refusal, "" when it is done.
func (t *seenTask) take(user, seconds, now int64) api.Code {
	until := now + seconds*1e6
	switch {
	case t.State == api.TaskDone:
		return api.CodeTaskDone
	case t.live(now) && t.Holder != user:
		return api.CodeAlreadyClaimed
	case t.live(now):
		if t.Session == 0 && until > t.Expires {
			t.Expires, t.Seconds = until, seconds
		}
	default:
		t.free()
		t.Holder, t.Expires, t.Seconds, t.Last = user, until, seconds, 0
	}
	t.User, t.Agent = user, 0
	return ""
}

func (t *seenTask) claim(c engine.Caller, asked *int64, now int64) api.Code {
	seconds := int64(taskLease)
	if asked != nil {
		seconds = min(*asked, maxTaskLease)
	}
	if c.Role == api.Viewer {
		return api.CodeForbidden
	}
	if seconds < minTaskLease {
		return api.CodeInvalidLease
	}
	renewed := t.live(now) && t.Holder == int64(c.UserID)
	refused := t.take(int64(c.UserID), seconds, now)
	if refused == "" && t.State == api.TaskTodo && !renewed {
		t.State, t.Rule = api.TaskInProgress, api.TaskInProgress
	}
	return refused
}

// mine refuses who isn't the holder.
func (t *seenTask) mine(c engine.Caller, now int64) api.Code {
	switch {
	case c.Role == api.Viewer:
		return api.CodeForbidden
	case !t.live(now) || t.Holder != int64(c.UserID):
		return api.CodeClaimNotActive
	}
	return ""
}

func (t *seenTask) renew(c engine.Caller, now int64) api.Code {
	refused := t.mine(c, now)
	if refused == "" && t.Session == 0 {
		t.Expires = max(t.Expires, now+t.Seconds*1e6)
	}
	return refused
}

func (t *seenTask) extend(c engine.Caller, add, now int64) api.Code {
	if add < 1 {
		return api.CodeInvalidLease
	}
	refused := t.mine(c, now)
	if refused == "" && t.Session == 0 {
		most := now + maxTaskLease*1e6
		t.Expires = max(t.Expires, min(most, t.Expires+min(add, maxTaskLease)*1e6))
	}
	return refused
}

func (t *seenTask) release(c engine.Caller, now int64) api.Code {
	switch {
	case c.Role == api.Viewer:
		return api.CodeForbidden
	case t.against(int64(c.UserID), now):
		return api.CodeNotClaimHolder
	}
	t.lapse(now)
	own := t.User == int64(c.UserID)
	if t.Holder == 0 && !own {
		return ""
	}
	t.free()
	if own {
		t.User, t.Agent = 0, 0
	}
	t.unclaim()
	return ""
}

// unclaim undoes what a claim did to the state, if nobody has set one since.
func (t *seenTask) unclaim() {
	if t.Rule == api.TaskInProgress {
		t.State, t.Rule = api.TaskTodo, api.TaskTodo
	}
}

// set is a person's change of the state, "" for none.
func (t *seenTask) set(c engine.Caller, state api.TaskState, now int64) api.Code {
	if state != "" {
		t.State, t.Rule = state, ""
	}
	switch {
	case t.State == api.TaskDone:
		if t.live(now) && t.Holder != int64(c.UserID) && !c.Role.AtLeast(api.Admin) {
			return api.CodeAlreadyClaimed
		}
		t.free()
		t.User, t.Agent = 0, 0
	case state == api.TaskInProgress:
		return t.take(int64(c.UserID), taskLease, now)
	}
	return ""
}

func (t *seenTask) bind(session api.SessionID, holder int64) {
	t.free()
	t.Holder, t.Session, t.Last, t.Rule = holder, int64(session), int64(session), t.State
}

// gone takes a task from a user or an agent that may not work on it any more.
func (t *seenTask) gone(user, agent int64) {
	held, own := user != 0 && t.Holder == user, t.User == user && t.Agent == agent
	if t.State == api.TaskDone || !held && !own {
		return
	}
	bound := t.Session != 0
	if held {
		t.free()
	}
	if own {
		t.User, t.Agent = 0, 0
	}
	if t.Holder == 0 && !bound {
		t.unclaim()
	}
}

// seenEvent is what happened to a session.
type seenEvent struct {
	Seq, Session int64
	Type         string
	Updates      string // of the session's agent
	Left         string // of the worker that claimed it last; "-" when none did
	Data         struct {
		From, To api.Status
		Outcome  string
	}
}

// rule is the state that a task gets from what happened to its session, "" for none. asks: the
// session's question still waits for a person.
func (ev *seenEvent) rule(asks bool) api.TaskState {
	word, state := "", api.TaskState("")
	switch ev.Data.To {
	case api.Active:
		word, state = "claimed", api.TaskInProgress
	case api.AwaitingInput:
		word, state = "awaiting_input", api.TaskBlocked
	case api.Failed:
		word, state = "failed", api.TaskBlocked
	case api.Complete:
		if word, state = "completed", api.TaskReview; ev.Data.Outcome == api.OutcomeStopped {
			word, state = "released", api.TaskTodo
		}
	case api.Cancelled:
		word, state = "released", api.TaskTodo
	case api.Queued, api.Pending, api.Stale:
		if ev.Data.From.Running() && !asks {
			word, state = "released", api.TaskTodo
		}
	}
	lets := slices.Contains(strings.Split(ev.Updates, ","), word)
	if ev.Data.From.Running() || ev.Data.To.Running() {
		lets = lets && slices.Contains(strings.Split(ev.Left, ","), word)
	}
	if !lets {
		return ""
	}
	return state
}

// follow applies what happened to sessions to the tasks that they hold.
func (p *play) follow() {
	p.Helper()
	for _, line := range p.w.Tell(`
SELECT json_object('Seq', e.seq, 'Session', e.session_id, 'Type', e.type, 'Data', json(CASE WHEN e.data = '' THEN '{}' ELSE e.data END), 'Updates', a.task_updates,
  'Left', COALESCE((SELECT w.task_updates FROM claims c JOIN workers w ON w.id = c.worker_id WHERE c.session_id = s.id ORDER BY c.fence DESC LIMIT 1), '-'))
FROM events e JOIN sessions s ON s.id = e.session_id JOIN agents a ON a.id = s.agent_id WHERE e.seq > ?1 AND e.session_id > 0 ORDER BY e.seq`, p.event) {
		ev := seenEvent{}
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			p.broken("read an event: %v", err)
		}
		p.event = ev.Seq
		switch {
		case ev.Type == api.EventPromptClosed:
			p.asking[ev.Session] = false
		case ev.Data.To == api.AwaitingInput:
			p.asking[ev.Session] = true
		}
		for _, t := range p.tasks {
			if t.Session != ev.Session || ev.Data.To == "" {
				continue
			}
			if state := ev.rule(p.asking[ev.Session]); state != "" && t.Rule != "" && t.State != api.TaskDone {
				t.State, t.Rule = state, state
			}
			if ev.Data.To.Terminal() {
				t.free()
			}
		}
	}
}

// expect begins a step: the tasks are as they are, and the verbs say what becomes of them.
func (p *play) expect() {
	p.Helper()
	if p.people == nil {
		return
	}
	p.tasks, p.agentGone, p.clockSet = p.tasksNow(), 0, false
}

// compare ends a step: the tasks must have become what the verb, the sessions that moved and
// the clock make of them, and nothing else (contract 7).
func (p *play) compare() {
	p.Helper()
	if p.people == nil {
		return
	}
	p.follow()
	now := p.now()
	got := p.tasksNow()
	if len(got) != len(p.tasks) {
		p.broken("there are %d tasks, want %d", len(got), len(p.tasks))
	}
	for id, want := range p.tasks {
		is := got[id]
		if is == nil {
			p.broken("task %s is gone", want.key())
		}
		if p.agentGone != 0 {
			want.gone(0, int64(p.agentGone))
		}
		if p.clockSet && is.Holder != 0 && is.Holder == want.Holder && is.Session == 0 && is.Expires <= max(want.Expires, now+maxTaskLease*1e6) {
			want.Expires = is.Expires // after an outage there is grace, and a clock that is set back moves it along
		}
		want.lapse(now)
		seen := *want
		seen.Version = is.Version
		if !reflect.DeepEqual(*is, seen) {
			p.broken("task %s is\n%+v, want\n%+v", want.key(), *is, *want)
		}
		if is.Version < want.Version {
			p.broken("task %s went from version %d to %d", want.key(), want.Version, is.Version)
		}
	}
	for _, c := range p.people {
		p.checkNextTasks(c)
	}
}

func (p *play) now() int64 { return p.w.Clock.Now().UnixMicro() }

// leads reports whether a task is to be done, directly or not, before another.
func (p *play) leads(first, then int64) bool {
	if first == then {
		return true
	}
	return slices.ContainsFunc(p.tasks[then].Before, func(id int64) bool { return p.leads(first, id) })
}

// waitsForOne reports whether a task waits for one that isn't done.
func (p *play) waitsForOne(t *seenTask) bool {
	return slices.ContainsFunc(t.Before, func(id int64) bool { return p.tasks[id].State != api.TaskDone })
}

// carried is a retry: the new session has the task's lease if the one before, or one of its
// conversation, was the last to have it, and nobody else has it.
func (p *play) carried(from, to api.Session) {
	p.Helper()
	by := int64(p.w.Owner.UserID)
	if p.people == nil || to.Task == nil {
		return
	}
	t := p.tasks[int64(to.Task.ID)]
	if t.State == api.TaskDone || t.Last == 0 || t.against(by, p.now()) {
		return
	}
	if t.Last != int64(from.ID) && p.w.Get(api.SessionID(t.Last)).ThreadID != from.ThreadID {
		return
	}
	decided := t.Rule == ""
	if t.bind(to.ID, by); decided {
		t.Rule = ""
	}
}
