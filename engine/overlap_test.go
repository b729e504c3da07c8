package engine_test

import (
	"context"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// hold puts the agent's first scheduled run into a state that counts as the previous run,
// under a worker that keeps beating.
func hold(t *testing.T, w *enginetest.Fixture, k *enginetest.Worker, s api.SessionID, state string) (c api.Claim) {
	t.Helper()
	ctx := context.Background()
	switch state {
	case "queued":
	case "pending":
		c = k.Claim(s)
		must[api.Finished](t)(k.Release(c, func(in *api.ReleaseRequest) { in.NotBefore = api.Time{Time: w.Now().Add(3 * time.Hour)} }))
	case "parked":
		c = k.Claim(s)
		must[api.Session](t)(k.Ask(c, "May I?"))
		must[api.Finished](t)(k.Release(c, func(in *api.ReleaseRequest) { in.Park = true }))
	case "active":
		c = k.Claim(s)
	case "awaiting_input":
		c = k.Claim(s)
		must[api.Session](t)(k.Ask(c, "May I?"))
	case "stale":
		other := w.Worker(api.Agent{ID: k.Agent})
		c = other.Claim(s)
		if err := w.DeleteWorker(ctx, w.Owner, other.ID); err != nil {
			t.Fatal(err)
		}
	case "undrained":
		c = k.Claim(s)
		must[api.Changed](t)(w.CancelSession(ctx, w.Owner, s, api.CancelInput{}))
	}
	return c
}

var earlier = []string{"queued", "pending", "parked", "active", "awaiting_input", "stale", "undrained"}

// Whatever the previous run is doing, as long as it has not ended it counts as the previous
// run.
func TestOverlap_SkipSkipsWhileARunBeforeHasNotEnded(t *testing.T) {
	for _, state := range earlier {
		t.Run(state, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(scheduled("* * * * *", overlap(api.OverlapSkip)))
			k := w.Worker(a)
			w.Advance(time.Minute)
			c := hold(t, w, k, w.All(a.ID)[0].ID, state)
			for range 4 {
				w.Advance(30 * time.Second)
				k.Beat(c)
			}
			wantStory(t, w, a.ID, "fired 09:01-09:01 x1, skipped 09:02-09:03 x2")
		})
	}
}

func TestOverlap_QueueOneHoldsOneAndFoldsTheRestIntoIt(t *testing.T) {
	for _, state := range earlier {
		t.Run(state, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(scheduled("* * * * *", overlap(api.OverlapQueueOne)))
			k := w.Worker(a)
			w.Advance(time.Minute)
			first := w.All(a.ID)[0].ID
			c := hold(t, w, k, first, state)
			for range 6 {
				w.Advance(30 * time.Second)
				k.Beat(c)
			}
			switch state {
			case "active", "awaiting_input", "undrained":
				wantStory(t, w, a.ID, "fired 09:01-09:01 x1, fired 09:02-09:02 x1, folded 09:03-09:04 x2")
				next := w.All(a.ID)[1]
				if next.Status != api.Pending || next.WaitingFor.Code != "overlap" {
					t.Fatalf("the next run is %s and waits for %v", next.Status, next.WaitingFor)
				}
				if state == "undrained" {
					k.Drain(c)
				} else {
					must[api.Finished](t)(k.Complete(c, ""))
				}
				w.Want(next.ID, api.Queued)
			default: // a waiting run is the one
				wantStory(t, w, a.ID, "fired 09:01-09:01 x1, folded 09:02-09:04 x3")
			}
		})
	}
}

// A person's waiting run is neither displaced nor taken for the scheduled one.
func TestOverlap_QueueOneLeavesManualRunsAlone(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapQueueOne)))
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	manual := w.New(a)
	for range 6 {
		w.Advance(30 * time.Second)
		k.Beat(c)
	}
	wantStory(t, w, a.ID, "fired 09:01-09:01 x1, folded 09:02-09:03 x2")
	must[api.Finished](t)(k.Complete(c, ""))
	if got := k.Next(); got == nil || got.SessionID != manual.ID {
		t.Fatalf("the person's run was not next, but %v", got)
	}
}

func TestOverlap_AllowRunsSideBySide(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow), func(in *api.AgentInput) { in.MaxConcurrent = 3 }))
	k := w.Worker(a)
	w.Advance(3 * time.Minute)
	for range 3 {
		if k.Next() == nil {
			t.Fatal("nothing to claim")
		}
	}
}

