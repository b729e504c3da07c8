package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A play is the whole run of one coordinator: verbs of people and workers, a clock that is
// moved and set, restarts, calls that are repeated, and expired claims that are used again.
// Dice decide which of them comes next, so that the same play serves the property test, which
// can shrink it, and the long simulation, which can be seeded. Every call is judged by what
// the rows said just before it, and after every step everything that must hold is checked.
type play struct {
	enginetest.TB
	w *enginetest.Fixture
	d dice

	agents   []api.AgentID
	workers  []*enginetest.Worker
	sessions []api.SessionID
	claims   []grip // every claim ever granted
	signals  []api.SignalID
	requests int // request ids and keys given out

	people    []engine.Caller     // who shares tasks; nil = there are none in this play
	tasks     map[int64]*seenTask // as they must be after this step
	event     int64               // the last that was followed
	asking    map[int64]bool      // sessions whose question waits for a person
	agentGone api.AgentID         // deleted in this step
	clockSet  bool                // in this step, or the coordinator was away

	calls map[string]int // how often each verb was done, and the answers
	steps int
	stale int // writes under a dead claim
	trace []string
}

// dice draws the decisions of a play: an integer from 0 to n-1.
type dice interface {
	draw(label string, n int) int
}

// grip is a claim as the worker that got it holds it.
type grip struct {
	api.Claim
	k *enginetest.Worker
}

func newPlay(t enginetest.TB, d dice) *play {
	p := &play{TB: t, d: d, calls: map[string]int{}}
	p.w = enginetest.Open(t, enginetest.With(func(c *engine.Config) { c.AutoPauseAfter = 4 }))
	p.makeAgent()
	p.makeWorker()
	return p
}

func (p *play) yes(label string, oneIn int) bool { return p.d.draw(label, oneIn) == 0 }

func (p *play) ctx() context.Context { return context.Background() }

