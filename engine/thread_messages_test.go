package engine_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
)

// What was said in a local session stays its owner's when the agent is now a cloud one.
func TestThread_EndsWhereOthersWouldReadIt(t *testing.T) {
	w, _ := withOwner(t)
	ctx := t.Context()
	_, eve := joined(t, w, api.Viewer, "eve")
	a := w.Agent(conversing)
	k := w.Worker(a, conversingWorker)
	s := talk{w, a, k, k.Claim(w.New(a).ID)}
	s.say("my private words")
	cloud := func(in *api.AgentInput) { in.Mode = api.Cloud }
	w.Edit(a.ID, cloud)
	if _, err := k.Complete(s.c, "x"); err != nil {
		t.Fatal(err)
	}
	if all := w.All(a.ID); len(all) != 1 {
		t.Fatalf("it went on in %d sessions", len(all))
	}
	_, err := w.PostMessage(ctx, w.Owner, s.c.SessionID, api.MessageInput{Text: "go on"})
	if api.CodeOf(err) != api.CodeConflict || !strings.Contains(err.Error(), "cloud") {
		t.Errorf("a message to the local conversation: %v", err)
	}
	if _, err := w.PatchThread(ctx, w.Owner, s.c.Session.ThreadID, api.ThreadPatch{State: api.ThreadPending}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("the local conversation handed over again: %v", err)
	}
	again, err := w.RetrySession(ctx, w.Owner, s.c.SessionID)
	if err != nil || again.Mode != api.Cloud || again.ThreadID == s.c.Session.ThreadID || again.RetryOf != 0 || again.AgentSessionID != "" || again.Prompt != s.c.Session.Prompt {
		t.Errorf("run once more as %+v, %v", again, err)
	}
	if m, err := w.Messages(ctx, eve, again.ID, 0); err != nil || len(m.Items) != 0 {
		t.Errorf("a viewer reads %+v, %v", m.Items, err)
	}
	// The other way round: what is local now is not included in what everybody saw.
	ck := w.Worker(a, conversingWorker, func(in *api.WorkerInput) { in.Mode = api.Cloud })
	if _, err := ck.Complete(ck.Claim(again.ID), "x"); err != nil {
		t.Fatal(err)
	}
	w.Edit(a.ID, func(in *api.AgentInput) { in.Mode = api.Local })
	own, err := w.RetrySession(ctx, w.Owner, again.ID)
	if err != nil || own.Mode != api.Local || own.ThreadID == again.ThreadID {
		t.Errorf("run once more for oneself as %+v, %v", own, err)
	}
}

// A cursor that isn't a message of the thread would swallow what is said later.
func TestMessages_TheCursorIsAMessageOfTheThread(t *testing.T) {
	s := newTalk(t)
	other := talk{s.w, s.a, s.k, api.Claim{SessionID: s.w.New(s.a).ID}}
	elsewhere := other.say("elsewhere").Message.ID
	for _, id := range []api.MessageID{math.MaxInt64, elsewhere, -1} {
		_, err := s.patch(func(in *api.SessionPatch) { in.TurnEnded, in.LastConsumed = true, id })
		if got := fields(t, err); got != "lastConsumed" {
			t.Errorf("%d is refused for %q", id, got)
		}
	}
	said := s.say("hello?").Message.ID
	if _, err := s.patch(func(in *api.SessionPatch) { in.TurnEnded, in.LastConsumed = true, said }); err != nil {
		t.Fatal(err)
	}
}

// A command takes no messages; any other agent continues with them, even when it never
// reported its agent session. The claim gets what doesn't fit into a prompt.
func TestMessages_NothingIsLostAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct{ n, size, inPrompt int }{
		"one": {1, 10, 1}, "what fits": {7, 64 << 10, 7}, "more than fits": {12, 64 << 10, 7},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTalk(t)
			for range c.n {
				s.say(strings.Repeat("a", c.size))
			}
			if _, err := s.k.Complete(s.c, "x"); err != nil {
				t.Fatal(err)
			}
			all := s.w.All(s.a.ID)
			if len(all) != 2 || len(all[1].Prompt) != c.inPrompt*(c.size+2)-2 {
				t.Fatalf("%d sessions, the last with a prompt of %d bytes", len(all), len(all[len(all)-1].Prompt))
			}
			next := s.k.Claim(all[1].ID)
			if got := len(next.Conversation.Messages); got != c.n-c.inPrompt {
				t.Errorf("the claim gets %d messages", got)
			}
		})
	}
}

// A client id belongs to one user, and to one text.
func TestMessages_AClientIDIsOneMessageOfOneUser(t *testing.T) {
	w, _ := withOwner(t)
	_, ben := joined(t, w, api.Admin, "ben")
	a := w.Agent(conversing, func(in *api.AgentInput) { in.Mode = api.Cloud })
	id := w.New(a).ID
	say := func(by engine.Caller, text string) (api.MessageID, error) {
		p, err := w.PostMessage(t.Context(), by, id, api.MessageInput{Text: text, ClientID: "c"})
		if err != nil {
			return 0, err
		}
		return p.Message.ID, nil
	}
	first, err := say(w.Owner, "one")
	again, err2 := say(w.Owner, "one")
	if err != nil || err2 != nil || first != again {
		t.Fatalf("repeated: %v %v, %v %v", first, again, err, err2)
	}
	if _, err := say(w.Owner, "TWO"); api.CodeOf(err) != api.CodeIdempotencyReuse {
		t.Errorf("with another text: %v", err)
	}
	if theirs, err := say(ben, "one"); err != nil || theirs == first {
		t.Errorf("by another user: %v, %v", theirs, err)
	}
	if m, err := w.Messages(t.Context(), w.Owner, id, 0); err != nil || len(m.Items) != 2 {
		t.Errorf("said: %+v, %v", m.Items, err)
	}
}

// A late result is of a claim that ended without its worker.
func TestLateResult_NotOfAClaimThatFinished(t *testing.T) {
	s := newTalk(t)
	late := func(c api.Claim) error {
		return s.w.KeepLateResult(t.Context(), s.w.Owner, c.Session.ThreadID, api.CompleteRequest{UnderClaim: s.k.Under(c.ClaimID), Result: "forged"})
	}
	if err := late(s.c); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("of a live claim: %v", err)
	}
	if _, err := s.k.Release(s.c); err != nil {
		t.Fatal(err)
	}
	lost := s.k.Claim(s.c.SessionID)
	s.w.Advance(20 * time.Minute)
	k := s.w.Worker(s.a, conversingWorker)
	done := k.Claim(s.c.SessionID)
	if _, err := k.Complete(done, "the result"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]api.Claim{"released": s.c, "completed": done} {
		if err := late(c); api.CodeOf(err) != api.CodeOutcomeConflict {
			t.Errorf("of a claim that %s: %v", name, err)
		}
	}
	if err := late(lost); err != nil {
		t.Errorf("of a claim that lapsed: %v", err)
	}
}
