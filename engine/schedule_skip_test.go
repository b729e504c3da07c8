package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

func TestSkip_SlotsUpToTheInstantDontFireAndLaterOnesDo(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *"))
	got, changed, err := w.SkipSlots(t.Context(), w.Owner, a.Slug, time.Time{})
	if err != nil || !changed || !got.SkipUntil.Equal(w.Now().Add(time.Minute)) {
		t.Fatalf("the next slot: %v, %v, %v", got.SkipUntil, changed, err)
	}
	if got, changed, err = w.SkipSlots(t.Context(), w.Owner, a.Slug, time.Time{}); err != nil || !changed || !got.SkipUntil.Equal(w.Now().Add(2*time.Minute)) {
		t.Fatalf("the next one again: %v, %v, %v", got.SkipUntil, changed, err)
	}
	until := w.Now().Add(2 * time.Minute)
	if _, changed, err = w.SkipSlots(t.Context(), w.Owner, a.Slug, until); err != nil || changed {
		t.Fatalf("the same once more: %v, %v", changed, err)
	}
	k := w.Worker(a)
	for range 3 {
		w.Advance(time.Minute)
	}
	k.Claim(w.All(a.ID)[0].ID)
	wantStory(t, w, a.ID, "paused 09:01-09:02 x2, fired 09:03-09:03 x1")
	if now, err := w.Engine.Agent(t.Context(), w.Owner, a.Slug); err != nil || !now.SkipUntil.IsZero() {
		t.Errorf("afterwards it still says %v, %v", now.SkipUntil, err)
	}
}

func TestSkip_IsTakenBackAndSparesWhatWasDueBefore(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow)))
	skip := func(in time.Duration) {
		t.Helper()
		if _, changed, err := w.SkipSlots(t.Context(), w.Owner, a.Slug, w.Now().Add(in)); err != nil || !changed {
			t.Fatalf("skip for %v: %v, %v", in, changed, err)
		}
	}
	skip(3 * time.Minute)
	w.Jump(2*time.Minute + time.Second) // no tick: 09:01 and 09:02 are due, and skipped
	if _, changed, err := w.KeepSlots(t.Context(), w.Owner, a.Slug); err != nil || !changed {
		t.Fatalf("take it back: %v, %v", changed, err)
	}
	w.Advance(time.Minute)
	wantStory(t, w, a.ID, "paused 09:01-09:02 x2, fired 09:03-09:03 x1")
	// An absence over the end of a skip: what is behind it is caught up.
	skip(90 * time.Second)
	w.Jump(4 * time.Minute)
	w.Advance(time.Second)
	wantStory(t, w, a.ID, "paused 09:01-09:02 x2, fired 09:03-09:03 x1, paused 09:04-09:04 x1, fired 09:05-09:07 x3")
}

// A slot that is due but not decided yet isn't caught by a skip that comes after it.
func TestSkip_FiresWhatWasDueBeforeIt(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(scheduled("* * * * *", overlap(api.OverlapAllow)))
	w.Jump(time.Minute + time.Second)
	if got, changed, err := w.SkipSlots(t.Context(), w.Owner, a.Slug, time.Time{}); err != nil || !changed || got.SkipUntil.Minute() != 2 {
		t.Fatalf("skip: until %v, %v, %v", got.SkipUntil, changed, err)
	}
	w.Advance(2 * time.Minute)
	wantStory(t, w, a.ID, "fired 09:01-09:01 x1, paused 09:02-09:02 x1, fired 09:03-09:03 x1")
}

func TestSkip_RefusesWhatCannotBe(t *testing.T) {
	w := enginetest.New(t)
	bare, a := w.Agent(), w.Agent(scheduled("@daily"))
	for _, c := range []struct {
		slug string
		in   time.Duration
		code api.Code
	}{{bare.Slug, time.Hour, api.CodeConflict}, {a.Slug, -time.Hour, api.CodeInvalid}, {a.Slug, 400 * 24 * time.Hour, api.CodeInvalid}, {"nobody", time.Hour, api.CodeNotFound}} {
		if _, _, err := w.SkipSlots(t.Context(), w.Owner, c.slug, w.Now().Add(c.in)); api.CodeOf(err) != c.code {
			t.Errorf("%s for %v: %v", c.slug, c.in, err)
		}
	}
}
