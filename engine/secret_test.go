package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A secret answer goes to the claim that waits for it, and to a later claim that takes the
// session up, and to nobody else by any route.
func TestSecret_IsToldToTheClaimAlone(t *testing.T) {
	w, _ := withOwner(t)
	a := w.Agent(conversing, func(in *api.AgentInput) { in.Mode = api.Cloud })
	k := w.Worker(a, conversingWorker, func(in *api.WorkerInput) { in.Mode = api.Cloud })
	s := talk{w, a, k, k.Claim(w.New(a).ID)}
	_, eve := joined(t, w, api.Viewer, "eve")
	const canary = "hunter2"
	p := s.ask(api.PromptInput{Kind: api.PromptQuestions, Text: "q", DeadlineSeconds: 3600, Choices: []api.Choice{
		{ID: "pw", Text: "Password?", Secret: true}, {ID: "who", Text: "Who?"},
	}, Default: &api.Answer{Choices: map[string]string{"pw": canary, "who": "root"}, Text: "or " + canary}})
	type look func() (any, error)
	see := func(by engine.Caller, claim api.ClaimID) look {
		return func() (any, error) { return w.AwaitAnswer(t.Context(), by, s.c.SessionID, p.ID, claim, 0) }
	}
	secret := func(name string, l look) {
		t.Helper()
		got, err := l()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := json.Marshal(got)
		if err != nil || strings.Contains(string(text), canary) {
			t.Errorf("%s tells %s, %v", name, text, err)
		}
	}
	secret("the open question", see(w.Owner, api.ClaimID{}))
	secret("the open question, of a claim by somebody else", see(eve, s.c.ClaimID))
	secret("the session", func() (any, error) { return w.Session(t.Context(), w.Owner, s.c.SessionID) })
	if _, err := s.answer(p, api.Answer{Choices: map[string]string{"pw": canary, "who": "me"}, Text: "it is " + canary}); err != nil {
		t.Fatal(err)
	}
	for who, by := range map[string]engine.Caller{"the owner": w.Owner, "a viewer": eve} {
		secret("the answer to "+who, see(by, api.ClaimID{}))
		secret("items to "+who, func() (any, error) { l, _, err := w.Items(t.Context(), by, s.c.SessionID, 0, 100); return l, err })
		secret("the log to "+who, func() (any, error) { return w.Events(t.Context(), by, 0, 200) })
		secret("the inbox of "+who, func() (any, error) { return w.Inbox(t.Context(), by) })
	}
	told, err := w.AwaitAnswer(t.Context(), w.Owner, s.c.SessionID, p.ID, s.c.ClaimID, 0)
	if err != nil || told.Answer == nil || told.Answer.Choices["pw"] != canary || told.Answer.Choices["who"] != "me" || told.Answer.Text != "it is "+canary {
		t.Errorf("the claim gets %+v, %v", told.Answer, err)
	}
	seen, err := w.Prompt(t.Context(), eve, s.c.SessionID, p.ID)
	if err != nil || seen.Answer == nil || seen.Answer.Choices["who"] != "me" || seen.Answer.Choices["pw"] == "" {
		t.Errorf("a viewer gets %+v, %v", seen.Answer, err)
	}
	run, err := acts(t, w, s.c.RunToken)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]look{"a viewer with the claim": see(eve, s.c.ClaimID), "the run": see(run, s.c.ClaimID)} {
		if _, err := l(); api.CodeOf(err) != api.CodeClaimNotActive {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Advance(20 * time.Minute) // the lease is over
	if _, err := see(w.Owner, s.c.ClaimID)(); api.CodeOf(err) != api.CodeClaimNotActive {
		t.Errorf("a claim that lapsed: %v", err)
	}
	k = w.Worker(a, conversingWorker, func(in *api.WorkerInput) { in.Mode = api.Cloud })
	c := k.Claim(s.c.SessionID)
	if said := c.Conversation.Answered; len(said) != 1 || said[0].Answer.Choices["pw"] != canary {
		t.Errorf("the next claim gets %+v", said)
	}
	if _, err := w.CancelSession(context.Background(), w.Owner, s.c.SessionID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	secret("the answer at the end", see(w.Owner, api.ClaimID{}))
	if got, err := w.Prompt(t.Context(), w.Owner, s.c.SessionID, p.ID); err != nil || got.Answer == nil || got.Answer.Choices["who"] != "me" {
		t.Errorf("what isn't secret is %+v, %v", got.Answer, err)
	}
	stores(t, w, canary, false)
}

// stores reports whether the database has a text in any of its prompts.
func stores(t *testing.T, w *enginetest.Fixture, text string, want bool) {
	t.Helper()
	found := w.Tell("SELECT CAST(id AS TEXT) FROM prompts WHERE instr(answer_detail || fallback || answer || text || detail, ?1) > 0", text)
	if (len(found) > 0) != want {
		t.Errorf("the prompts %v hold the secret answer", found)
	}
}

// A secret answer is kept as long as a claim may need it: to the end of the turn that asked,
// or of the session, however that ends.
func TestSecret_IsForgottenWhenItWasTold(t *testing.T) {
	const canary = "hunter2hunter2"
	for name, end := range map[string]func(*enginetest.Fixture, talk) error{
		"the turn's end": func(w *enginetest.Fixture, s talk) error {
			_, err := w.PatchSession(context.Background(), w.Owner, s.k.ID, s.c.SessionID, api.SessionPatch{UnderClaim: s.k.Under(s.c.ClaimID), TurnEnded: true})
			return err
		},
		"complete": func(w *enginetest.Fixture, s talk) error {
			_, err := w.Complete(context.Background(), w.Owner, s.k.ID, s.c.SessionID, api.CompleteRequest{UnderClaim: s.k.Under(s.c.ClaimID)})
			return err
		},
		"cancel": func(w *enginetest.Fixture, s talk) error {
			_, err := w.CancelSession(context.Background(), w.Owner, s.c.SessionID, api.CancelInput{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := withOwner(t)
			a := w.Agent(conversing)
			k := w.Worker(a, conversingWorker)
			s := talk{w, a, k, k.Claim(w.New(a).ID)}
			p := s.ask(api.PromptInput{Kind: api.PromptQuestions, Text: "q", Choices: []api.Choice{{ID: "pw", Text: "Password?", Secret: true}}})
			said := api.Answer{Choices: map[string]string{"pw": "a"}, Text: canary}
			if _, err := s.answer(p, said); err != nil {
				t.Fatal(err)
			}
			stores(t, w, canary, true)
			if err := end(w, s); err != nil {
				t.Fatal(err)
			}
			stores(t, w, canary, false)
		})
	}
}
