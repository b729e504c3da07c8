package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// newTaskPlay is a play in which people share tasks, too.
func newTaskPlay(t enginetest.TB, d dice) *play {
	p := newPlay(t, d)
	p.asking = map[int64]bool{}
	p.people = []engine.Caller{p.w.Owner}
	for _, who := range []struct {
		name string
		role api.Role
	}{{"Ann", api.Admin}, {"Bob", api.Member}, {"Vic", api.Viewer}} {
		p.people = append(p.people, p.w.Colleague(who.name, who.role))
	}
	return p
}

// withTasks are the verbs of a play in which people share tasks: fewer of the others, which have
// plays of their own.
func (p *play) withTasks(others []verb) []verb {
	unrelated := []string{"use a dead claim", "report", "archive", "edit", "pause", "signal a worker", "acknowledge", "beat"}
	others = slices.DeleteFunc(others, func(v verb) bool { return slices.Contains(unrelated, v.name) })
	return append(others, []verb{
		{"let time pass", 8, p.wait},
		{"make a task", 8, p.makeTask},
		{"claim a task", 14, p.claimTask},
		{"renew a task", 6, p.renewTask},
		{"extend a task", 4, p.extendTask},
		{"release a task", 8, p.releaseTask},
		{"dispatch a task", 24, p.dispatchTask},
		{"set a task's state", 10, p.setTaskState},
		{"edit a task", 10, p.editTask},
		{"comment on a task", 2, p.commentTask},
		{"work on a task", 10, p.workOnTask},
		{"an agent acts on its task", 5, p.runActsOnTask},
		{"change a role", 2, p.changeRole},
		{"stop or cancel work", 4, func() { pickVerb(p, p.stop, p.stopWork, p.cancel) }},
		{"retry work", 10, p.retryWork},
		{"give a task to an agent", 4, p.giveToAgent},
		{"replace an agent", 8, func() { pickVerb(p, p.makeAgent, p.deleteAgent) }},
	}...)
}

func pickVerb(p *play, verbs ...func()) {
	do, _ := pick(p, "which", verbs)
	do()
}

// aTask is one of the tasks, mostly one that isn't done; nil when there is none.
func (p *play) aTask() *seenTask {
	from := p.openTasks()
	if len(from) == 0 || p.yes("any", 4) {
		from = slices.SortedFunc(maps.Values(p.tasks), byAge)
	}
	t, _ := pick(p, "task", from)
	return t
}

func byAge(a, b *seenTask) int { return cmp.Compare(a.ID, b.ID) }

// openTasks are those that aren't done, the oldest first.
func (p *play) openTasks() []*seenTask {
	return slices.DeleteFunc(slices.SortedFunc(maps.Values(p.tasks), byAge), func(t *seenTask) bool { return t.State == api.TaskDone })
}

// who is somebody: mostly one of those who may work on tasks.
func (p *play) who() engine.Caller {
	return p.people[[]int{0, 0, 0, 1, 1, 2, 2, 3}[p.d.draw("who", 8)]]
}

func (p *play) nameOf(user int64) string {
	for _, c := range p.people {
		if int64(c.UserID) == user {
			return c.Name
		}
	}
	return ""
}

// onTask judges one verb: its answer is the one expected, a refusal names who holds the task
// until when, and changes nothing.
func (p *play) onTask(verb string, c engine.Caller, was seenTask, want api.Code, do func() error) bool {
	p.Helper()
	verb += " by " + c.Name
	before := ""
	if want != "" && p.yes("compare all", 4) {
		before = p.w.Hash()
	}
	err := do()
	if want == "" {
		p.judge(verb, err)
		return true
	}
	r := p.judge(verb, err, want)
	if r == nil {
		p.broken("%s on %+v was done; it is to be refused as %s", verb, was, want)
	}
	if before != "" && p.w.Hash() != before {
		p.broken("%s was refused and changed something", verb)
	}
	holder, until := "", int64(0)
	switch want {
	case api.CodeAlreadyClaimed, api.CodeNotClaimHolder, api.CodeClaimNotActive:
		if was.live(p.now()) {
			holder, until = p.nameOf(was.Holder), was.Expires
		}
	}
	if r.Holder != holder || api.Micros(r.ExpiresAt.Time) != until {
		p.broken("%s on %+v is refused with the holder %q until %s, want %q", verb, was, r.Holder, r.ExpiresAt, holder)
	}
	return false
}

// expected is a copy of a task on which a verb is tried: the task becomes it when the verb is
// done.
func (p *play) expected(t *seenTask, what func(*seenTask) api.Code) (next seenTask, refused api.Code) {
	next = *t
	return next, what(&next)
}