func (p *play) notef(format string, args ...any) {
	p.trace = append(p.trace, p.w.Clock.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// story is the end of the trace, for failures.
func (p *play) story() string {
	return "the last steps were:\n" + strings.Join(p.trace[max(0, len(p.trace)-40):], "\n")
}

func (p *play) broken(format string, args ...any) {
	p.Helper()
	p.Fatalf("%s\n%s", fmt.Sprintf(format, args...), p.story())
}

// judge notes a call and fails the play unless its answer is an allowed one: nil, or a refusal
// with one of the codes.
func (p *play) judge(verb string, err error, codes ...api.Code) *api.Error {
	p.Helper()
	if err == nil {
		p.calls[verb]++
		p.notef("%s", verb)
		return nil
	}
	r := refusal(err)
	if r == nil || !slices.Contains(codes, r.Code) {
		p.broken("%s answered %v; allowed are %v", verb, err, codes)
	}
	p.calls[verb+" → "+string(r.Code)]++
	p.notef("%s → %s %s", verb, r.Code, r.Gate)
	return r
}

func pick[T any](p *play, label string, from []T) (v T, ok bool) {
	if len(from) == 0 {
		return v, false
	}
	return from[p.d.draw(label, len(from))], true
}

// verb is something that can happen, and how often compared with others.
type verb struct {
	name   string
	weight int
	do     func()
}

func (p *play) verbs() []verb {
	return []verb{
		{"wait", 5, p.wait},
		{"create", 6, p.create},
		{"claim next", 8, p.claimNext},
		{"claim", 5, p.claim},
		{"beat", 3, p.beat},
		{"beat all", 4, p.beatAll},
		{"renew", 3, p.renew},
		{"extend", 1, p.extend},
		{"report", 4, p.report},
		{"ask", 6, p.ask},
		{"answer", 3, p.answer},
		{"complete", 4, p.complete},
		{"fail", 2, p.fail},
		{"release", 5, p.release},
		{"cancel", 2, p.cancel},
		{"stop", 1, p.stop},
		{"retry", 4, p.retry},
		{"archive", 1, p.archive},
		{"use a dead claim", 8, p.useDeadClaim},
		{"edit", 3, p.edit},
		{"pause", 2, p.pause},
		{"make agent", 1, p.makeAgent},
		{"delete agent", 1, p.deleteAgent},
		{"make worker", 3, p.makeWorker},
		{"register again", 2, p.registerAgain},
		{"goodbye", 1, p.goodbye},
		{"delete worker", 1, p.deleteWorker},
		{"signal a worker", 2, p.signal},
		{"acknowledge", 4, p.acknowledge},
		{"outage", 1, p.outage},
		{"set the clock back", 1, p.setBack},
		{"restart", 1, p.restart},
	}
}

// bag holds each verb as often as its weight says.
func (p *play) bag() (all []verb) {
	verbs := p.verbs()
	if p.people != nil {
		verbs = p.withTasks(verbs)
	}
	for _, v := range verbs {
		for range v.weight {
			all = append(all, v)
		}
	}
	return all
}

// step does one verb out of a bag, and looks at what became of the tasks.
func (p *play) step(bag []verb) {
	p.steps++
	p.expect()
	bag[p.d.draw("verb", len(bag))].do()
	p.compare()
}

// ---- time

func (p *play) wait() {
	d := time.Duration(1+p.d.draw("seconds", 90)) * time.Second
	if !p.yes("silence", 3) {
		p.beatAll()
	}
	p.w.Advance(d)
	p.judge("wait", nil)
}

func (p *play) outage() {
	d := []time.Duration{16 * time.Second, time.Minute, 10 * time.Minute, 2 * time.Hour}[p.d.draw("away", 4)]
	p.clockSet = true
	p.w.Jump(d)
	p.w.Advance(0)
	p.judge("outage", nil)
}

func (p *play) setBack() {
	d := []time.Duration{500 * time.Millisecond, 3 * time.Second, 45 * time.Second, 2 * time.Hour}[p.d.draw("back", 4)]
	p.clockSet = true
	p.w.Jump(-d)
	p.w.Advance(0)
	p.judge("set the clock back", nil)
}

func (p *play) restart() {
	p.w.Restart()
	p.w.Advance(0)
	p.judge("restart", nil)
}

// ---- rows

// row reads one text from the database, "" when there is none.
func (p *play) row(query string, args ...any) string {
	p.Helper()
	got := p.w.Tell(query, args...)
	if len(got) == 0 {
		return ""
	}
	return got[0]
}

// number reads one integer from the database, which must be there.
func (p *play) number(query string, args ...any) int64 {
	p.Helper()
	n, err := strconv.ParseInt(p.row(strings.Replace(query, "SELECT ", "SELECT '' || ", 1), args...), 10, 64)
	if err != nil {
		p.broken("%s of %v: %v", query, args, err)
	}
	return n
}

func (p *play) status(s api.SessionID) api.Status {
	return api.Status(p.row("SELECT status FROM sessions WHERE id = ?1", s))
}

// alive reports whether a claim is live by its row.
func (p *play) alive(g grip) bool {
	return p.row("SELECT 'x' FROM claims WHERE id = ?1 AND closed_at = 0 AND expires_at > ?2", g.ClaimID.Key, p.w.Clock.Now().UnixMicro()) != ""
}

// closedBy is how a claim was closed, "" while it isn't.
func (p *play) closedBy(g grip) string {
	return p.row("SELECT closed_by FROM claims WHERE id = ?1", g.ClaimID.Key)
}

// here reports whether a claim's worker is still the same process.
func (p *play) here(g grip) bool {
	return p.row("SELECT 'x' FROM workers WHERE id = ?1 AND deleted_at = 0 AND instance_id = ?2", g.k.ID, g.k.Instance) != ""
}

// live are the claims that their workers can still use.
func (p *play) live() (out []grip) {
	for _, g := range p.claims {
		if p.alive(g) && p.here(g) {
			out = append(out, g)
		}
	}
	return out
}

// inUse are the live claims that a verb chooses from: half of the time, where people share tasks,
// those on sessions about one.
func (p *play) inUse() []grip {
	all := p.live()
	if p.people == nil || p.yes("any", 2) {
		return all
	}
	about := p.aboutTasks("claim_id <> 0")
	some := slices.DeleteFunc(slices.Clone(all), func(g grip) bool { return !slices.Contains(about, g.SessionID) })
	if len(some) == 0 {
		return all
	}
	return some
}

// aSession is one of all: half of the time, where people share tasks, an open one about a task.
func (p *play) aSession() (api.SessionID, bool) {
	if p.people != nil && !p.yes("any", 2) {
		if about := p.aboutTasks("ended_at = 0"); len(about) > 0 {
			return pick(p, "session", about)
		}
	}
	return pick(p, "session", p.sessions)
}

// aboutTasks are the sessions about tasks, of those that fulfil a condition.
func (p *play) aboutTasks(where string) []api.SessionID {
	return p.ids("SELECT CAST(id AS TEXT) FROM sessions WHERE task_id > 0 AND " + where + " ORDER BY id")
}

// dead are the claims that can't be used any more, of workers that still exist.
func (p *play) dead() (out []grip) {
	for _, g := range p.claims {
		if !p.alive(g) && p.here(g) {
			out = append(out, g)
		}
	}
	return out
}

// took records a new claim and checks what must hold for it.
func (p *play) took(k *enginetest.Worker, c api.Claim, exempt bool) {
	p.Helper()
	again := slices.IndexFunc(p.claims, func(g grip) bool { return g.ClaimID == c.ClaimID })
	if again < 0 {
		for _, g := range p.claims {
			if g.SessionID == c.SessionID && g.Fence >= c.Fence {
				p.broken("session %s: fence %d was granted after %d", c.SessionID, c.Fence, g.Fence)
			}
		}
		p.claims = append(p.claims, grip{c, k})
	} else if p.claims[again].k.ID != k.ID {
		p.broken("claim %s was given to two workers", c.ClaimID.Key)
	}
	if !c.LeaseExpiresAt.After(c.ServerTime.Time) || !c.ServerTime.Equal(p.w.Clock.Now()) {
		p.broken("a claim until %s at %s, the clock says %s", c.LeaseExpiresAt, c.ServerTime, p.w.Clock.Now())
	}
	if exempt || again >= 0 {
		return
	}
	// Caps (contract 14): counted from the rows, after the claim.
	over := p.row(`SELECT 'agent ' || a.id FROM agents a WHERE a.id = ?1 AND (SELECT COUNT(*) FROM claims c WHERE c.agent_id = a.id AND c.drained = 0) > a.max_concurrent
UNION ALL SELECT 'worker ' || w.id FROM workers w WHERE w.id = ?2 AND (SELECT COUNT(*) FROM claims c WHERE c.worker_id = w.id AND c.drained = 0) > w.max_concurrent
UNION ALL SELECT 'folder ' || w.folder_key FROM workers w WHERE w.id = ?2 AND w.folder_key <> '' AND w.folder_shared = 0
  AND (SELECT COUNT(*) FROM claims c WHERE c.folder_key = w.folder_key AND c.drained = 0) > 1`, k.Agent, k.ID)
	if over != "" {
		p.broken("the claim on session %s put %s over its cap", c.SessionID, over)
	}
	a, err := p.w.Engine.Agent(p.ctx(), p.w.Owner, k.Agent.String())
	if err != nil {
		p.broken("read agent %s: %v", k.Agent, err)
	}
	if a.DailySpendLimitMicros > 0 && a.SpentTodayMicros >= a.DailySpendLimitMicros {
		p.broken("session %s was claimed though its agent had spent %d of %d", c.SessionID, a.SpentTodayMicros, a.DailySpendLimitMicros)
	}
}

// sessionsOf are an agent's sessions that haven't ended.
func (p *play) sessionsOf(a api.AgentID) []api.SessionID {
	return p.ids("SELECT CAST(id AS TEXT) FROM sessions WHERE agent_id = ?1 AND ended_at = 0 ORDER BY id", a)
}

func (p *play) ids(query string, args ...any) (out []api.SessionID) {
	p.Helper()
	for _, text := range p.w.Tell(query, args...) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			p.broken("read an id: %v", err)
		}
		out = append(out, api.SessionID(n))
	}
	return out
}

// agentOf is the agent of a worker or session, as a reference.
func (p *play) agentOf(s api.SessionID) string {
	return p.row("SELECT CAST(agent_id AS TEXT) FROM sessions WHERE id = ?1", s)
}
