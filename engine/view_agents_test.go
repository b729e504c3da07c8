package engine_test

import (
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// Somebody who wants to run something is offered everything that they may run, most recently
// run first.
func TestRunnable_IsAllThatTheCallerMayRun(t *testing.T) {
	w := enginetest.New(t)
	var all []api.Agent
	for range 15 {
		all = append(all, w.Agent())
	}
	w.New(all[9])
	w.New(all[12])
	got := must[[]api.Agent](t)(w.Runnable(t.Context(), w.Owner))
	if len(got) != 15 || got[0].ID != all[12].ID || got[1].ID != all[9].ID {
		t.Errorf("%d of 15 agents are offered, first %s and %s", len(got), got[0].Slug, got[1].Slug)
	}
	viewer := w.Owner
	viewer.Role = api.Viewer
	if got := must[[]api.Agent](t)(w.Runnable(t.Context(), viewer)); len(got) != 0 {
		t.Errorf("a viewer is offered %d agents", len(got))
	}
}

// A failure can be made up for as long as its agent is there.
func TestInbox_ForgetsFailuresOfDeletedAgents(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	if _, err := w.Fail(t.Context(), w.Owner, k.ID, c.SessionID, api.FailRequest{UnderClaim: k.Under(c.ClaimID), Code: "AGENT_EXIT_NONZERO"}); err != nil {
		t.Fatal(err)
	}
	if inbox := must[engine.InboxView](t)(w.Inbox(t.Context(), w.Owner)); len(inbox.Items) != 1 {
		t.Fatalf("the inbox has %d items after a failure", len(inbox.Items))
	}
	if err := w.DeleteAgent(t.Context(), w.Owner, a.Slug); err != nil {
		t.Fatal(err)
	}
	if inbox := must[engine.InboxView](t)(w.Inbox(t.Context(), w.Owner)); len(inbox.Items) != 0 {
		t.Errorf("the inbox has %d items of a deleted agent", len(inbox.Items))
	}
}
