package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func TestView_StretchesAddUpToTheSessionsLife(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	w.Clock.Step(10 * time.Second)
	c := k.Claim(s.ID)
	w.Clock.Step(20 * time.Second)
	if _, err := k.Ask(c, "which one?"); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(30 * time.Second)
	open := w.Get(s.ID)
	if _, err := w.AnswerPrompt(t.Context(), w.Owner, s.ID, api.AnswerInput{PromptID: open.Prompted.ID, Answer: api.Answer{Text: "this one"}}); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(40 * time.Second)
	page, err := w.SessionPageOf(t.Context(), w.Owner, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		status api.Status
		took   time.Duration
	}{{api.Queued, 10 * time.Second}, {api.Active, 20 * time.Second}, {api.AwaitingInput, 30 * time.Second}, {api.Active, 0}}
	if len(page.Session.Stretches) != len(want) {
		t.Fatalf("stretches %+v", page.Session.Stretches)
	}
	for i, got := range page.Session.Stretches {
		last := i == len(want)-1
		if got.Status != want[i].status || last != got.To.IsZero() || (!last && got.To.Sub(got.From) != want[i].took) {
			t.Errorf("stretch %d is %+v, want %+v", i, got, want[i])
		}
	}
	if page.Session.LeaseLength == 0 || page.Session.Worker != k.Name || page.Names[k.ID.String()] != k.Name {
		t.Errorf("worker %q, lease of %v, names %v", page.Session.Worker, page.Session.LeaseLength, page.Names)
	}
	if _, err := k.Complete(c, "done"); err != nil {
		t.Fatal(err)
	}
	page, err = w.SessionPageOf(t.Context(), w.Owner, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(page.Session.Stretches); n != len(want) || page.Session.Stretches[n-1].To.IsZero() || page.Session.LeaseLength != 0 {
		t.Errorf("after its end: %+v, lease of %v", page.Session.Stretches, page.Session.LeaseLength)
	}
	if page.Expected != 90*time.Second {
		t.Errorf("a run is expected to take %v, want 90 s", page.Expected)
	}
}

func TestView_NeedsYouIsWhatNothingElseWillMove(t *testing.T) {
	w := enginetest.New(t)
	needs := func(want int) {
		t.Helper()
		n, err := w.NeedsYou(t.Context(), w.Owner)
		if err != nil {
			t.Fatal(err)
		}
		home, err := w.Home(t.Context(), w.Owner, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if n != want || len(home.Inbox) != want {
			t.Errorf("%d need a person, on the home page %d, want %d", n, len(home.Inbox), want)
		}
	}
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 2 })
	k, other := w.Worker(a), w.Worker(a)
	lost := w.New(a)
	c := k.Claim(lost.ID)
	needs(0)
	for range 12 { // the first worker falls silent, the second stays alive
		w.Advance(time.Minute)
		other.Beat()
	}
	w.Want(lost.ID, api.Stale)
	needs(0) // the other worker will take it
	for range 12 {
		w.Advance(time.Minute)
	}
	needs(1) // nobody is left to take it
	_ = c
	other.Beat()
	needs(0)
	asks := other.Claim(w.New(a).ID)
	if _, err := other.Ask(asks, "which one?"); err != nil {
		t.Fatal(err)
	}
	needs(1)
}

