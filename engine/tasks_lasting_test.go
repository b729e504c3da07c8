package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

func setState(t *testing.T, w *enginetest.Fixture, ref string, state api.TaskState) api.Task {
	t.Helper()
	return must[api.Task](t)(w.EditTask(context.Background(), w.Owner, ref, func(in *api.TaskEdit) error { in.State = state; return nil }))
}

// Others of the workspace read a task's events and may not know the worker (contract 8.3).
func TestTask_EventsNameNoWorker(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	bob := w.Colleague("Bob", api.Member)
	w.Task("One")
	must[api.Finished](t)(k.Complete(k.Claim(w.Dispatch("T-1", api.DispatchInput{}).Session.ID), ""))
	moved := 0
	for _, ev := range must[api.List[api.Event]](t)(w.TaskEvents(context.Background(), bob, "T-1", api.Page{})).Items {
		if strings.HasPrefix(ev.Actor, "wrk_") || strings.HasPrefix(ev.Actor, "ses_") {
			t.Errorf("%s names %s", ev.Type, ev.Actor)
		}
		if ev.Type == api.EventTaskMoved {
			moved++
		}
	}
	if moved != 2 {
		t.Errorf("%d events say that the state moved, want 2", moved)
	}
}

// A session-bound lease lives while its session does (contract 7.2).
func TestTask_WhoDispatchedCantReleaseUnderTheSession(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	w.Task("One")
	d := w.Dispatch("T-1", api.DispatchInput{})
	k.Claim(d.Session.ID)
	_, err := w.ReleaseTask(context.Background(), w.Owner, "T-1")
	wantCode(t, err, api.CodeNotClaimHolder)
	if got := w.TaskNow("T-1"); got.Lease == nil || got.State != api.TaskInProgress {
		t.Errorf("the task is %s, held by %+v", got.State, got.Lease)
	}
}

func TestTask_OnlyTheSessionThatHeldItHandsItOn(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent()
	k := w.Worker(a)
	w.Task("One")
	about := w.New(a, func(in *api.SessionInput) { in.Task = "T-1" })
	if about.Task == nil || !strings.Contains(about.UntrustedContext, "T-1: One") {
		t.Fatalf("the session is about %+v and told %q", about.Task, about.UntrustedContext)
	}
	must[api.Finished](t)(k.Fail(k.Claim(about.ID), "X"))
	must[api.Retried](t)(w.RetrySession(ctx, w.Owner, about.ID))
	if got := w.TaskNow("T-1"); got.Lease != nil {
		t.Errorf("a retry took the lease that its session never had: %+v", got.Lease)
	}
}

func TestTask_GraceComesOncePerRenewal(t *testing.T) {
	w := enginetest.New(t)
	w.Task("One")
	lease := int64(120)
	must[api.TaskHeld](t)(w.ClaimTask(context.Background(), w.Owner, "T-1", api.TaskClaimInput{LeaseSeconds: &lease}))
	for range 4 {
		w.Jump(5 * time.Minute)
		w.Turn()
		w.Advance(10 * time.Second)
	}
	if got := w.TaskNow("T-1"); got.Lease != nil {
		t.Errorf("outage after outage it is held: %+v", got.Lease)
	}
}

func TestTask_SettingThePresentStateIsADecision(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	w.Task("One")
	d := w.Dispatch("T-1", api.DispatchInput{})
	setState(t, w, "T-1", api.TaskTodo)
	c := k.Claim(d.Session.ID)
	if got := w.TaskNow("T-1"); got.State != api.TaskTodo {
		t.Errorf("a rule made it %s", got.State)
	}
	must[api.Finished](t)(k.Fail(c, "X"))
	must[api.Retried](t)(w.RetrySession(context.Background(), w.Owner, d.Session.ID))
	if got := w.TaskNow("T-1"); got.State != api.TaskTodo || got.Lease == nil {
		t.Errorf("after a retry it is %s, held by %+v", got.State, got.Lease)
	}
}

