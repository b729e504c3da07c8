package worker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stint/api"
)

var png = []byte("\x89PNG\r\n\x1a\n and the rest")

// What comes with a prompt and with messages is there for the agent, by its bytes' type, and is gone
// when the session has ended.
func TestFiles_ReachAConversation(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	w.start(o)
	prompt := "!say one\n!take\n!ask go on?"
	s, _, err := w.client.CreateSession(t.Context(), a.Slug, api.SessionInput{Prompt: &prompt, Files: []api.FileInput{{Name: "shot.png", Data: png}, {Name: "notes.svg", Data: []byte("<svg/>")}}}, "")
	w.must(err)
	first := []string{"text shot.png image/png " + string(png) + " <nil>", "text notes.svg text/plain <svg/> <nil>", "text one"}
	w.eventually("the prompt's files are there", func() bool { return slices.Equal(kinds(w.items(s.ID), api.ItemText), valid(first)) })
	for _, now := range []bool{true, false} {
		_, err := w.client.PostMessage(t.Context(), s.ID, api.MessageInput{Text: "!say more", Now: now, Files: []api.FileInput{{Name: "shot.png", Data: []byte("another")}}})
		w.must(err)
	}
	w.answer(w.untilStatus(s.ID, api.AwaitingInput), approve(true))
	w.untilStatus(s.ID, api.Complete)
	got := kinds(w.items(s.ID), api.ItemText)
	if want := valid(append(first, "text more", "text approved true ", "text shot.png text/plain another <nil>", "text more")); !slices.Equal(got, want) {
		t.Errorf("it said\n%q, not\n%q", got, want)
	}
	w.untilDrained(a)
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "stint-files-*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("of its files %q are left, %v", left, err)
	}
}

// valid are texts as the coordinator keeps them.
func valid(texts []string) (out []string) {
	for _, text := range texts {
		out = append(out, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return out
}

// A command finds them in a folder that a variable names.
func TestFiles_ReachACommand(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	a := w.agent("lists", "sh", "-c", `cd "$STINT_FILES" && ls && cat a.txt`)
	s, _, err := w.client.CreateSession(t.Context(), a.Slug, api.SessionInput{Files: []api.FileInput{{Name: "a.txt", Data: []byte("hello")}, {Name: "b.bin", Data: []byte{0, 1}}}}, "")
	w.must(err)
	w.untilStatus(s.ID, api.Complete)
	if got := w.text(s.ID, "stdout"); got != "a.txt\nb.bin\nhello" {
		t.Errorf("it prints %q", got)
	}
}
