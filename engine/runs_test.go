package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// acts makes the caller of a run's token.
func acts(t *testing.T, w *enginetest.Fixture, token string) (engine.Caller, error) {
	t.Helper()
	who, err := w.Authenticate(t.Context(), token)
	if err != nil {
		return engine.Caller{}, err
	}
	return w.In(t.Context(), who, account.DefaultWorkspace)
}

func alive(t *testing.T, w *enginetest.Fixture, token string) bool {
	t.Helper()
	_, err := acts(t, w, token)
	if err != nil && api.CodeOf(err) != api.CodeUnauthenticated {
		t.Fatal(err)
	}
	return err == nil
}

// A chain of agents that start each other ends after three, each with its parent and depth,
// for the person who began it.
func TestRun_AgentsStartAgentsThreeDeep(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 10 })
	k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 10 })
	s := w.New(a)
	for depth := int64(0); ; depth++ {
		c := k.Claim(s.ID)
		by, err := acts(t, w, c.RunToken)
		if err != nil {
			t.Fatal(err)
		}
		next, _, err := w.CreateSession(t.Context(), by, a.Slug, api.SessionInput{}, engine.Idempotency{})
		if depth == 3 {
			if api.CodeOf(err) != api.CodeForbidden || !strings.Contains(err.Error(), "3 deep") {
				t.Errorf("the fourth start answered %v", err)
			}
			return
		}
		if err != nil {
			t.Fatalf("start %d: %v", depth+1, err)
		}
		if next.TriggeredBy != api.ByAgent || next.Parent != s.ID || next.Depth != depth+1 || next.TriggeredByUserID != w.Owner.UserID || next.OwnerUserID != w.Owner.UserID {
			t.Fatalf("start %d made %+v", depth+1, next)
		}
		if own, err := w.Session(t.Context(), by, next.ID); err != nil || own.ID != next.ID {
			t.Errorf("the agent can't read what it started: %v", err)
		}
		s = next
	}
}

func TestRun_AnAgentStartsTwentyUnderOneClaim(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	by, err := acts(t, w, c.RunToken)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 21 {
		key := engine.Idempotency{Key: fmt.Sprint("k", i), Route: "r"}
		made, _, err := w.CreateSession(t.Context(), by, a.Slug, api.SessionInput{}, key)
		if i < 20 {
			if err != nil {
				t.Fatalf("start %d: %v", i+1, err)
			}
			// The same request again is the same session and counts once.
			if again, replayed, err := w.CreateSession(t.Context(), by, a.Slug, api.SessionInput{}, key); err != nil || !replayed || again.ID != made.ID {
				t.Fatalf("start %d again: %v %t", i+1, err, replayed)
			}
			continue
		}
		if api.CodeOf(err) != api.CodeForbidden {
			t.Errorf("start %d answered %v", i+1, err)
		}
	}
}

// However a claim ends, its token ends with it; a repeated claim's tokens stay valid.
func TestRun_TokensDieWithTheirClaim(t *testing.T) {
	endings := map[string]func(w *enginetest.Fixture, k *enginetest.Worker, c api.Claim) error{
		"complete": func(_ *enginetest.Fixture, k *enginetest.Worker, c api.Claim) error {
			return func() error { _, err := k.Complete(c, "done"); return err }()
		},
		"release": func(w *enginetest.Fixture, k *enginetest.Worker, c api.Claim) error {
			_, err := w.Release(context.Background(), k.Caller, k.ID, c.SessionID, api.ReleaseRequest{UnderClaim: k.Under(c.ClaimID)})
			return err
		},
		"cancel": func(w *enginetest.Fixture, _ *enginetest.Worker, c api.Claim) error {
			_, err := w.CancelSession(context.Background(), w.Owner, c.SessionID, api.CancelInput{})
			return err
		},
		"delete": func(w *enginetest.Fixture, k *enginetest.Worker, _ api.Claim) error {
			return w.DeleteWorker(context.Background(), w.Owner, k.ID)
		},
		"lapse": func(w *enginetest.Fixture, _ *enginetest.Worker, _ api.Claim) error {
			w.Advance(16 * time.Minute)
			return nil
		},
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent()
			k := w.Worker(a)
			first := k.Claim(w.New(a).ID)
			again := k.Claim(first.SessionID)
			if again.ClaimID != first.ClaimID || !alive(t, w, first.RunToken) || !alive(t, w, again.RunToken) {
				t.Fatal("a repeated claim's token doesn't work, or the first one's no longer")
			}
			by, err := acts(t, w, first.RunToken)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(w, k, first); err != nil {
				t.Fatal(err)
			}
			if alive(t, w, first.RunToken) || alive(t, w, again.RunToken) {
				t.Error("the token outlives its claim")
			}
			// Nor does one that was authenticated a moment before.
			if _, _, err := w.CreateSession(t.Context(), by, a.Slug, api.SessionInput{}, engine.Idempotency{}); err == nil {
				t.Error("an agent started a session after its claim's end")
			}
			if _, err := w.Renew(t.Context(), by, k.ID, first.SessionID, api.RenewRequest{}); err == nil {
				t.Error("an agent renewed a claim after its end")
			}
		})
	}
}

