package worker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stint/api"
	"stint/worker/agent"
)

// What counts at a deadline is never a yes, and always an answer that the question allows.
func TestAsk_WhatCountsWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	const decide = "Nobody answered in time. Decide yourself, and say what you assumed."
	for name, c := range map[string]struct {
		q    agent.Question
		want api.Answer
	}{
		"an approval": {agent.Question{Kind: agent.AskApproval, Text: "rm"}, api.Answer{Approved: new(bool), Text: "Nobody answered in time."}},
		"a text":      {agent.Question{Kind: agent.AskText, Text: "Why?"}, api.Answer{Text: decide}},
		"questions": {agent.Question{Kind: agent.AskQuestions, Text: "?", Choices: []agent.Choice{
			{Text: "one of these", Options: []string{"red", "blue"}}, {Text: "or another", Options: []string{"red"}, Other: true}, {Text: "any text"},
		}}, api.Answer{Choices: map[string]string{"q1": "red", "q2": decide, "q3": decide}}},
	} {
		h := &host{c: &conversation{plan: plan{runSettings: runSettings{answerWithin: 90 * time.Second}}}}
		in := h.promptOf(c.q)
		if diff := cmp.Diff(&c.want, in.Default); diff != "" || in.DeadlineSeconds != 90 {
			t.Errorf("%s: after %d s\n%s", name, in.DeadlineSeconds, diff)
		}
		h.c.plan.answerWithin = 0
		if in := h.promptOf(c.q); in.Default != nil || in.DeadlineSeconds != 0 {
			t.Errorf("%s without a deadline: %+v", name, in)
		}
	}
}
