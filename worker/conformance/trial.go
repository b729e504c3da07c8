package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// broken is why a rule is not kept. A trial panics with it, and judge recovers.
type broken string

// trial is one try at one rule, with its own agent.
type trial struct {
	kit   *kit
	ctx   context.Context
	label string // that the agent requires of its workers

	agentOnce sync.Once
	agentID   string
}

const holdLimit = 90 * time.Second // more than the longest held request

func (k *kit) trial(ctx context.Context) *trial {
	return &trial{kit: k, ctx: ctx, label: k.run}
}

func (t *trial) failf(format string, args ...any) {
	panic(broken(fmt.Sprintf(format, args...)))
}

// check fails the rule unless something holds.
func (t *trial) check(holds bool, format string, args ...any) {
	if !holds {
		t.failf(format, args...)
	}
}

// word is a new word that is in no other name.
func (t *trial) word(what string) string { return what + "-" + strings.ToLower(rand.Text()[:10]) }

// call makes a request and takes any answer.
func (t *trial) call(method, path string, body any, change ...func(*http.Request)) response {
	ctx, cancel := context.WithTimeout(t.ctx, holdLimit)
	defer cancel()
	a, err := t.kit.send(ctx, method, path, body, change...)
	if err != nil {
		t.failf("%s %s got no answer: %v", method, path, err)
	}
	return a
}

// ok makes a request that has to be answered with a status of 2xx.
func (t *trial) ok(method, path string, body any) doc {
	a := t.call(method, path, body)
	t.check(a.status/100 == 2, "%s", a.says())
	return a.body
}

// refused makes a request that has to be refused with a status and a code.
func (t *trial) refused(status int, code, method, path string, body any) doc {
	a := t.call(method, path, body)
	t.check(a.status == status && text(a.body, "code") == code, "%s; it has to be refused with %d and the code %s", a.says(), status, code)
	return a.body
}

// agent is the id of the trial's agent.
func (t *trial) agent() string {
	t.agentOnce.Do(func() { t.agentID = t.newAgent(nil) })
	return t.agentID
}

func (t *trial) newAgent(more doc) string {
	made := t.ok(http.MethodPost, "agents", with(doc{
		"slug": t.word("c"), "name": "Conformance", "mode": "local", "type": "command", "maxConcurrent": 100, "maxLapses": 100,
		"run": doc{"command": []string{"true"}}, "labels": []string{t.label}, "instructions": "Be exact.",
	}, more))
	id := text(made, "id")
	t.check(id != "", "a new agent has no id")
	t.kit.mu.Lock()
	t.kit.agents = append(t.kit.agents, id)
	t.kit.mu.Unlock()
	return id
}

// worker is a registered worker and the instance of its process.
type worker struct {
	t                  *trial
	id, name, instance string
}

func (t *trial) registration(name, instance string, more ...doc) doc {
	return with(doc{
		"name": name, "instanceId": instance, "types": []string{"command"}, "labels": []string{t.label}, "maxConcurrent": 50,
		"platform": "linux/amd64", "version": "1.0",
	}, more...)
}

func (t *trial) workersPath() string { return "agents/" + t.agent() + "/workers" }

// worker registers a new worker.
func (t *trial) worker(more ...doc) worker {
	w := worker{t: t, name: t.word("w"), instance: t.word("boot")}
	w.id = text(t.ok(http.MethodPost, t.workersPath(), t.registration(w.name, w.instance, more...)), "worker.id")
	t.check(w.id != "", "the answer to a registration has no worker.id")
	return w
}

func (w worker) path() string { return w.t.workersPath() + "/" + w.id }

// at is the path of a verb on a session; with an empty verb, of the session itself.
func (w worker) at(session, verb string) string {
	return strings.TrimSuffix(w.path()+"/sessions/"+session+"/"+verb, "/")
}

