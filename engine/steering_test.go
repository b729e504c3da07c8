package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

func (t talk) sayNow(text string) api.MessageID {
	t.w.Helper()
	out, err := t.w.PostMessage(t.w.Context(), t.w.Owner, t.c.SessionID, api.MessageInput{Text: text, Now: true})
	if err != nil || !out.Message.Now {
		t.w.Fatalf("say %q now: %+v, %v", text, out.Message, err)
	}
	return out.Message.ID
}

func (t talk) took(ids ...api.MessageID) {
	t.w.Helper()
	if _, err := t.patch(func(in *api.SessionPatch) { in.Taken = ids }); err != nil {
		t.w.Fatalf("take %v: %v", ids, err)
	}
}

// What a running turn has taken in is consumed when that turn has ended, and not before; older
// messages that wait stay for the next turn. A repeated report changes nothing.
func TestSteering_ConsumedWithTheTurn(t *testing.T) {
	s := newTalk(t)
	waits := s.say("waits").Message.ID
	now := s.sayNow("now")
	s.took(now)
	s.took(now)
	if _, err := s.patch(func(in *api.SessionPatch) { in.Taken = []api.MessageID{now + 1} }); fields(t, err) != "taken" {
		t.Errorf("a message that there isn't: %v", err)
	}
	var shown int
	items, _, err := s.w.Items(t.Context(), s.w.Owner, s.c.SessionID, 0, 100)
	for _, it := range items {
		if it.Kind == api.ItemStatus && it.Text == "Taken in while it works: “now”" {
			shown++
		}
	}
	if err != nil || shown != 1 {
		t.Errorf("it is shown %d times, %v", shown, err)
	}
	s.w.Advance(20 * time.Minute) // the turn is cut off
	s.k = s.w.Worker(s.a, conversingWorker)
	s.c = s.k.Claim(s.c.SessionID)
	if got := s.c.Conversation.Messages; len(got) != 2 || got[0].ID != waits || got[1].ID != now || got[1].TakenAt.IsZero() {
		t.Fatalf("the next claim gets %+v", got)
	}
	later := s.sayNow("later")
	s.took(later)
	if _, err := s.patch(func(in *api.SessionPatch) { in.TurnEnded = true }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.k.Complete(s.c, "done"); err != nil {
		t.Fatal(err)
	}
	all := s.w.All(s.a.ID)
	if len(all) != 2 || all[0].Prompt != "waits" && all[1].Prompt != "waits" {
		t.Errorf("it goes on as %+v", all)
	}
}

// A worker is told of a message at once, and of nothing when the wait is over.
func TestSteering_TheWorkerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTalk(t)
		told := make(chan api.Messages, 1)
		go func() {
			got, err := s.w.AwaitMessages(t.Context(), s.w.Owner, s.c.SessionID, 0, time.Minute)
			if err != nil {
				t.Error(err)
			}
			told <- got
		}()
		synctest.Wait()
		id := s.sayNow("now")
		if got := <-told; len(got.Items) != 1 || got.Items[0].ID != id {
			t.Errorf("it is told %+v", got)
		}
		began := time.Now()
		got, err := s.w.AwaitMessages(t.Context(), s.w.Owner, s.c.SessionID, id, time.Minute)
		if err != nil || len(got.Items) != 0 || time.Since(began) != time.Minute {
			t.Errorf("after %v it is told %+v, %v", time.Since(began), got, err)
		}
	})
}

// Which types can is one list; the others refuse and say why.
func TestSteering_TypesThatCannotRefuse(t *testing.T) {
	w := enginetest.New(t)
	for _, p := range api.AgentTypes {
		if p.Type == api.TypeCommand {
			continue
		}
		a := w.Agent(func(in *api.AgentInput) {
			in.Type, in.Run.Command = p.Type, nil
			if p.Type == api.TypeACP {
				in.Run.Executable = "opencode"
			}
		})
		_, err := w.PostMessage(t.Context(), w.Owner, w.New(a).ID, api.MessageInput{Text: "x", Now: true})
		if p.Steers != (err == nil) || err != nil && (fields(t, err) != "now" || fmt.Sprint(err) == "") {
			t.Errorf("%s: %v", p.Type, err)
		}
	}
}
