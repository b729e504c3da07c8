package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
)

// A run that ended well without what its agent expects of it is marked, or fails.
func TestExpect_WhatMustComeOfARun(t *testing.T) {
	t.Parallel()
	const nothing = "Its agent expects changes, and nothing in its repository changed."
	w := newFixture(t)
	dirty := w.repository()
	w.must(os.WriteFile(filepath.Join(dirty, "old"), []byte("x"), 0o600))
	cases := []struct {
		slug, folder, expect, script string
		strict                       bool
		outcome, why                 string
	}{
		{"adds", w.repository(), "changes", "echo x > new", false, api.OutcomeSuccess, ""},
		{"commits", w.repository(), "changes", "git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m more", false, api.OutcomeSuccess, ""},
		{"rewrites", dirty, "changes", "echo yy > old", false, api.OutcomeSuccess, ""},
		{"idle", w.repository(), "changes", "true", false, api.OutcomeUnmet, nothing},
		{"idler", dirty, "changes", "cat old", false, api.OutcomeUnmet, nothing},
		{"failing", w.repository(), "changes", "true", true, CodeExpectationFailed, nothing},
		{"homeless", w.TempDir(), "changes", "echo x > new", false, api.OutcomeUnmet, "the folder is in no git repository"},
		{"says", w.TempDir(), "output:^all \\d+ pass", "echo all 12 pass", true, api.OutcomeSuccess, ""},
		{"silent", w.TempDir(), "output:^all \\d+ pass", "echo one failed", false, api.OutcomeUnmet, "does not match"},
		{"wrong", w.TempDir(), "output:x", "echo y; exit 3", true, CodeExitNonzero, ""},
	}
	ids := map[string]api.SessionID{}
	agents := map[string]api.Agent{}
	for _, c := range cases {
		agents[c.slug] = w.agentWith(c.slug, func(in *api.AgentInput) {
			in.Run.WorkFolder, in.Run.Expect, in.Run.Strict = c.folder, c.expect, c.strict
		}, "sh", "-c", c.script)
	}
	w.start(w.options())
	for _, c := range cases {
		ids[c.slug] = w.trigger(agents[c.slug], "")
		s := w.until(ids[c.slug], "over", func(s api.Session) bool { return s.Status.Terminal() })
		got := s.Outcome
		if s.Error != nil {
			got = s.Error.Code
		}
		if got != c.outcome || !strings.Contains(s.MarkReason, c.why) || c.why == "" && s.MarkReason != "" {
			t.Errorf("%s: %q because %q, want %q", c.slug, got, s.MarkReason, c.outcome)
		}
	}
}

// A conversation in which something was refused, by the policy or by a person, or whose tools
// did not start, ends with a mark, and says what it was.
func TestMark_OfAConversation(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("meek", nil)
	w.start(o)
	for _, c := range []struct {
		play, outcome, why string
		approve            *bool
	}{
		{"!refuse git push\n!refuse git push -f\n!say green", api.OutcomeRefused, "git push (Bash) was refused", nil},
		{"!toolless no tools\n!say green", api.OutcomeToolless, "no tools", nil},
		{"!ask rm x", api.OutcomeRefused, "A person refused: rm x", new(false)},
		{"!ask rm x", api.OutcomeSuccess, "", new(true)},
	} {
		id := w.trigger(a, c.play)
		if c.approve != nil {
			s := w.until(id, "asking", func(s api.Session) bool { return s.Prompted != nil })
			w.answer(s, api.Answer{Approved: c.approve})
		}
		s := w.untilStatus(id, api.Complete)
		if s.Outcome != c.outcome || !strings.Contains(s.MarkReason, c.why) || c.why == "" && s.MarkReason != "" {
			t.Errorf("%q: %q because %q, want %q", c.play, s.Outcome, s.MarkReason, c.outcome)
		}
	}
}

// A session that is given back and goes on is compared with how it first found its folder.
func TestExpect_OutlastsARelease(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	repo := w.repository()
	a, o, _ := w.talks("twice", func(in *api.AgentInput) { in.Run.WorkFolder, in.Run.Expect, in.Run.Strict = repo, "changes", true })
	first := w.start(o)
	id := w.trigger(a, "!ask go on")
	w.untilStatus(id, api.AwaitingInput)
	w.must(os.WriteFile(filepath.Join(repo, "made"), []byte("x"), 0o600))
	first.end()
	w.untilStatus(id, api.Queued)
	w.start(o)
	w.answer(w.untilStatus(id, api.AwaitingInput), approve(true))
	if s := w.until(id, "over", func(s api.Session) bool { return s.Status.Terminal() }); s.Outcome != api.OutcomeSuccess {
		t.Errorf("outcome %q, %v", s.Outcome, s.Error)
	}
}