// session creates a session and returns its id.
func (t *trial) session(more ...doc) string {
	id := text(t.ok(http.MethodPost, "agents/"+t.agent()+"/sessions", with(doc{"prompt": "Do it."}, more...)), "id")
	t.check(id != "", "a new session has no id")
	return id
}

func (t *trial) look(session string) doc { return t.ok(http.MethodGet, "sessions/"+session, nil) }

func (t *trial) status(session string) string { return text(t.look(session), "status") }

// wants fails the rule unless the session has a status.
func (t *trial) wants(session, status string) {
	got := t.look(session)
	t.check(text(got, "status") == status, "session %s is %s, not %s", session, text(got, "status"), status)
}

// claim is what a worker holds.
type claim struct {
	worker
	id, session string
	doc         doc
}

// claim claims a session.
func (w worker) claim(session string, more ...doc) claim {
	got := w.t.ok(http.MethodPost, w.at(session, "claim"), with(doc{"instanceId": w.instance}, more...))
	c := claim{worker: w, id: text(got, "claimId"), session: session, doc: got}
	w.t.check(c.id != "", "the answer to a claim has no claimId: %v", got)
	return c
}

// running creates a session and claims it.
func (w worker) running(more ...doc) claim { return w.claim(w.t.session(), more...) }

// proof is what each write of a claim's holder carries.
func (c claim) proof(more ...doc) doc {
	return with(doc{"claimId": c.id, "instanceId": c.instance}, more...)
}

func (c claim) verb(verb string) string { return c.at(c.session, verb) }

// do makes a write under the claim that has to be accepted.
func (c claim) do(verb string, more ...doc) doc {
	return c.t.ok(http.MethodPost, c.verb(verb), c.proof(more...))
}

func (c claim) patch(more doc) doc { return c.t.ok(http.MethodPatch, c.verb(""), c.proof(more)) }

// beat reports that the worker is alive.
func (w worker) beat(more ...doc) doc {
	return w.t.ok(http.MethodPost, w.path()+"/heartbeat", with(doc{"instanceId": w.instance}, more...))
}

// expiry is the instant in an answer at which a lease ends.
func (t *trial) expiry(d doc) time.Time {
	at, ok := instant(d, "leaseExpiresAt")
	t.check(ok, "leaseExpiresAt is no time in UTC: %v", d["leaseExpiresAt"])
	return at
}

func (t *trial) serverTime(d doc) time.Time {
	at, ok := instant(d, "serverTime")
	t.check(ok, "serverTime is no time in UTC: %v", d["serverTime"])
	return at
}

// pause waits.
func (t *trial) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
		t.failf("the run was ended: %v", context.Cause(t.ctx))
	}
}

// graceLimit is how much longer than its end a lease may last here: a coordinator that was
// away for a moment gives running work some grace.
const graceLimit = 10 * time.Second

// lapse waits until a claim's lease is over and the session is free.
func (c claim) lapse() {
	c.t.pause(time.Duration(c.t.kit.lease)*time.Second + 300*time.Millisecond)
	c.t.within(graceLimit, "the session of a lapsed lease goes stale", func() bool { return c.t.status(c.session) == "stale" })
}

// short asks for the shortest lease.
func (t *trial) short() doc { return doc{"leaseSeconds": t.kit.lease} }

// within calls look until it is true, for what has to come by itself.
func (t *trial) within(d time.Duration, what string, look func() bool) {
	for end := time.Now().Add(d); !look(); t.pause(100 * time.Millisecond) {
		t.check(time.Now().Before(end), "%s: not within %v", what, d)
	}
}

// together makes calls at the same time and returns their answers.
func (t *trial) together(n int, do func(i int) response) []response {
	out := make([]response, n)
	start := make(chan struct{})
	var why atomic.Value
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					why.Store(fmt.Sprint(p))
				}
			}()
			<-start
			out[i] = do(i)
		})
	}
	close(start)
	all.Wait()
	if text, ok := why.Load().(string); ok {
		t.failf("%s", text)
	}
	return out
}
