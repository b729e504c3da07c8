package engine_test

import (
	"strings"
	"sync"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

// However many retry one session at once, one new session results, and when that is over,
// another may be created.
func TestRetry_ASecondOneAnswersTheFirstWhileThatIsNotOver(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a).ID
	must[api.Finished](t)(k.Fail(k.Claim(s), "X"))
	var all sync.WaitGroup
	got := make([]api.Retried, 8)
	for i := range got {
		all.Go(func() { got[i] = must[api.Retried](t)(w.RetrySession(t.Context(), w.Owner, s)) })
	}
	all.Wait()
	made := 0
	for _, r := range got {
		if r.ID != got[0].ID {
			t.Errorf("one retry made %s, another %s", got[0].ID, r.ID)
		}
		if r.Changed {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d retries say that they made it", made)
	}
	must[api.Finished](t)(k.Fail(k.Claim(got[0].ID), "X"))
	if next := must[api.Retried](t)(w.RetrySession(t.Context(), w.Owner, s)); !next.Changed || next.ID == got[0].ID {
		t.Errorf("once it is over, a retry answers %s, changed %v", next.ID, next.Changed)
	}
}

// What a deleted agent ran can't be run again, and the refusal says so: the session is there.
func TestRetry_OfADeletedAgentSaysSo(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.Type = api.TypeClaudeCode })
	k := w.Worker(a, func(in *api.WorkerInput) { in.Types = []api.AgentType{api.TypeClaudeCode} })
	s := w.New(a)
	must[api.Finished](t)(k.Fail(k.Claim(s.ID), "X"))
	if err := w.DeleteAgent(t.Context(), w.Owner, a.Slug); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"retry": func() error { _, err := w.RetrySession(t.Context(), w.Owner, s.ID); return err },
		"message": func() error {
			_, err := w.PostMessage(t.Context(), w.Owner, s.ID, api.MessageInput{Text: "go on"})
			return err
		},
		"thread": func() error {
			_, err := w.PatchThread(t.Context(), w.Owner, s.ThreadID, api.ThreadPatch{State: api.ThreadPending})
			return err
		},
	} {
		if err := do(); api.CodeOf(err) != api.CodeConflict || !strings.Contains(err.Error(), "deleted") {
			t.Errorf("%s is answered %v", name, err)
		}
	}
}

// A session that was asked to stop and ended well was stopped, whatever its worker calls that
// (contract 2.5).
func TestComplete_AfterAStopIsStopped(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 3 })
	k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 3 })
	for _, outcome := range []string{"", "success", "partial"} {
		c := k.Claim(w.New(a).ID)
		must[api.Changed](t)(w.StopSession(t.Context(), w.Owner, c.SessionID))
		for range 2 {
			must[api.Finished](t)(w.Complete(t.Context(), k.Caller, k.ID, c.SessionID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Outcome: outcome}))
		}
		if got := w.Get(c.SessionID); got.Status != api.Complete || got.Outcome != api.OutcomeStopped {
			t.Errorf("said to be %q it is %s, %q", outcome, got.Status, got.Outcome)
		}
	}
}
