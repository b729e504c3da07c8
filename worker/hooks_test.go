package worker

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// follows gives an agent a workflow file, whose executing parts its owner has accepted.
func (w *fixture) follows(o Options, slug, front string) {
	w.Helper()
	flow := filepath.Join(w.TempDir(), "WORKFLOW.md")
	w.must(os.WriteFile(flow, []byte("---\n"+front+"\n---\n"), 0o600))
	files := w.owns(o, slug, "workflow = '"+flow+"'\n")
	loaded, err := workflow.Load(flow, os.Getenv)
	w.must(err)
	now := loaded.Executing()
	w.must(files.Accept(slug, setup.Accepted{Workflow: &setup.AcceptedWorkflow{Path: flow, Digest: now.Digest(), Executing: now}}))
}

// A hook runs under the claim like everything else: it may run as long as the lease is
// renewed. contract 10.11
func TestHooks_LiveOnARenewedLease(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	mark := filepath.Join(w.TempDir(), "mark")
	w.follows(o, "patient", "hooks:\n  before_run: 'sleep 4.2; echo before >> "+mark+"'")
	a := w.agentWith("patient", brief, "true")
	w.start(o)
	w.untilStatus(w.trigger(a, ""), api.Complete)
	if b, err := os.ReadFile(mark); err != nil || !strings.Contains(string(b), "before\n") {
		t.Errorf("the hook wrote %q, %v", b, err)
	}
}

// A shutdown doesn't wait for a hook to finish.
func TestHooks_EndQuicklyWithTheWorker(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Stages.Interrupt, o.Stages.Term = patience, patience
	mark := filepath.Join(w.TempDir(), "mark")
	w.follows(o, "long", "hooks:\n  before_run: \"trap '' INT TERM; echo > "+mark+"; while :; do sleep 0.1; done\"")
	a := w.agent("long", "true")
	g := w.start(o)
	id := w.trigger(a, "")
	w.eventually("the hook runs", func() bool { _, err := os.Stat(mark); return err == nil })
	began := time.Now()
	g.end()
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it took %v", took)
	}
	w.untilStatus(id, api.Queued)
}

// The hook after a try runs however the try ended, even if its command never started.
func TestHooks_AfterRunFollowsAFailedBeforeRun(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	mark := filepath.Join(w.TempDir(), "mark")
	w.follows(o, "unready", "hooks:\n  before_run: exit 3\n  after_run: 'echo after >> "+mark+"'")
	w.start(o)
	if s := w.untilStatus(w.trigger(w.agent("unready", "true"), ""), api.Failed); s.Error.Code != "HOOK_FAILED" {
		t.Errorf("%+v", s.Error)
	}
	if b, err := os.ReadFile(mark); err != nil || string(b) != "after\n" {
		t.Errorf("the hook wrote %q, %v", b, err)
	}
}

// The limits that an owner has written into WORKFLOW.md also hold for a command; the file's
// defaults don't. contract 10.6
func TestWorkflow_LimitsHoldForACommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ front, code string }{
		"turn":  {"codex:\n  turn_timeout_ms: 700", CodeTurnTimeout},
		"stall": {"codex:\n  stall_timeout_ms: 700", CodeStalled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			o := w.options()
			w.follows(o, "bounded", c.front)
			w.start(o)
			s := w.untilStatus(w.trigger(w.agent("bounded", "sleep", "1002"), ""), api.Failed)
			if s.Error.Code != c.code || !strings.Contains(s.Error.Message, "700ms") {
				t.Errorf("%+v", s.Error)
			}
		})
	}
}

// A worker that was suspended for a while did not read what the command printed meanwhile: the
// command was not silent. contract 10.11
func TestStall_TimeInWhichTheWorkerStoodStillIsNoSilence(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	c := w.spawn(nil)
	a := w.agentWith("chatty", func(in *api.AgentInput) { in.StallTimeoutSeconds = 1 }, "sh", "-c", "for i in $(seq 40); do echo $i; sleep 0.1; done")
	id := w.trigger(a, "")
	w.eventually("it prints", func() bool { return w.text(id, "stdout") != "" })
	for range 2 {
		c.signal(syscall.SIGSTOP)
		time.Sleep(1300 * time.Millisecond)
		c.signal(syscall.SIGCONT)
		time.Sleep(100 * time.Millisecond)
	}
	w.untilStatus(id, api.Complete)
}