// A run can write about itself what does no harm, and can end nothing.
func TestRun_WritesItsOwnSessionOnly(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 3 })
	k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 3 })
	c := k.Claim(w.New(a).ID)
	other := k.Claim(w.New(a).ID)
	by, err := acts(t, w, c.RunToken)
	if err != nil {
		t.Fatal(err)
	}
	ctx, plan, id := t.Context(), "1. look", "theirs"
	do := func(s api.SessionID) map[string]error {
		out := map[string]error{}
		_, out["renew"] = w.Renew(ctx, by, k.ID, s, api.RenewRequest{})
		_, out["extend"] = w.Extend(ctx, by, k.ID, s, api.ExtendRequest{AddSeconds: 60})
		_, out["note"] = w.AddActivity(ctx, by, k.ID, s, api.ActivityInput{Type: api.ActivityProgress, Text: "half"})
		_, out["append"] = w.AddItems(ctx, by, k.ID, s, api.ItemsRequest{Items: []api.ItemInput{{Kind: api.ItemText, Text: "x"}}})
		_, out["plan"] = w.PatchSession(ctx, by, k.ID, s, api.SessionPatch{Plan: &plan})
		_, out["read"] = w.Session(ctx, by, s)
		return out
	}
	for what, err := range do(c.SessionID) {
		if err != nil {
			t.Errorf("%s of its own: %v", what, err)
		}
	}
	for what, err := range do(other.SessionID) {
		if api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("%s of another's: %v", what, err)
		}
	}
	refused := map[string]error{}
	_, refused["usage"] = w.PatchSession(ctx, by, k.ID, c.SessionID, api.SessionPatch{Usage: &api.Usage{}})
	_, refused["agent session"] = w.PatchSession(ctx, by, k.ID, c.SessionID, api.SessionPatch{AgentSessionID: &id})
	_, refused["prompt"] = w.PatchSession(ctx, by, k.ID, c.SessionID, api.SessionPatch{Status: api.AwaitingInput, Prompt: &api.PromptInput{Kind: "text", Text: "may I?"}})
	_, refused["policy"] = w.AddActivity(ctx, by, k.ID, c.SessionID, api.ActivityInput{Type: api.ActivityPolicyDecision, Text: "allowed"})
	_, refused["completed"] = w.AddActivity(ctx, by, k.ID, c.SessionID, api.ActivityInput{Type: api.ActivityCompleted})
	_, refused["status item"] = w.AddItems(ctx, by, k.ID, c.SessionID, api.ItemsRequest{Items: []api.ItemInput{{Kind: api.ItemText}, {Kind: api.ItemStatus, Text: "x"}}})
	_, refused["complete"] = w.Complete(ctx, by, k.ID, c.SessionID, api.CompleteRequest{UnderClaim: k.Under(c.ClaimID)})
	_, refused["fail"] = w.Fail(ctx, by, k.ID, c.SessionID, api.FailRequest{UnderClaim: k.Under(c.ClaimID), Code: "X"})
	_, refused["release"] = w.Release(ctx, by, k.ID, c.SessionID, api.ReleaseRequest{UnderClaim: k.Under(c.ClaimID)})
	_, refused["cancel"] = w.CancelSession(ctx, by, c.SessionID, api.CancelInput{})
	_, refused["stop"] = w.StopSession(ctx, by, c.SessionID)
	_, refused["key"] = w.CreateKey(ctx, by, api.KeyInput{Name: "k", Scopes: api.Scopes})
	_, refused["invite"] = w.Invite(ctx, by, api.InvitationInput{Role: api.Owner})
	_, refused["leave"] = w.RemoveMember(ctx, by, by.UserID)
	_, refused["agent"] = w.EditAgent(ctx, by, a.Slug, func(in *api.AgentInput) error { in.Name = "x"; return nil })
	for what, err := range refused {
		if code := api.CodeOf(err); code != api.CodeForbidden && code != api.CodeUserTokenRequired {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A cloud session that nobody triggered acts for nobody: it starts nothing.
func TestRun_NobodysStartsNothing(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.Mode, in.Schedule = api.Cloud, "* * * * *" })
	k := w.Worker(a)
	w.Advance(61 * time.Second)
	c, err := w.ClaimNext(t.Context(), k.Caller, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{k.ID}, InstanceID: k.Instance})
	if err != nil || c == nil {
		t.Fatalf("%v %v", c, err)
	}
	by, err := acts(t, w, c.RunToken)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.CreateSession(t.Context(), by, a.Slug, api.SessionInput{}, engine.Idempotency{}); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("it started one: %v", err)
	}
	if _, err := w.AddActivity(t.Context(), by, k.ID, c.SessionID, api.ActivityInput{Type: api.ActivityProgress}); err != nil {
		t.Errorf("it can't tell of itself: %v", err)
	}
}