func TestView_OthersLocalSessionsAreNotShown(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	done := k.Claim(w.New(a).ID)
	if _, err := k.Complete(done, "done"); err != nil {
		t.Fatal(err)
	}
	active := w.New(a)
	k.Claim(active.ID)
	w.New(a)
	other := engine.Caller{WorkspaceID: w.Owner.WorkspaceID, Workspace: w.Owner.Workspace, UserID: w.Owner.UserID + 1, Name: "other", Role: api.Member}
	home, err := w.Home(t.Context(), other, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if len(home.Active)+len(home.Queued)+len(home.Recent)+len(home.Needs)+len(home.Today) != 0 || home.Workers != (api.WorkerCount{}) {
		t.Errorf("the home page of somebody else shows %+v", home)
	}
	if len(home.Agents) != 1 || len(home.Agents[0].Runs) != 0 {
		t.Errorf("the agent's bar shows somebody else its runs: %+v", home.Agents)
	}
	list, err := w.SessionList(t.Context(), other, api.SessionFilter{}, api.Page{})
	if err != nil || len(list.Rows) != 0 || len(list.Counts) != 0 {
		t.Errorf("the list shows somebody else %d sessions, counts %v: %v", len(list.Rows), list.Counts, err)
	}
	again, err := w.SessionsAgain(t.Context(), other, api.SessionFilter{}, []api.SessionID{active.ID}, 0)
	if err != nil || len(again.Rows) != 0 || again.Newer != 0 {
		t.Errorf("a live list shows somebody else %d rows, %d newer: %v", len(again.Rows), again.Newer, err)
	}
	page, err := w.AgentPageOf(t.Context(), other, a.Slug)
	if err != nil || len(page.Recent) != 0 || len(page.Workers) != 0 {
		t.Errorf("the agent's page shows somebody else %d sessions, %d workers: %v", len(page.Recent), len(page.Workers), err)
	}
	workers, err := w.WorkerList(t.Context(), other)
	if err != nil || len(workers.Workers) != 0 {
		t.Errorf("%d workers: %v", len(workers.Workers), err)
	}
	if _, err := w.SessionPageOf(t.Context(), other, active.ID); err == nil {
		t.Error("somebody else can open a local session's page")
	}
}

func TestView_ListCountsAndNewerOnes(t *testing.T) {
	w := enginetest.New(t)
	a, b := w.Agent(), w.Agent()
	for range 3 {
		w.New(a)
	}
	first := w.New(b)
	if _, err := w.CancelSession(t.Context(), w.Owner, first.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	list, err := w.SessionList(t.Context(), w.Owner, api.SessionFilter{Statuses: []api.Status{api.Queued}}, api.Page{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Rows) != 2 || list.NextCursor == "" || list.Counts[api.Queued] != 3 || list.Counts[api.Cancelled] != 1 || list.CountsOf != 0 {
		t.Errorf("%d rows, cursor %q, counts %v of %d", len(list.Rows), list.NextCursor, list.Counts, list.CountsOf)
	}
	w.New(a)
	w.New(b)
	again, err := w.SessionsAgain(t.Context(), w.Owner, api.SessionFilter{Agent: a.Slug}, []api.SessionID{first.ID}, list.Rows[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if again.Newer != 1 || len(again.Rows) != 1 || again.Rows[0].Status != api.Cancelled || again.Counts[api.Queued] != 4 {
		t.Errorf("%d newer, rows %+v, counts %v", again.Newer, again.Rows, again.Counts)
	}
}

func TestView_NextSlotsAreTheAgentsOwn(t *testing.T) {
	w := enginetest.New(t)
	every := w.Agent(func(in *api.AgentInput) { in.Schedule, in.TimeZone = "@every 7m", "Europe/Berlin" })
	w.Advance(3 * time.Minute)
	page, err := w.AgentPageOf(t.Context(), w.Owner, every.Slug)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Slots) != 5 {
		t.Fatalf("%d slots", len(page.Slots))
	}
	for i, slot := range page.Slots {
		want := enginetest.Start.Add(time.Duration(i+1) * 7 * time.Minute)
		if !slot.At.Equal(want) || slot.Local != want.In(time.FixedZone("", 3600)).Format(time.RFC3339) {
			t.Errorf("slot %d is %s (%s), want %s", i, slot.At, slot.Local, want)
		}
	}
	if !page.NextSlotAt.Equal(page.Slots[0].At.Time) {
		t.Errorf("the next slot is %s, the first shown %s", page.NextSlotAt, page.Slots[0].At)
	}
}
