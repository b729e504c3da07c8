package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// someUpdates are all task updates, or now and then, where people share tasks, some of them.
func (p *play) someUpdates() api.Labels {
	if p.people == nil || !p.yes("narrowed", 3) {
		return slices.Clone(api.TaskUpdates)
	}
	out := api.Labels{}
	for _, word := range api.TaskUpdates {
		if p.yes(word, 2) {
			out = append(out, word)
		}
	}
	return out
}

// dispatchTo is what a dispatch needs of an agent.
type dispatchTo struct {
	agent  api.AgentID
	named  string
	refuse api.Code
}

// agentFor chooses the agent of a dispatch: named, or as the contract says.
func (p *play) agentFor(t *seenTask) (out dispatchTo) {
	if a, ok := pick(p, "agent", p.agents); ok && !p.yes("unnamed", 3) {
		return dispatchTo{agent: a, named: a.String()}
	}
	switch {
	case slices.Contains(p.agents, api.AgentID(t.Agent)):
		out.agent = api.AgentID(t.Agent)
	case len(p.agents) == 1:
		out.agent = p.agents[0]
	default:
		out.refuse = api.CodeInvalid
	}
	return out
}

func (p *play) dispatchTask() {
	t, c := p.aTask(), p.who()
	if t == nil {
		return
	}
	to := p.agentFor(t)
	in := api.DispatchInput{Agent: to.named, Force: p.yes("force", 4), Print: p.yes("print", 8)}
	local := to.refuse == "" && p.row("SELECT mode FROM agents WHERE id = ?1", to.agent) == "local"
	if local && c.UserID != p.w.Owner.UserID {
		in.Print = true // nobody here runs the others' local sessions
	}
	was := *t
	refused := p.refuseDispatch(t, c, in, to, local)
	p.requests++
	idem := engine.Idempotency{Key: fmt.Sprintf("dispatch %d", p.requests), Route: "dispatch", Body: []byte("x")}
	if in.Print {
		idem.Key = ""
	}
	var got api.Dispatched
	do := func() (err error) { got, _, err = p.w.DispatchTask(p.ctx(), c, t.key(), in, idem); return err }
	if !p.onTask("dispatch "+t.key(), c, was, refused, do) || in.Print {
		return
	}
	if t.bind(got.Session.ID, int64(c.UserID)); t.Agent != int64(to.agent) {
		t.User, t.Agent = int64(c.UserID), 0
	}
	if p.yes("again", 4) {
		first := got.Session.ID
		if p.judge("dispatch again", do()); got.Session.ID != first {
			p.broken("the same key made session %s beside %s", got.Session.ID, first)
		}
	}
}

func (p *play) refuseDispatch(t *seenTask, c engine.Caller, in api.DispatchInput, to dispatchTo, local bool) api.Code {
	admin := c.Role.AtLeast(api.Admin)
	switch {
	case c.Role == api.Viewer, in.Force && !admin:
		return api.CodeForbidden
	case to.refuse != "":
		return to.refuse
	case !local && !admin:
		return api.CodeForbidden
	case t.State == api.TaskDone:
		return api.CodeTaskDone
	case p.waitsForOne(t):
		return api.CodeTaskBlocked
	case !in.Force && t.against(int64(c.UserID), p.now()):
		return api.CodeAlreadyClaimed
	}
	return ""
}

// workOnTask is a worker that claims a session about a task.
func (p *play) workOnTask() {
	s, ok := pick(p, "session", p.aboutTasks("claim_id = 0 AND ended_at = 0"))
	if !ok {
		return
	}
	agent := p.number("SELECT agent_id FROM sessions WHERE id = ?1", s)
	i := slices.IndexFunc(p.workers, func(k *enginetest.Worker) bool { return int64(k.Agent) == agent })
	if i >= 0 {
		p.claimFor(p.workers[i], s)
	}
}

// stopWork is a person who stops a session that runs, which its worker completes.
func (p *play) stopWork() {
	g, ok := pick(p, "claim", p.inUse())
	if !ok {
		return
	}
	_, err := p.w.StopSession(p.ctx(), p.w.Owner, g.SessionID)
	p.judge("stop", err)
	_, err = g.k.Complete(g.Claim, "so far")
	p.judge("complete what was stopped", err)
}

// retryWork retries the session that held a task last.
func (p *play) retryWork() {
	if t := p.aTask(); t != nil && t.Last != 0 {
		p.retryOf(api.SessionID(t.Last))
	}
}

