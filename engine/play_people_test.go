package engine_test

import (
	"fmt"
	"slices"
	"time"

	"stint/api"
	"stint/engine"
)

var lots = []string{"", "red", "blue"} // labels that sessions may ask for

func (p *play) makeAgent() {
	if len(p.agents) >= 4 {
		return
	}
	a := p.w.Agent(func(in *api.AgentInput) {
		in.Mode = []api.Mode{api.Local, api.Local, api.Cloud}[p.d.draw("mode", 3)]
		in.MaxConcurrent = int64(1 + p.d.draw("cap", 3))
		in.MaxLapses = int64(1 + p.d.draw("lapses", 3))
		in.ReclaimDelaySeconds = int64(20 * p.d.draw("reclaim delay", 2))
		in.DailySpendLimitMicros = int64(500 * p.d.draw("day's limit", 3))
		p.drawSchedule(in)
		in.TaskUpdates = p.someUpdates()
		if label, _ := pick(p, "label", lots); label != "" {
			in.Labels = api.Labels{label}
		}
	})
	p.agents = append(p.agents, a.ID)
	p.judge("make agent", nil)
}

func (p *play) drawSchedule(in *api.AgentInput) {
	in.Schedule = []string{"", "", "* * * * *", "*/2 * * * *", "@every 1m"}[p.d.draw("schedule", 5)]
	in.Overlap = []api.Overlap{api.OverlapSkip, api.OverlapQueueOne, api.OverlapAllow, api.OverlapReplace}[p.d.draw("overlap", 4)]
	in.CatchUp = []api.CatchUp{api.CatchUpLatest, api.CatchUpNone}[p.d.draw("catch up", 2)]
	in.JitterSeconds = int64(30 * p.d.draw("jitter", 2))
	in.RunsAsUserID = p.w.Owner.UserID
}

func (p *play) edit() {
	a, ok := pick(p, "agent", p.agents)
	if !ok {
		return
	}
	what := p.d.draw("what", 10)
	_, err := p.w.EditAgent(p.ctx(), p.w.Owner, a.String(), func(in *api.AgentInput) error {
		switch what {
		case 0, 1:
			in.MaxConcurrent = int64(1 + p.d.draw("cap", 3))
		case 2:
			in.QueueTimeoutSeconds = int64(60 * p.d.draw("queue time-out", 3))
		case 3:
			p.drawSchedule(in)
		case 4:
			in.Labels = api.Labels{lots[1+p.d.draw("label", 2)]}
		case 5:
			in.ReclaimDelaySeconds = int64(20 * p.d.draw("reclaim delay", 2))
		case 6:
			in.Mode = []api.Mode{api.Local, api.Cloud}[p.d.draw("mode", 2)]
			in.RunsAsUserID = p.w.Owner.UserID
		case 7:
			in.Overlap = []api.Overlap{api.OverlapSkip, api.OverlapQueueOne, api.OverlapAllow, api.OverlapReplace}[p.d.draw("overlap", 4)]
		case 8:
			in.DailySpendLimitMicros = int64(500 * p.d.draw("day's limit", 4))
		case 9:
			in.TimeZone = []string{"UTC", "Asia/Kathmandu", "America/New_York"}[p.d.draw("zone", 3)]
		}
		return nil
	})
	p.judge(fmt.Sprintf("edit %d", what), err)
}

func (p *play) pause() {
	a, ok := pick(p, "agent", p.agents)
	if !ok {
		return
	}
	do := func() (api.Agent, bool, error) { return p.w.ResumeAgent(p.ctx(), p.w.Owner, a.String()) }
	if p.yes("pause", 4) {
		do = func() (api.Agent, bool, error) { return p.w.PauseAgent(p.ctx(), p.w.Owner, a.String(), "") }
	}
	_, _, err := do()
	p.judge("pause or resume", err)
	if p.yes("again", 5) {
		_, changed, err := do()
		if p.judge("pause or resume again", err); changed {
			p.broken("the second pause or resume changed something")
		}
	}
}