func TestOverlap_ReplaceEndsTheRunBeforeWhateverItDoes(t *testing.T) {
	for _, state := range earlier {
		t.Run(state, func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(scheduled("* * * * *", overlap(api.OverlapReplace)))
			k := w.Worker(a)
			w.Advance(time.Minute)
			first := w.All(a.ID)[0].ID
			c := hold(t, w, k, first, state)
			prompt := w.Get(first).Prompted
			w.Advance(30 * time.Second)
			k.Beat()
			w.Advance(30 * time.Second)
			k.Beat()
			w.Want(first, api.Cancelled)
			next := w.All(a.ID)[1]
			switch state {
			case "queued", "pending", "parked":
				w.Want(next.ID, api.Queued)
			default:
				if s := w.Want(next.ID, api.Pending); s.WaitingFor.Code != "overlap" {
					t.Fatalf("waits for %v, want the drain", s.WaitingFor)
				}
			}
			if prompt != nil {
				_, err := w.AnswerPrompt(context.Background(), w.Owner, first, api.AnswerInput{PromptID: prompt.ID, Answer: api.Answer{Text: "yes"}})
				wantCode(t, err, api.CodePromptClosed)
			}
			if state == "active" || state == "awaiting_input" {
				k.Drain(c)
				w.Want(next.ID, api.Queued)
			}
			w.Check()
		})
	}
}

func TestOverlap_ReplaceLeavesManualRunsAlone(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapReplace), func(in *api.AgentInput) { in.MaxConcurrent = 3 }))
	k := w.Worker(a)
	running := w.New(a)
	c := k.Claim(running.ID)
	waiting := w.New(a)
	for range 4 {
		w.Advance(30 * time.Second)
		k.Beat(c)
	}
	w.Want(running.ID, api.Active)
	w.Want(waiting.ID, api.Queued)
}

// autopause runs an agent once a minute and ends each run as given: S complete, F fail, L
// lapse for the last time, N never claimed, C cancelled by a person.
func autopause(t *testing.T, ends string) (w *enginetest.Fixture, a api.Agent) {
	t.Helper()
	w = enginetest.New(t, enginetest.Stride(30*time.Second), enginetest.With(func(c *engine.Config) { c.OutageAfter = 40 * time.Second }))
	a = w.Agent(scheduled("*/10 * * * *", func(in *api.AgentInput) { in.MaxLapses, in.QueueTimeoutSeconds = 1, 300 }))
	for _, end := range ends {
		w.Advance(10*time.Minute - time.Duration(w.Now().Minute()%10)*time.Minute)
		all := w.All(a.ID)
		s := all[len(all)-1]
		if s.Status != api.Queued {
			t.Fatalf("before %c: the newest run is %s", end, s.Status)
		}
		k := w.Worker(a)
		switch end {
		case 'S':
			must[api.Finished](t)(k.Complete(k.Claim(s.ID), ""))
		case 'F':
			must[api.Finished](t)(k.Fail(k.Claim(s.ID), "AGENT_EXIT_NONZERO"))
		case 'L':
			k.Claim(s.ID, lease(60))
			w.Advance(time.Minute)
			w.Want(s.ID, api.Failed)
		case 'N':
			w.Advance(5 * time.Minute)
			w.Want(s.ID, api.Failed)
		case 'C':
			must[api.Changed](t)(w.CancelSession(context.Background(), w.Owner, s.ID, api.CancelInput{}))
		}
	}
	return w, must[api.Agent](t)(w.Engine.Agent(context.Background(), w.Owner, a.ID.String()))
}

func TestAutoPause_FiveErrorsInARowAndNoFewer(t *testing.T) {
	t.Parallel()
	for ends, paused := range map[string]bool{
		"FFFFSFFFF": false, "FFFFSFFFFF": true, "FFFFF": true, "FLNFL": true, "FFFF": false, "FFCFCFF": true, "CCCCCC": false, "FFFCSFF": false,
	} {
		t.Run(ends, func(t *testing.T) {
			w, a := autopause(t, ends)
			if a.Paused != paused {
				t.Fatalf("paused is %v with %d failures in a row", a.Paused, a.FailuresInRow)
			}
			events := w.Tell("SELECT data FROM events WHERE type = 'agent_paused' AND agent_id = ?1", a.ID)
			if paused != (len(events) == 1) {
				t.Errorf("%d events of a pause", len(events))
			}
			if !paused {
				return
			}
			n := len(w.All(a.ID))
			w.Advance(30 * time.Minute)
			if len(w.All(a.ID)) != n {
				t.Error("a paused agent fired")
			}
			b, _, err := w.ResumeAgent(context.Background(), w.Owner, a.Slug)
			if err != nil || b.FailuresInRow != 0 {
				t.Fatalf("after resume %d failures in a row, error %v", b.FailuresInRow, err)
			}
			w.Advance(11 * time.Minute)
			if len(w.All(a.ID)) != n+1 {
				t.Error("a resumed agent did not fire")
			}
		})
	}
}