// runActsOnTask is an agent that acts for itself (contract 7.6): on its own task it comments,
// renews and extends, and on no other anything.
func (p *play) runActsOnTask() {
	g, ok := pick(p, "run", p.inUse())
	t := p.aTask()
	if !ok || t == nil {
		return
	}
	if own := p.tasks[p.number("SELECT task_id FROM sessions WHERE id = ?1", g.SessionID)]; own != nil && !p.yes("not its own", 3) {
		t = own
	}
	who, err := p.w.Authenticate(p.ctx(), g.RunToken)
	if api.CodeOf(err) != "" {
		return // of a session that acts for nobody
	}
	c, err := p.w.In(p.ctx(), who, account.DefaultWorkspace)
	if err != nil {
		p.broken("a run's token: %v", err)
	}
	own := p.number("SELECT task_id FROM sessions WHERE id = ?1", g.SessionID) == t.ID
	holds := t.Session == int64(g.SessionID)
	for _, v := range []struct {
		name string
		can  bool
		code api.Code
		do   func(context.Context) error
	}{
		{"comment", true, "", func(ctx context.Context) error {
			_, err := p.w.CommentTask(ctx, c, t.key(), api.TaskCommentInput{Text: "from the run"})
			return err
		}},
		{"renew", holds, api.CodeClaimNotActive, func(ctx context.Context) error { _, err := p.w.RenewTask(ctx, c, t.key()); return err }},
		{"extend", holds, api.CodeClaimNotActive, func(ctx context.Context) error {
			_, err := p.w.ExtendTask(ctx, c, t.key(), api.TaskExtendInput{AddSeconds: 60})
			return err
		}},
		{"claim", false, api.CodeUserTokenRequired, func(ctx context.Context) error {
			_, err := p.w.ClaimTask(ctx, c, t.key(), api.TaskClaimInput{})
			return err
		}},
		{"release", false, api.CodeUserTokenRequired, func(ctx context.Context) error { _, err := p.w.ReleaseTask(ctx, c, t.key()); return err }},
		{"edit", false, api.CodeUserTokenRequired, func(ctx context.Context) error {
			_, err := p.w.EditTask(ctx, c, t.key(), func(in *api.TaskEdit) error { in.Assignee = "me"; return nil })
			return err
		}},
		{"dispatch", false, api.CodeUserTokenRequired, func(ctx context.Context) error {
			_, _, err := p.w.DispatchTask(ctx, c, t.key(), api.DispatchInput{}, engine.Idempotency{})
			return err
		}},
	} {
		want := v.code
		switch {
		case !own:
			want = api.CodeNotFound
		case v.can:
			want = ""
		}
		r := p.judge(v.name+" "+t.key()+" by a run", v.do(p.ctx()), want)
		if (r == nil) != (want == "") {
			p.broken("%s of %s by a run of session %s answers %v, want %q", v.name, t.key(), g.SessionID, r, want)
		}
	}
}

// checkNextTasks compares what somebody is to do next with the order that contract 7.4 says.
func (p *play) checkNextTasks(c engine.Caller) {
	p.Helper()
	got, err := p.w.NextTasks(p.ctx(), c, 200)
	if err != nil {
		p.broken("next for %s: %v", c.Name, err)
	}
	var order, want []string
	for _, n := range got.Items {
		t := p.tasks[int64(n.Task.ID)]
		if order = append(order, n.Task.Key); n.InFlight != t.live(p.now()) || n.Why == "" {
			p.broken("next says of %+v: in flight %v, %q", t, n.InFlight, n.Why)
		}
	}
	for _, t := range p.nextFor(c) {
		want = append(want, t.key())
	}
	if !slices.Equal(order, want) {
		p.broken("next for %s is %v, want %v", c.Name, order, want)
	}
}

// nextFor ranks one place after the other: of what no unplaced task stands before, what is free
// to begin and neither blocked nor in review, then one's own p1, then what others wait for, then
// the most urgent, then the oldest.
func (p *play) nextFor(c engine.Caller) (out []*seenTask) {
	left := map[int64]*seenTask{}
	for id, t := range p.tasks {
		if t.State != api.TaskDone && t.Agent == 0 && (t.User == 0 || t.User == int64(c.UserID)) {
			left[id] = t
		}
	}
	rank := func(t *seenTask) int {
		n := 0
		if p.waitsForOne(t) || t.State == api.TaskBlocked || t.State == api.TaskReview {
			n += 4
		}
		if t.User != int64(c.UserID) || t.Priority != "p1" {
			n += 2
		}
		for _, o := range p.tasks {
			if o.State != api.TaskDone && slices.Contains(o.Before, t.ID) {
				return n
			}
		}
		return n + 1
	}
	for len(left) > 0 {
		var free []*seenTask
		for _, t := range left {
			if !slices.ContainsFunc(t.Before, func(id int64) bool { return left[id] != nil }) {
				free = append(free, t)
			}
		}
		best := slices.MinFunc(free, func(a, b *seenTask) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ID, b.ID))
		})
		delete(left, best.ID)
		out = append(out, best)
	}
	return out
}