func (p *play) deleteAgent() {
	if len(p.agents) < 2 || !p.yes("really", 3) {
		return
	}
	a, _ := pick(p, "agent", p.agents)
	p.judge("delete agent", p.w.DeleteAgent(p.ctx(), p.w.Owner, a.String()))
	p.agentGone = a
	p.agents = slices.DeleteFunc(p.agents, func(id api.AgentID) bool { return id == a })
	for _, k := range p.workers {
		if k.Agent == a {
			p.forget(k)
		}
	}
	p.judge("delete agent again", p.w.DeleteAgent(p.ctx(), p.w.Owner, a.String()), api.CodeNotFound)
}

func (p *play) create() {
	a, ok := pick(p, "agent", p.agents)
	if !ok {
		return
	}
	in := api.SessionInput{Prompt: new(fmt.Sprintf("take %d", p.steps))}
	switch p.d.draw("not before", 4) {
	case 0:
		in.NotBefore = api.Time{Time: p.w.Clock.Now().Add(time.Duration(p.d.draw("seconds", 120)-30) * time.Second)}
	case 1:
		priority := int64(p.d.draw("priority", 3) - 1)
		in.Priority = &priority
	}
	if t := p.aTask(); t != nil && p.yes("about a task", 3) {
		in.Task = t.key() // holds nothing
	}
	var codes []api.Code
	if before, ok := pick(p, "after", p.sessions); ok && p.yes("follows", 3) {
		in.After, in.AfterAny = before, p.yes("after any", 3)
		if st := p.status(before); st.Terminal() && st != api.Complete && !in.AfterAny {
			codes = append(codes, api.CodeInvalid)
		}
		if p.row("SELECT mode FROM sessions WHERE id = ?1", before) == "local" {
			codes = append(codes, api.CodeNotFound) // when the follower is to be a cloud one
		}
	}
	idem := engine.Idempotency{}
	if p.yes("keyed", 3) {
		p.requests++
		idem = engine.Idempotency{Key: fmt.Sprintf("key %d", p.requests), Route: "create", Body: []byte(*in.Prompt)}
	}
	s, replayed, err := p.w.CreateSession(p.ctx(), p.w.Owner, a.String(), in, idem)
	if p.judge("create", err, codes...) != nil {
		return
	}
	if replayed {
		p.broken("a new key was answered with an old session")
	}
	p.sessions = append(p.sessions, s.ID)
	if idem.Key != "" && p.yes("again", 2) {
		same, replayed, err := p.w.CreateSession(p.ctx(), p.w.Owner, a.String(), in, idem)
		if p.judge("create again", err); same.ID != s.ID || !replayed {
			p.broken("the same key made session %s beside %s", same.ID, s.ID)
		}
		idem.Body = []byte("another")
		_, _, err = p.w.CreateSession(p.ctx(), p.w.Owner, a.String(), in, idem)
		p.judge("create otherwise", err, api.CodeIdempotencyReuse)
	}
}

// meet adds the scheduler's sessions to those that people know.
func (p *play) meet() {
	p.sessions = p.ids("SELECT CAST(id AS TEXT) FROM sessions ORDER BY id")
}

// changed judges an idempotent verb: it changes something exactly when it can,
// and never twice.
func (p *play) changed(verb string, can bool, do func() (api.Changed, error), codes ...api.Code) {
	p.Helper()
	got, err := do()
	if p.judge(verb, err, codes...) != nil {
		return
	}
	if got.Changed != can {
		p.broken("%s says changed %v, want %v", verb, got.Changed, can)
	}
	if p.yes("again", 5) {
		got, err := do()
		if p.judge(verb+" again", err); got.Changed {
			p.broken("the second %s changed something", verb)
		}
	}
}

func (p *play) cancel() {
	s, ok := p.aSession()
	if !ok {
		return
	}
	st := p.status(s)
	in := api.CancelInput{OnlyPending: p.yes("only pending", 3)}
	var codes []api.Code
	if in.OnlyPending && st.Running() {
		codes = append(codes, api.CodeSessionRunning)
	}
	p.changed("cancel", !st.Terminal(), func() (api.Changed, error) { return p.w.CancelSession(p.ctx(), p.w.Owner, s, in) }, codes...)
	if len(codes) > 0 && p.status(s) != st {
		p.broken("onlyPending made a running session %s", p.status(s))
	}
}

