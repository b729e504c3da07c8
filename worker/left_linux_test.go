package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/workflow"
)

// told is what a session's timeline and status lines say.
func (w *fixture) told(id api.SessionID) string {
	w.Helper()
	acts, err := w.client.Activities(w.Context(), id, api.Page{})
	w.must(err)
	var b strings.Builder
	for _, a := range acts.Items {
		b.WriteString("activity: " + a.Text + "\n")
	}
	for _, line := range kinds(w.items(id), api.ItemStatus) {
		b.WriteString(line + "\n") // "status" and its text
	}
	return b.String()
}

// What a command leaves behind is ended with it. That is neither a failure nor a plain
// success, and the session says what it was.
func TestLeft_WhatACommandLeftRunningIsNamed(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	id := w.trigger(w.agent("daemonic", "sh", "-c", "setsid sleep 1003 >/dev/null 2>&1 </dev/null & until grep -qs '^sleep$' /proc/$!/comm; do sleep 0.01; done; echo done"), "")
	s := w.untilStatus(id, api.Complete)
	const line = "One process that was left behind was ended: sleep."
	if told := w.told(id); s.Outcome != api.OutcomeUnfinished || !strings.Contains(told, "activity: "+line) || !strings.Contains(told, "status "+line) {
		t.Errorf("outcome %q; it tells\n%s", s.Outcome, told)
	}
	id = w.trigger(w.agent("tidy", "true"), "")
	if s := w.untilStatus(id, api.Complete); s.Outcome != api.OutcomeSuccess {
		t.Errorf("of a tidy one the outcome is %q", s.Outcome)
	}
	if told := w.told(id); strings.Contains(told, "left behind") {
		t.Errorf("of a tidy one it tells\n%s", told)
	}
}

// An agent whose turn ends while it still runs something may not be done.
func TestLeft_AnAgentsTurnThatEndsBeforeItsWorkIsNoPlainSuccess(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("hasty", nil)
	w.start(o)
	s := w.untilStatus(w.trigger(a, "!running make test\n!say all green"), api.Complete)
	if s.Outcome != api.OutcomeUnfinished || !strings.Contains(w.told(s.ID), "still running, which was ended with it: make test.") {
		t.Errorf("outcome %q; it tells\n%s", s.Outcome, w.told(s.ID))
	}
	if s := w.untilStatus(w.trigger(a, "!say done"), api.Complete); s.Outcome != api.OutcomeSuccess {
		t.Errorf("outcome %q", s.Outcome)
	}
}

// An agent session continues where it was held, even in a worktree that git has forgotten;
// where that can't be, the session says that it starts over.
func TestPlace_AForgottenWorktreeIsNoOtherFolder(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	repo := w.repository()
	a, o, _ := w.talks("steady", func(in *api.AgentInput) { in.Run.WorkFolder, in.Run.Workspace = repo, workflow.ModeWorktree })
	w.start(o)
	first := w.untilStatus(w.trigger(a, "!say one"), api.Complete)
	forget := func() {
		if err := os.RemoveAll(filepath.Join(repo, ".git", "worktrees")); err != nil {
			t.Fatal(err)
		}
	}
	again := func() api.Session {
		s, err := w.client.RetrySession(t.Context(), first.ID)
		w.must(err)
		return w.untilStatus(s.ID, api.Complete)
	}
	forget()
	s := again()
	if told := w.told(s.ID); s.AgentSessionID != first.AgentSessionID || !strings.Contains(told, "registered again") || strings.Contains(told, "a new one goes on") {
		t.Errorf("the agent session was %s and is %s; it tells\n%s", first.AgentSessionID, s.AgentSessionID, told)
	}
	// Its branch goes too: only another folder is left.
	forget()
	branches, err := os.ReadDir(filepath.Join(repo, ".git", "refs", "heads", "stint"))
	w.must(err)
	for _, b := range branches {
		w.must(os.Remove(filepath.Join(repo, ".git", "refs", "heads", "stint", b.Name())))
	}
	s = again()
	if told := w.told(s.ID); s.AgentSessionID == first.AgentSessionID || !strings.Contains(told, "a new one was made") || !strings.Contains(told, "a new one goes on") {
		t.Errorf("the agent session was %s and is %s; it tells\n%s", first.AgentSessionID, s.AgentSessionID, told)
	}
}

// A check decides about what was left behind as about any other good end, and doesn't turn it
// into a plain success.
func TestLeft_ACheckComesAfterIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	const leaves = "sleep 1004 >/dev/null 2>&1 & until grep -qs '^sleep$' /proc/$!/comm; do sleep 0.01; done"
	for check, want := range map[string]api.Status{"true": api.Complete, "false": api.Failed} {
		a := w.agentWith("checked-"+check, func(in *api.AgentInput) { in.Run.Check = []string{check} }, "sh", "-c", leaves)
		if s := w.untilStatus(w.trigger(a, ""), want); want == api.Complete && s.Outcome != api.OutcomeUnfinished {
			t.Errorf("outcome %q", s.Outcome)
		}
	}
}
