package engine_test

import (
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

// What happened to a conversation is in the log, in the transaction that changes it: not again
// when a question is asked or answered, and never for a command (contract 2.7).
func TestThread_WhatBecomesOfItIsLogged(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(conversing)
	k := w.Worker(a, conversingWorker)
	threads := func(id api.SessionID) string {
		t.Helper()
		var out []string
		list, err := w.SessionEvents(t.Context(), w.Owner, id, api.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range list.Items {
			if kind, ok := strings.CutPrefix(ev.Type, "thread_"); ok {
				if ev.Data["thread"] != w.Get(id).ThreadID.String() {
					t.Errorf("%s is about %v", ev.Type, ev.Data)
				}
				out = append(out, kind)
			}
		}
		slices.Reverse(out)
		return strings.Join(out, " ")
	}
	c := k.Claim(w.New(a).ID)
	if _, err := k.Ask(c, "which?"); err != nil {
		t.Fatal(err)
	}
	p := w.Get(c.SessionID).Prompted
	if _, err := w.AnswerPrompt(t.Context(), w.Owner, c.SessionID, api.AnswerInput{PromptID: p.ID, Answer: api.Answer{Text: "this"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Release(c); err != nil {
		t.Fatal(err)
	}
	if got := threads(c.SessionID); got != "active" {
		t.Errorf("given back, the log has %q", got)
	}
	c = k.Claim(c.SessionID)
	if _, err := k.Complete(c, "done"); err != nil {
		t.Fatal(err)
	}
	if got := threads(c.SessionID); got != "active active completed" {
		t.Errorf("complete, the log has %q", got)
	}
	waits := w.New(a)
	if _, err := w.CancelSession(t.Context(), w.Owner, waits.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	if got := threads(waits.ID); got != "failed" {
		t.Errorf("cancelled, the log has %q", got)
	}
	command := w.Agent()
	c = w.Worker(command).Claim(w.New(command).ID)
	if got := threads(c.SessionID); got != "" {
		t.Errorf("of a command the log has %q", got)
	}
}