func TestTask_ReleaseLeavesFinishedWorkInReview(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent()
	k := w.Worker(a)
	bob := w.Colleague("Bob", api.Member)
	w.Task("One")
	must[api.Finished](t)(k.Complete(k.Claim(w.Dispatch("T-1", api.DispatchInput{}).Session.ID), ""))
	for _, c := range []engine.Caller{w.Owner, bob} {
		must[api.TaskHeld](t)(claimTask(w, c, "T-1"))
		if r := must[api.TaskReleased](t)(w.ReleaseTask(ctx, c, "T-1")); r.Task.State != api.TaskReview {
			t.Errorf("released by %s it is %s", c.Name, r.Task.State)
		}
	}
}

func TestTask_ADoneTaskIsNobodys(t *testing.T) {
	w := enginetest.New(t)
	bob, vic := w.Colleague("Bob", api.Member), w.Colleague("Vic", api.Viewer)
	w.Task("One", func(in *api.TaskInput) { in.State = api.TaskDone })
	assign := func(c engine.Caller) (api.Task, error) {
		return w.EditTask(context.Background(), w.Owner, "T-1", func(in *api.TaskEdit) error { in.Assignee = c.UserID.String(); return nil })
	}
	if got := must[api.Task](t)(assign(bob)); got.Assignee != nil {
		t.Errorf("done, it is assigned to %+v", got.Assignee)
	}
	_, err := assign(vic)
	if e := wantCode(t, err, api.CodeInvalid); e.Fields[0].Field != "assignee" {
		t.Errorf("a viewer as assignee is refused as %v", e.Fields)
	}
	w.Check()
}

