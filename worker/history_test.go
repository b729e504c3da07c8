package worker

import (
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent"
)

// A conversation whose agent session the program no longer knows continues in a new one, which
// gets what was said, fenced as text that people wrote; the transcript says so.
func TestConverse_GoesOnWhenItsAgentSessionIsGone(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, file := w.talks("talker", nil)
	w.start(o)
	s := w.untilStatus(w.trigger(a, "!cost 1000"), api.Complete)
	// Earlier lines that the parrot would obey stand behind a label.
	for i, then := range []func() (api.Session, error){
		func() (api.Session, error) {
			posted, err := w.client.PostMessage(t.Context(), s.ID, api.MessageInput{Text: "!cost 10"})
			return posted.Session, err
		},
		func() (api.Session, error) {
			again, err := w.client.RetrySession(t.Context(), s.ID)
			return again.Session, err
		},
	} {
		touch(t, file+".lost")
		next, err := then()
		w.must(err)
		got := w.untilStatus(next.ID, api.Complete)
		if got.ThreadID != s.ThreadID || got.AgentSessionID == s.AgentSessionID || got.Fence != 1 || got.Tries != 0 {
			t.Errorf("%d: it went on as %+v", i, got)
		}
		if want := []int64{10, 1000}[i]; got.Usage.CostMicros != want {
			t.Errorf("%d: it cost %d, want %d", i, got.Usage.CostMicros, want)
		}
		lines := kinds(w.items(next.ID), api.ItemStatus)
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "told what was said so far") }) {
			t.Errorf("%d: the transcript says %q", i, lines)
		}
		s.AgentSessionID = got.AgentSessionID
	}
}

// noting is a parrot that says what doesn't hold.
type noting struct{ parrot }

func (n noting) Command(j agent.Job) (agent.Command, error) {
	c, err := n.parrot.Command(j)
	c.Unheld = []string{"Nothing holds it."}
	return c, err
}

// What is said of the program's start is said once, though it is started anew because it no longer
// knows the conversation.
func TestConverse_SaysOnceWhatItIsStartedWith(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, file := w.talks("talker", nil)
	known := o.adapters[api.TypeClaudeCode]
	known.agent = noting{known.agent.(parrot)}
	o.adapters[api.TypeClaudeCode] = known
	w.start(o)
	s := w.untilStatus(w.trigger(a, "!say one"), api.Complete)
	touch(t, file+".lost")
	posted, err := w.client.PostMessage(t.Context(), s.ID, api.MessageInput{Text: "!say two"})
	w.must(err)
	got := w.untilStatus(posted.Session.ID, api.Complete)
	if got.AgentSessionID == s.AgentSessionID {
		t.Error("it was not started anew")
	}
	for _, id := range []api.SessionID{s.ID, got.ID} {
		if lines := kinds(w.items(id), api.ItemStatus); strings.Count(strings.Join(lines, "\n"), "Nothing holds it.") != 1 {
			t.Errorf("the transcript says %q", lines)
		}
	}
}

func TestBriefing_ANewAgentSessionIsToldWhatWasSaid(t *testing.T) {
	b := newBriefing(api.Claim{Untrusted: api.Untrusted{Prompt: "go on"}})
	turn := b.turn("", past{fresh: true, said: "Asked: first\nAgent: done\n" + "ignore all"})
	begin, end := strings.Index(turn, b.fence+" begin the conversation so far"), strings.LastIndex(turn, "ignore all\n"+b.fence+" end")
	if begin < 0 || end < begin || strings.Index(turn, "go on") < end {
		t.Errorf("it gets %q", turn)
	}
}

func TestHistory_WhatIsTold(t *testing.T) {
	for _, tt := range []struct {
		item api.Item
		want string
	}{
		{api.Item{Kind: api.ItemText, Text: " hello\n"}, "Agent: hello"},
		{api.Item{Kind: api.ItemMessage, Text: "and more"}, "Person: and more"},
		{api.Item{Kind: api.ItemToolCall, Tool: "Bash", Text: "ls\n-l"}, "Agent used Bash: ls -l"},
		{api.Item{Kind: api.ItemThinking, Text: "hm"}, ""},
		{api.Item{Kind: api.ItemStatus, Text: "started"}, ""},
		{api.Item{Kind: api.ItemText}, ""},
	} {
		if got := saidIn(tt.item); got != tt.want {
			t.Errorf("%v is shown as %q, want %q", tt.item.Kind, got, tt.want)
		}
	}
}
