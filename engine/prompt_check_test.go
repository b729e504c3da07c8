package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// Every run that was given no prompt gets the agent's own, however it was created; an explicit
// empty prompt means none (contract 2.0).
func TestPrompt_IsTheAgentsOwnThroughWhateverDoor(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("*/5 * * * *", overlap(api.OverlapAllow)), func(in *api.AgentInput) {
		in.Name, in.Prompt, in.MaxConcurrent = "Tidy up", "Tidy the house.\nAll of it.", 9
	})
	k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 9 })
	made := func(c engine.Caller, in api.SessionInput) api.SessionID {
		t.Helper()
		s, _, err := w.CreateSession(t.Context(), c, a.Slug, in, engine.Idempotency{})
		if err != nil {
			t.Fatal(err)
		}
		return s.ID
	}
	hook, err := w.OpenTriggerURL(t.Context(), w.Owner, a.Slug, api.TriggerURLInput{})
	if err != nil {
		t.Fatal(err)
	}
	called, _, err := w.Trigger(t.Context(), hook.ID, "m1", []byte(`{"say":"nothing"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	byHand := made(w.Owner, api.SessionInput{})
	run, err := acts(t, w, k.Claim(byHand).RunToken)
	if err != nil {
		t.Fatal(err)
	}
	none := made(w.Owner, api.SessionInput{Prompt: new("")})
	if _, err := w.CancelSession(t.Context(), w.Owner, none, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	again, err := w.RetrySession(t.Context(), w.Owner, none)
	if err != nil {
		t.Fatal(err)
	}
	byRun := made(run, api.SessionInput{})
	w.Advance(5 * time.Minute)
	var bySlot api.SessionID
	for _, s := range w.All(a.ID) {
		if s.TriggeredBy == api.ByScheduler {
			bySlot = s.ID
		}
	}
	for door, want := range map[api.SessionID]struct{ name, prompt, title string }{
		byHand:   {"a person who says nothing", a.Prompt, "Tidy the house."},
		byRun:    {"a run that says nothing", a.Prompt, "Tidy the house."},
		called:   {"a trigger URL", a.Prompt, "Tidy the house."},
		bySlot:   {"the schedule", a.Prompt, "Tidy the house."},
		none:     {"a person who says that there is none", "", "Tidy up"},
		again.ID: {"a retry of that", "", "Tidy up"},
		made(w.Owner, api.SessionInput{Prompt: new("Dust.")}): {"a person's own", "Dust.", "Dust."},
	} {
		if got := w.Get(door); got.Prompt != want.prompt || got.Title != want.title {
			t.Errorf("%s: prompt %q and title %q, want %q and %q", want.name, got.Prompt, got.Title, want.prompt, want.title)
		}
	}
}