func TestTask_WhoMayRunNothingHoldsNothing(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	bob := w.Colleague("Bob", api.Admin)
	w.Task("by a session")
	w.Task("lapsed")
	_, _, err := w.DispatchTask(ctx, bob, "T-1", api.DispatchInput{}, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	must[api.TaskHeld](t)(claimTask(w, bob, "T-2"))
	w.Advance(3 * time.Hour)
	must[api.WorkspaceMember](t)(w.SetRole(ctx, w.Owner, bob.UserID, api.Viewer))
	for _, ref := range []string{"T-1", "T-2"} {
		if got := w.TaskNow(ref); got.Lease != nil || got.Assignee != nil || got.State != api.TaskTodo {
			t.Errorf("%s is %s, held by %+v, assigned to %+v", ref, got.State, got.Lease, got.Assignee)
		}
	}
	w.Check()
}

func TestTask_TheSameBlockersInOtherWordsAreNoChange(t *testing.T) {
	w := enginetest.New(t)
	one, two := w.Task("One", func(in *api.TaskInput) { in.Slug = "First-One" }), w.Task("Two")
	w.Task("Three", func(in *api.TaskInput) { in.BlockedBy = []string{"T-1", "T-2"} })
	got := must[api.Task](t)(w.EditTask(context.Background(), w.Owner, "T-3", func(in *api.TaskEdit) error {
		in.BlockedBy = []string{two.ID.String(), "first-one", "t-1"}
		return nil
	}))
	if got.Version != 1 || len(got.BlockedBy) != 2 || one.Slug != "first-one" {
		t.Errorf("version %d, blocked by %v, slug %q", got.Version, got.BlockedBy, one.Slug)
	}
}

func TestTask_BriefingTellsWhatHappened(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	w.Task("One")
	must[api.Finished](t)(k.Fail(k.Claim(w.Dispatch("T-1", api.DispatchInput{}).Session.ID), "X"))
	text := must[api.Briefing](t)(w.TaskBriefing(context.Background(), w.Owner, "T-1")).Text
	for _, part := range []string{"dispatched to " + a.Slug, "todo to in_progress", "in_progress to blocked"} {
		if !strings.Contains(text, part) {
			t.Errorf("the briefing lacks %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "ses_") {
		t.Errorf("the briefing names a session:\n%s", text)
	}
}

// State and blockers in one change: the counters of what is open follow both.
func TestTask_StateAndBlockersChangeTogether(t *testing.T) {
	w := enginetest.New(t)
	w.Task("One")
	w.Task("Two")
	for _, step := range []struct {
		state     api.TaskState
		blockedBy []string
	}{
		{api.TaskDone, []string{"T-1"}}, {api.TaskTodo, nil}, {api.TaskTodo, []string{"T-1"}}, {api.TaskDone, nil}, {api.TaskReview, []string{"T-1"}},
	} {
		got := must[api.Task](t)(w.EditTask(context.Background(), w.Owner, "T-2", func(in *api.TaskEdit) error {
			in.State, in.BlockedBy = step.state, step.blockedBy
			return nil
		}))
		if got.State != step.state || len(got.BlockedBy) != len(step.blockedBy) {
			t.Errorf("it is %s and waits for %v, want %+v", got.State, got.BlockedBy, step)
		}
		w.Check()
	}
}

// Closing a task and opening it again isn't a way around its holder.
func TestTask_DoneIsTheHoldersOrAnAdminsWhileItIsHeld(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	bob := w.Colleague("Bob", api.Member)
	w.Task("held")
	set := func(c engine.Caller, state api.TaskState) error {
		_, err := w.EditTask(ctx, c, "T-1", func(in *api.TaskEdit) error { in.State = state; return nil })
		return err
	}
	must[api.TaskHeld](t)(claimTask(w, w.Owner, "T-1"))
	if err := set(bob, api.TaskDone); api.CodeOf(err) != api.CodeAlreadyClaimed {
		t.Errorf("a member closes what the owner holds: %v", err)
	}
	if got := w.TaskNow("T-1"); got.Lease == nil || got.State != api.TaskInProgress {
		t.Errorf("after the refusal it is %+v", got)
	}
	must[api.TaskReleased](t)(w.ReleaseTask(ctx, w.Owner, "T-1"))
	must[api.TaskHeld](t)(claimTask(w, bob, "T-1"))
	if err := set(w.Owner, api.TaskDone); err != nil {
		t.Errorf("an owner closes what a member holds: %v", err)
	}
	events := must[api.List[api.Event]](t)(w.TaskEvents(ctx, w.Owner, "T-1", api.Page{}))
	if i := slices.IndexFunc(events.Items, func(e api.Event) bool { return e.Type == api.EventTaskReleased && e.Data["reason"] == "done" }); i < 0 {
		t.Errorf("no event says that the lease ended: %+v", events.Items)
	}
	w.Check()
}

// A person's state stands when the lease is renewed, and a claim by hand ends what a retry
// could carry over.
func TestTask_ARenewalAndARetryOverruleNobody(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	bob := w.Colleague("Bob", api.Member)
	agent := w.Agent()
	w.Task("worked on")
	d, _, err := w.DispatchTask(ctx, w.Owner, "T-1", api.DispatchInput{Agent: agent.Slug}, engine.Idempotency{})
	if err != nil {
		t.Fatal(err)
	}
	must[api.Task](t)(w.EditTask(ctx, bob, "T-1", func(in *api.TaskEdit) error { in.State = api.TaskTodo; return nil }))
	must[api.TaskHeld](t)(claimTask(w, w.Owner, "T-1"))
	if got := w.TaskNow("T-1").State; got != api.TaskTodo {
		t.Errorf("a renewal made it %s", got)
	}
	must[api.Changed](t)(w.CancelSession(ctx, w.Owner, d.Session.ID, api.CancelInput{}))
	must[api.TaskHeld](t)(claimTask(w, bob, "T-1"))
	must[api.TaskReleased](t)(w.ReleaseTask(ctx, bob, "T-1"))
	must[api.Retried](t)(w.RetrySession(ctx, w.Owner, d.Session.ID))
	if got := w.TaskNow("T-1").Lease; got != nil {
		t.Errorf("a retry takes it back: %+v", got)
	}
	w.Check()
}
