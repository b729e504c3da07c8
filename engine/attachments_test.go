package engine_test

import (
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func file(name, data string) api.FileInput { return api.FileInput{Name: name, Data: []byte(data)} }

func names(all []api.Attachment) (out string) {
	for _, f := range all {
		out += f.Name + " "
	}
	return out
}

// Files come with the prompt to the claim, and with messages to the conversation; a retry has those
// of the prompt, and a session that is made of messages those of the messages.
func TestAttachments_GoWithWhatTheyCameWith(t *testing.T) {
	s := newTalk(t)
	ctx := t.Context()
	in := api.SessionInput{Files: []api.FileInput{file("a.txt", "aaa"), file("b.png", "\x89PNG\r\n\x1a\n")}}
	made, _, err := s.w.CreateSession(ctx, s.w.Owner, s.a.Slug, in, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.k.Complete(s.c, "first"); err != nil {
		t.Fatal(err)
	}
	s.c = s.k.Claim(made.ID)
	if got := s.c.Untrusted.Files; names(got) != "a.txt b.png " || got[0].Type != "text/plain" || got[1].Type != "image/png" || got[0].Size != 3 {
		t.Fatalf("the claim gets %+v", got)
	}
	if f, data, err := s.w.Attachment(ctx, s.w.Owner, made.ID, s.c.Untrusted.Files[0].ID); err != nil || f.Name != "a.txt" || string(data) != "aaa" {
		t.Errorf("it reads %+v, %q, %v", f, data, err)
	}
	_, eve := joined(t, s.w, api.Viewer, "eve")
	if _, _, err := s.w.Attachment(ctx, eve, made.ID, s.c.Untrusted.Files[0].ID); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("somebody else reads it: %v", err)
	}
	if _, err := s.w.PostMessage(ctx, s.w.Owner, made.ID, api.MessageInput{Text: "look", Files: []api.FileInput{file("c.txt", "c")}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.w.Messages(ctx, s.w.Owner, made.ID, 0); err != nil || names(got.Items[0].Files) != "c.txt " {
		t.Errorf("the messages are %+v, %v", got, err)
	}
	if _, err := s.k.Complete(s.c, "done"); err != nil { // before it could take that in
		t.Fatal(err)
	}
	for _, next := range s.w.All(s.a.ID) {
		if next.Prompt == "look" {
			if c := s.k.Claim(next.ID); names(c.Untrusted.Files) != "c.txt " {
				t.Errorf("it goes on with %+v", c.Untrusted.Files)
			}
		}
	}
	if again, err := s.w.RetrySession(ctx, s.w.Owner, made.ID); err == nil {
		if got, err := s.w.Attachments(ctx, s.w.Owner, again.ID); err != nil || names(got) != "a.txt b.png " {
			t.Errorf("the retry has %+v, %v", got, err)
		}
	}
}

// They go with the session's output, and the answer says so.
func TestAttachments_GoWithTheOutput(t *testing.T) {
	s := newTalk(t)
	ctx := t.Context()
	if _, err := s.w.PostMessage(ctx, s.w.Owner, s.c.SessionID, api.MessageInput{Text: "look", Files: []api.FileInput{file("c.txt", "c")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.patch(func(in *api.SessionPatch) { in.TurnEnded = true; in.LastConsumed = s.lastMessage() }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.k.Complete(s.c, "done"); err != nil {
		t.Fatal(err)
	}
	later(s.w, 31*day)
	prune(t, s.w)
	if rows := s.w.Tell("SELECT id FROM attachments"); len(rows) != 0 {
		t.Errorf("%d files are left", len(rows))
	}
	if _, err := s.w.Attachments(ctx, s.w.Owner, s.c.SessionID); api.CodeOf(err) != api.CodeGone {
		t.Errorf("they are still there: %v", err)
	}
}

// Those of a session that printed nothing go, too, and what they take counts among the bytes of all
// output.
func TestAttachments_GoWithoutOutputAndCount(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*engine.Retention)
		left int
	}{
		"by age":           {func(r *engine.Retention) { r.Output.Age = time.Hour }, 0},
		"2,500 B":          {func(r *engine.Retention) { r.Output.Bytes = 2500 }, 2},
		"more than enough": {func(r *engine.Retention) { r.Output.Bytes = 100_000 }, 5},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := enginetest.New(t, retaining(c.set))
			a := w.Agent()
			var ids []api.SessionID
			for range 5 {
				s := w.New(a, func(in *api.SessionInput) { in.Files = []api.FileInput{file("a.txt", strings.Repeat("x", 1000))} })
				if _, err := w.CancelSession(t.Context(), w.Owner, s.ID, api.CancelInput{}); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, s.ID)
			}
			w.Jump(2 * time.Hour)
			dry, err := w.PruneAll(t.Context(), w.Owner, true)
			if err != nil || dry.Output != int64(5-c.left) {
				t.Errorf("the dry run counts %+v, %v", dry, err)
			}
			prune(t, w)
			if n := len(w.Tell("SELECT id FROM attachments")); n != c.left {
				t.Errorf("%d files are left, not %d", n, c.left)
			}
			for i, id := range ids {
				if gone := !w.Get(id).OutputRemovedAt.IsZero(); gone != (i < 5-c.left) {
					t.Errorf("session %d: its output is gone %v", i, gone)
				}
			}
			w.Check()
		})
	}
}

func (t talk) lastMessage() api.MessageID {
	got, err := t.w.Messages(t.w.Context(), t.w.Owner, t.c.SessionID, 0)
	if err != nil || len(got.Items) == 0 {
		t.w.Fatalf("messages: %+v, %v", got, err)
	}
	return got.Items[len(got.Items)-1].ID
}
