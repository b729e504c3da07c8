package engine_test

import (
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A name or title that changes the direction of what follows, is invisible, or moves a
// terminal's cursor is refused where it is written.
func TestNames_RefuseWhatCannotStandInALine(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	for _, bad := range []string{"a\u202eb", "a\u2066b", "a\x1b[31mb", "a\nb", "a\u009bb", "a\x00b", "a\u2028b", "a\xffb"} {
		_, err := w.EditAgent(t.Context(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.Name = bad; return nil })
		blames(t, err, "name")
		_, _, err = w.CreateSession(t.Context(), w.Owner, a.Slug, api.SessionInput{Title: bad}, engine.Idempotency{})
		blames(t, err, "title")
		_, err = w.RenameWorkspace(t.Context(), w.Owner, bad)
		blames(t, err, "name")
		_, err = w.Invite(t.Context(), w.Owner, api.InvitationInput{Role: api.Member, Note: bad})
		blames(t, err, "note")
	}
	for _, good := range []string{"Größe", "שלום", "می\u200cخواهم", "👩\u200d🚀 crew", "日本語"} {
		if _, err := w.EditAgent(t.Context(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.Name = good; return nil }); err != nil {
			t.Errorf("%q is refused: %v", good, err)
		}
	}
}

// No text that a person writes contains NUL, and no program can be given one.
func TestTexts_HoldNoNUL(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	nul := "a\x00b"
	_, _, err := w.CreateSession(t.Context(), w.Owner, a.Slug, api.SessionInput{Prompt: &nul}, engine.Idempotency{})
	blames(t, err, "prompt")
	_, _, err = w.CreateSession(t.Context(), w.Owner, a.Slug, api.SessionInput{UntrustedContext: nul}, engine.Idempotency{})
	blames(t, err, "untrustedContext")
	_, err = w.EditAgent(t.Context(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.Instructions = nul; return nil })
	blames(t, err, "instructions")
}

func blames(t *testing.T, err error, field string) {
	t.Helper()
	e := wantCode(t, err, api.CodeInvalid)
	for _, f := range e.Fields {
		if f.Field == field {
			return
		}
	}
	t.Errorf("%v blames %v, not %s", err, e.Fields, field)
}
