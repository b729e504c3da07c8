package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine/enginetest"
)

// marking is what a worker does under one claim.
func marking(t *testing.T, w *enginetest.Fixture, k *enginetest.Worker, id api.SessionID, marks ...api.Mark) api.Claim {
	t.Helper()
	c := k.Claim(id)
	for i, m := range marks {
		in := api.ActivityInput{UnderClaim: k.Under(c.ClaimID), Key: c.ClaimID.String() + string(m) + string(rune('a'+i)), Type: api.ActivityPolicyDecision, Text: "because of " + string(m), Mark: m}
		for range 2 { // a repeated one counts once
			if _, err := w.AddActivity(t.Context(), w.Owner, k.ID, id, in); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// A run that ended well is no plain success if something was refused, did not start or did not
// come of it, whatever its worker says.
func TestMark_DecidesTheOutcome(t *testing.T) {
	for _, tt := range []struct {
		marks         string
		said, outcome string
		reason        api.Mark
		refused       int64
	}{
		{"", api.OutcomeSuccess, api.OutcomeSuccess, "", 0},
		{"refused refused", api.OutcomeSuccess, api.OutcomeRefused, api.MarkRefused, 2},
		{"refused", "well done", api.OutcomeRefused, api.MarkRefused, 1},
		{"tool_failed refused", api.OutcomeUnfinished, api.OutcomeRefused, api.MarkRefused, 1},
		{"tool_failed", "", api.OutcomeToolless, api.MarkToolFailed, 0},
		{"refused unmet tool_failed", api.OutcomeSuccess, api.OutcomeUnmet, api.MarkUnmet, 1},
		{"unfinished", api.OutcomeUnfinished, api.OutcomeUnfinished, api.MarkUnfinished, 0},
		{"refused", api.OutcomeStopped, api.OutcomeStopped, api.MarkRefused, 1},
	} {
		w := enginetest.New(t)
		a := w.Agent()
		k := w.Worker(a)
		s := w.New(a)
		var marks []api.Mark
		for _, m := range strings.Fields(tt.marks) {
			marks = append(marks, api.Mark(m))
		}
		c := marking(t, w, k, s.ID, marks...)
		got, err := w.Complete(t.Context(), w.Owner, k.ID, s.ID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Outcome: tt.said})
		if err != nil {
			t.Fatal(err)
		}
		reason := ""
		if tt.reason != "" {
			reason = "because of " + string(tt.reason)
		}
		if s := got.Session; s.Outcome != tt.outcome || s.Refused != tt.refused || s.MarkReason != reason {
			t.Errorf("marked %q and said to be %q: outcome %q, %d refused, because %q", tt.marks, tt.said, s.Outcome, s.Refused, s.MarkReason)
		}
		again, err := w.Complete(t.Context(), w.Owner, k.ID, s.ID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Outcome: tt.said})
		if err != nil || again.Session.Outcome != tt.outcome {
			t.Errorf("said again: %q, %v", again.Session.Outcome, err)
		}
	}
}

// What was refused before a lease was lost or the session given back was refused.
func TestMark_OutlastsItsClaim(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	marking(t, w, k, s.ID, api.MarkRefused)
	w.Advance(time.Hour)
	w.Want(s.ID, api.Stale)
	k = w.Worker(a)
	c := marking(t, w, k, s.ID, api.MarkRefused)
	if _, err := w.Release(t.Context(), w.Owner, k.ID, s.ID, api.ReleaseRequest{UnderClaim: k.Under(c.ClaimID), Reason: "worker_stopped"}); err != nil {
		t.Fatal(err)
	}
	c = k.Claim(s.ID)
	got, err := w.Complete(t.Context(), w.Owner, k.ID, s.ID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Outcome: api.OutcomeSuccess})
	if err != nil || got.Session.Outcome != api.OutcomeRefused || got.Session.Refused != 2 {
		t.Errorf("outcome %q, %d refused, %v", got.Session.Outcome, got.Session.Refused, err)
	}
	events, err := w.Events(t.Context(), w.Owner, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	ends := slices.DeleteFunc(events, func(ev api.Event) bool { return ev.Type != api.EventSessionComplete })
	if len(ends) != 1 || ends[0].Data["outcome"] != api.OutcomeRefused {
		t.Errorf("the events of its end are %v", ends)
	}
}

// Nobody but its worker marks a session, and not when it is over.
func TestMark_IsItsWorkersToSet(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	c := k.Claim(s.ID)
	in := api.ActivityInput{UnderClaim: k.Under(c.ClaimID), Type: api.ActivityProgress, Text: "x", Mark: "green"}
	if _, err := w.AddActivity(t.Context(), w.Owner, k.ID, s.ID, in); api.CodeOf(err) != api.CodeInvalid || !strings.Contains(err.Error(), "mark") {
		t.Errorf("an unknown mark: %v", err)
	}
	in.Mark = api.MarkUnmet
	run := w.Owner
	run.Run = &account.Run{}
	if _, err := w.AddActivity(t.Context(), run, k.ID, s.ID, in); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("by the agent itself: %v", err)
	}
	if _, err := w.Complete(t.Context(), w.Owner, k.ID, s.ID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID), Outcome: api.OutcomeSuccess}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddActivity(t.Context(), w.Owner, k.ID, s.ID, in); err == nil {
		t.Error("a session that is over was marked")
	}
	if got := w.Get(s.ID); got.Outcome != api.OutcomeSuccess || got.MarkReason != "" {
		t.Errorf("it is %q because %q", got.Outcome, got.MarkReason)
	}
}