func (p *play) stop() {
	s, ok := p.aSession()
	if !ok {
		return
	}
	before := p.w.Get(s)
	can := !before.Status.Terminal() && before.StopRequestedAt.IsZero()
	p.changed("stop", can, func() (api.Changed, error) { return p.w.StopSession(p.ctx(), p.w.Owner, s) })
	after := p.w.Get(s)
	switch {
	case before.Status.Waiting() && after.Status != api.Cancelled:
		p.broken("a stop left the waiting session %s", after.Status)
	case before.Status.Running() && after.Status != api.Active:
		p.broken("a stop made the running session %s", after.Status)
	}
}

func (p *play) retry() {
	if s, ok := pick(p, "session", p.sessions); ok {
		p.retryOf(s)
	}
}

func (p *play) retryOf(s api.SessionID) {
	before := p.w.Get(s)
	var codes []api.Code
	switch {
	case before.Status.Terminal():
		codes = append(codes, api.CodeConflict) // its agent may be gone
	case before.Status != api.Stale:
		codes = append(codes, api.CodeSessionRunning)
	}
	got, err := p.w.RetrySession(p.ctx(), p.w.Owner, s)
	if p.judge("retry", err, codes...) != nil {
		return
	}
	switch {
	case before.Status == api.Stale && (got.ID != s || got.Status != api.Queued || got.Lapses != 0):
		p.broken("the retry of a stale session made %s of it, %d lapses", got.Status, got.Lapses)
	case before.Status.Terminal() && got.Mode != before.Mode: // others see it now
		if got.ID == s || got.RetryOf != 0 || got.ThreadID != api.ThreadID(got.ID) || got.Attempt != 1 {
			p.broken("the retry of an ended session in another mode is %+v", got)
		}
	case before.Status.Terminal() && (got.ID == s || got.RetryOf != s || got.ThreadID != before.ThreadID || got.Attempt != before.Attempt+1):
		p.broken("the retry of an ended session is %+v", got)
	}
	if got.ID == s {
		return
	}
	p.sessions = append(p.sessions, got.ID)
	if got.Changed { // else the retry before isn't over
		p.carried(before, got.Session)
	}
}

func (p *play) archive() {
	s, ok := pick(p, "session", p.sessions)
	if !ok {
		return
	}
	before := p.w.Get(s)
	var codes []api.Code
	if !before.Status.Terminal() {
		codes = append(codes, api.CodeConflict)
	}
	p.changed("archive", before.ArchivedAt.IsZero(), func() (api.Changed, error) { return p.w.ArchiveSession(p.ctx(), p.w.Owner, s) }, codes...)
}

func (p *play) answer() {
	id, ok := pick(p, "prompt", p.ids("SELECT CAST(session_id AS TEXT) FROM prompts WHERE closed_at = 0 ORDER BY id"))
	if !ok {
		return
	}
	s := p.w.Get(id)
	in := api.AnswerInput{PromptID: s.Prompted.ID, Answer: api.Answer{Text: "yes"}}
	got, err := p.w.AnswerPrompt(p.ctx(), p.w.Owner, s.ID, in)
	p.judge("answer", err)
	want := map[api.Status]api.Status{api.AwaitingInput: api.Active, api.Stale: api.Stale, api.Pending: api.Queued}[s.Status]
	if s.Status == api.Pending && s.NotBefore.After(p.w.Clock.Now()) {
		want = api.Pending
	}
	if got.Status != want || got.Prompted != nil {
		p.broken("the answer made the %s session %s", s.Status, got.Status)
	}
	_, err = p.w.AnswerPrompt(p.ctx(), p.w.Owner, s.ID, in)
	p.judge("answer again", err, api.CodePromptClosed)
}