func (p *play) makeTask() {
	if len(p.tasks) >= 5 {
		return
	}
	c, in := p.who(), engine.DefaultTask()
	in.Title = fmt.Sprintf("task %d", p.steps)
	in.Priority = api.TaskPriorities[p.d.draw("priority", 2)]
	next := seenTask{Priority: in.Priority, State: api.TaskTodo, Version: 1}
	var refused api.Code
	if c.Role == api.Viewer {
		refused = api.CodeForbidden
	}
	if before := p.aTask(); before != nil && !p.yes("waits for none", 3) {
		if open := p.openTasks(); !p.yes("for any", 2) && len(open) > 0 {
			before = open[len(open)-1] // so that chains grow
		}
		in.BlockedBy, next.Before = []string{before.key()}, []int64{before.ID}
	}
	if p.yes("mine", 2) {
		in.Assignee, next.User = "me", int64(c.UserID)
	}
	in.State = api.TaskStates[p.d.draw("state", len(api.TaskStates))]
	next.set(c, in.State, p.now())
	p.requests++
	idem := engine.Idempotency{Key: fmt.Sprintf("task %d", p.requests), Route: "create", Body: []byte(in.Title)}
	var made api.Task
	do := func() (err error) { made, _, err = p.w.CreateTask(p.ctx(), c, in, idem); return err }
	if !p.onTask("make a task", c, next, refused, do) {
		return
	}
	if first := made.ID; p.yes("again", 4) {
		if p.judge("make the same task again", do()); made.ID != first {
			p.broken("the same key made task %s beside %s", made.ID, first)
		}
	}
	next.ID, next.Number = int64(made.ID), made.Number
	if next.Before == nil {
		next.Before = []int64{}
	}
	p.tasks[next.ID] = &next
}

func (p *play) claimTask() {
	t, c := p.aTask(), p.who()
	if t == nil {
		return
	}
	var asked *int64
	if !p.yes("as long as usual", 4) {
		asked = new([]int64{60, 60, 60, 90, 600, 86400, 1e18, 59}[p.d.draw("lease", 8)])
	}
	was := *t
	next, refused := p.expected(t, func(t *seenTask) api.Code { return t.claim(c, asked, p.now()) })
	var got api.TaskHeld
	if !p.onTask("claim "+t.key(), c, was, refused, func() (err error) {
		got, err = p.w.ClaimTask(p.ctx(), c, t.key(), api.TaskClaimInput{LeaseSeconds: asked})
		return err
	}) {
		return
	}
	*t = next
	from := int64(0)
	if got.TookOverFrom != nil {
		from = p.idOf(*got.TookOverFrom)
	}
	if want := was.User + was.Agent; from != want && !(want == int64(c.UserID) && from == 0) {
		p.broken("claimed from %+v, it says that it took over from %d", was, from)
	}
	if got.Renewed != was.live(p.now()) || got.CappedToMax != (asked != nil && *asked > maxTaskLease) {
		p.broken("the claim of %+v answers %+v", was, got)
	}
}

func (p *play) idOf(who api.Person) int64 {
	p.Helper()
	if id, err := api.ParseUserID(who.ID); err == nil {
		return int64(id)
	}
	id, err := api.ParseAgentID(who.ID)
	if err != nil {
		p.broken("%+v is nobody", who)
	}
	return int64(id)
}

func (p *play) renewTask() {
	t, c := p.aTask(), p.who()
	if t == nil {
		return
	}
	next, refused := p.expected(t, func(t *seenTask) api.Code { return t.renew(c, p.now()) })
	if p.onTask("renew "+t.key(), c, *t, refused, func() error { _, err := p.w.RenewTask(p.ctx(), c, t.key()); return err }) {
		*t = next
	}
}

func (p *play) extendTask() {
	t, c := p.aTask(), p.who()
	if t == nil {
		return
	}
	add := []int64{0, -5, 1, 600, 7200, 86400, 1e18}[p.d.draw("add", 7)]
	next, refused := p.expected(t, func(t *seenTask) api.Code { return t.extend(c, add, p.now()) })
	if p.onTask("extend "+t.key(), c, *t, refused, func() error {
		_, err := p.w.ExtendTask(p.ctx(), c, t.key(), api.TaskExtendInput{AddSeconds: add})
		return err
	}) {
		*t = next
	}
}

func (p *play) releaseTask() {
	t, c := p.aTask(), p.who()
	if t == nil {
		return
	}
	for range 1 + p.d.draw("again", 2) {
		was := *t
		next, refused := p.expected(t, func(t *seenTask) api.Code { return t.release(c, p.now()) })
		var got api.TaskReleased
		if !p.onTask("release "+t.key(), c, was, refused, func() (err error) { got, err = p.w.ReleaseTask(p.ctx(), c, t.key()); return err }) {
			return
		}
		if *t = next; got.Released != was.live(p.now()) {
			p.broken("the release of %+v answers released %v", was, got.Released)
		}
	}
}
