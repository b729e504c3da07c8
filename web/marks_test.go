package web

import (
	"strings"
	"testing"

	"stint/api"
)

// A session that is complete but no plain success isn't green anywhere that it is listed.
func TestBadge_OnlyAPlainSuccessIsGreen(t *testing.T) {
	for _, tt := range []struct {
		outcome, word string
		green         bool
	}{
		{api.OutcomeSuccess, "Complete", true},
		{"my own word", "Complete", true},
		{api.OutcomeStopped, "Stopped", false},
		{api.OutcomeUnfinished, "Unfinished", false},
		{api.OutcomeRefused, "Acts refused", false},
		{api.OutcomeToolless, "Tools missing", false},
		{api.OutcomeUnmet, "Expectation unmet", false},
	} {
		var b strings.Builder
		if err := SessionBadge(api.Session{Status: api.Complete, Outcome: tt.outcome}).Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if html := b.String(); strings.Contains(html, "s-complete") != tt.green || !strings.Contains(html, tt.word) {
			t.Errorf("%s is shown as %s", tt.outcome, html)
		}
	}
}

func TestWords_CapitalsOfAnyAlphabet(t *testing.T) {
	for words, want := range map[string]string{"": "", "émile": "Émile", "acts refused": "Acts refused", "7 up": "7 up"} {
		if got := capitalised(words); got != want {
			t.Errorf("%q becomes %q", words, got)
		}
	}
}
