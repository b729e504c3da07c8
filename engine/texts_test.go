package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// Invalid bytes are replaced in everything that a worker reports, and break nothing (contract
// 6.2).
func TestWorkersTexts_AreMended(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent(conversing)
	k := w.Worker(a, conversingWorker)
	id := w.New(a).ID
	c := k.Claim(id)
	const bad, good = "a\x00b\xffc", "a\uFFFDb\uFFFDc"
	under := k.Under(c.ClaimID)
	same := func(what, got string) {
		t.Helper()
		if got != good {
			t.Errorf("%s: %q", what, got)
		}
	}
	act := must[api.Activity](t)(w.AddActivity(ctx, k.Caller, k.ID, id, api.ActivityInput{UnderClaim: under, Key: "1", Type: api.ActivityProgress, Text: bad, Detail: bad}))
	same("activity", act.Text)
	same("its detail", act.Detail)
	must[api.ItemsAnswer](t)(w.AddItems(ctx, k.Caller, k.ID, id, api.ItemsRequest{UnderClaim: under, Items: []api.ItemInput{{ClientID: "1", Kind: api.ItemText, Text: bad}}}))
	items, _, err := w.Items(ctx, w.Owner, id, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		if item.Kind == api.ItemText {
			same("item", item.Text)
		}
	}
	plan := bad
	s := must[api.Session](t)(w.PatchSession(ctx, k.Caller, k.ID, id, api.SessionPatch{
		UnderClaim: under, Plan: &plan, Status: api.AwaitingInput, Prompt: &api.PromptInput{
			Kind: api.PromptQuestions, Text: bad, Choices: []api.Choice{{ID: "q", Text: bad, Options: []string{bad}}},
			DeadlineSeconds: 60, Default: &api.Answer{Choices: map[string]string{"q": bad}},
		},
	}))
	same("plan", s.Plan)
	same("prompt", s.Prompted.Text)
	same("question", s.Prompted.Choices[0].Text)
	same("option", s.Prompted.Choices[0].Options[0])
	must[api.Finished](t)(w.Fail(ctx, k.Caller, k.ID, id, api.FailRequest{UnderClaim: under, Code: "X", Message: bad, Result: bad}))
	s = w.Get(id)
	same("message", s.Error.Message)
	same("result", s.Result)
}

// A word by which programs know something is one line, with no invisible characters.
func TestWorkersWords_AreOneLine(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent()
	k := w.Worker(a)
	id := w.New(a).ID
	c := k.Claim(id)
	under := k.Under(c.ClaimID)
	refused := func(err error, field string) {
		t.Helper()
		e := (*api.Error)(nil)
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != field || !strings.Contains(e.Fields[0].Detail, "one line") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, bad := range []string{"X\u202eY\x1b[31m", "a\x00b", "a\u200bb", "a\nb"} {
		_, err := k.Fail(c, bad)
		refused(err, "code")
		_, err = w.PatchSession(ctx, k.Caller, k.ID, id, api.SessionPatch{UnderClaim: under, AgentSessionID: &bad})
		refused(err, "agentSessionId")
		for field, item := range map[string]api.ItemInput{
			"items[0].clientId": {ClientID: bad, Kind: api.ItemText}, "items[0].tool": {Kind: api.ItemToolCall, Tool: bad, CallID: "1"},
			"items[0].callId": {Kind: api.ItemToolCall, CallID: bad},
		} {
			_, err = w.AddItems(ctx, k.Caller, k.ID, id, api.ItemsRequest{UnderClaim: under, Items: []api.ItemInput{item}})
			refused(err, field)
		}
		_, err = w.AddActivity(ctx, k.Caller, k.ID, id, api.ActivityInput{UnderClaim: under, Key: bad, Type: api.ActivityProgress, Text: "x"})
		refused(err, "key")
	}
}

// A title that is taken from a prompt has nothing that acts on a terminal.
func TestTitle_OfAPromptIsClean(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	for prompt, want := range map[string]string{
		"\x1b]0;PWN\x07\u202eMend the\tbuild\nat once": "Mend the build", "\u200b\n\n go on": "go on", "\x1b[31mred\u200b": "red",
	} {
		if s := w.New(a, func(in *api.SessionInput) { in.Prompt = &prompt }); s.Title != want {
			t.Errorf("%q is called %q", prompt, s.Title)
		}
	}
}

// Two names that look the same are the same, whatever has one.
func TestNames_HoldNothingUnseen(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent()
	for _, bad := range []string{"a\u200bb", "a\u00adb", "\ufeffab", "ab\U000e0041", "a\u200db", "a\u3164b"} {
		_, agent := w.EditAgent(ctx, w.Owner, a.Slug, func(in *api.AgentInput) error { in.Name = bad; return nil })
		_, _, session := w.CreateSession(ctx, w.Owner, a.Slug, api.SessionInput{Title: bad}, engine.Idempotency{})
		_, key := w.CreateKey(ctx, w.Owner, api.KeyInput{Name: bad, Scopes: []api.Scope{"read"}})
		_, workspace := w.RenameWorkspace(ctx, w.Owner, bad)
		_, worker := w.RegisterWorker(ctx, w.Owner, a.Slug, api.WorkerInput{Name: bad, InstanceID: "1"})
		for what, err := range map[string]error{"agent": agent, "session": session, "key": key, "workspace": workspace, "worker": worker} {
			if e := (*api.Error)(nil); !errors.As(err, &e) || len(e.Fields) != 1 || !strings.Contains(e.Fields[0].Detail, "seen") {
				t.Errorf("%s %+q: %v", what, bad, err)
			}
		}
	}
	for _, good := range []string{"می\u200cخواهم", "👩\u200d💻 bot", "❤\ufe0f"} {
		if _, err := w.EditAgent(ctx, w.Owner, a.Slug, func(in *api.AgentInput) error { in.Name = good; return nil }); err != nil {
			t.Errorf("%+q: %v", good, err)
		}
	}
}
