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

func claimTask(w *enginetest.Fixture, c engine.Caller, ref string) (api.TaskHeld, error) {
	return w.ClaimTask(context.Background(), c, ref, api.TaskClaimInput{})
}

// contract 7.3
func TestTask_ClaimIsOnesOwnUntilItLapses(t *testing.T) {
	w := enginetest.New(t)
	ann, bob := w.Colleague("Ann", api.Member), w.Colleague("Bob", api.Member)
	one := w.Task("Limit the rate", func(in *api.TaskInput) { in.Slug = "task-api-rate-limits" })
	if one.Key != "T-1" || one.State != api.TaskTodo || one.Version != 1 || one.Lease != nil {
		t.Fatalf("a new task is %+v", one)
	}
	got := must[api.TaskHeld](t)(claimTask(w, ann, "task-api-rate-limits"))
	if got.Renewed || got.TookOverFrom != nil || got.Task.Assignee.Name != "Ann" || got.Task.Lease.Holder.Name != "Ann" || got.Task.State != api.TaskInProgress {
		t.Fatalf("the claim answers %+v", got)
	}
	if want := w.Now().Add(2 * time.Hour); !got.Task.Lease.ExpiresAt.Equal(want) {
		t.Errorf("it lasts until %v, want %v", got.Task.Lease.ExpiresAt, want)
	}
	_, err := claimTask(w, bob, "t-1")
	if e := wantCode(t, err, api.CodeAlreadyClaimed); e.Holder != "Ann" || !e.ExpiresAt.Equal(got.Task.Lease.ExpiresAt.Time) {
		t.Errorf("the refusal names %q until %v", e.Holder, e.ExpiresAt)
	}
	w.Advance(time.Hour)
	if again := must[api.TaskHeld](t)(claimTask(w, ann, "T-1")); !again.Renewed || !again.Task.Lease.ExpiresAt.Equal(w.Now().Add(2*time.Hour)) {
		t.Errorf("claiming one's own answers %+v", again)
	}
	w.Advance(3 * time.Hour)
	lapsed := w.TaskNow("T-1")
	if lapsed.Lease != nil || lapsed.Assignee == nil || lapsed.Assignee.Name != "Ann" {
		t.Fatalf("after a lapse: lease %+v, assignee %+v", lapsed.Lease, lapsed.Assignee)
	}
	_, err = w.RenewTask(context.Background(), ann, "T-1")
	if e := wantCode(t, err, api.CodeClaimNotActive); e.Holder != "" {
		t.Errorf("nobody holds it, and the refusal names %q", e.Holder)
	}
	over := must[api.TaskHeld](t)(claimTask(w, bob, "T-1"))
	if over.TookOverFrom == nil || over.TookOverFrom.Name != "Ann" || over.Task.Assignee.Name != "Bob" {
		t.Fatalf("the take-over answers %+v", over)
	}
	_, err = w.RenewTask(context.Background(), ann, "T-1")
	if e := wantCode(t, err, api.CodeClaimNotActive); e.Holder != "Bob" {
		t.Errorf("the renewal after the take-over names %q", e.Holder)
	}
	_, err = w.ReleaseTask(context.Background(), ann, "T-1")
	wantCode(t, err, api.CodeNotClaimHolder)
	for i, want := range []bool{true, false} {
		if r := must[api.TaskReleased](t)(w.ReleaseTask(context.Background(), bob, "T-1")); r.Released != want || r.Task.Assignee != nil || r.Task.State != api.TaskTodo {
			t.Errorf("release %d answers %+v", i+1, r)
		}
	}
	w.Check()
}

func TestTask_ReleaseRetiresALingeringAssignment(t *testing.T) {
	w := enginetest.New(t)
	ann := w.Colleague("Ann", api.Member)
	w.Task("One")
	must[api.TaskHeld](t)(claimTask(w, ann, "T-1"))
	w.Advance(3 * time.Hour)
	if r := must[api.TaskReleased](t)(w.ReleaseTask(context.Background(), ann, "T-1")); r.Released || r.Task.Assignee != nil {
		t.Fatalf("releasing a lapsed one answers %+v", r)
	}
}

func TestTask_ExtensionIsCappedAndNeverShortens(t *testing.T) {
	w := enginetest.New(t)
	w.Task("One")
	ctx := context.Background()
	must[api.TaskHeld](t)(claimTask(w, w.Owner, "T-1"))
	for _, step := range []struct {
		add    int64
		want   time.Duration
		capped bool
	}{{3600, 3 * time.Hour, false}, {1e18, 24 * time.Hour, true}, {1, 24 * time.Hour, true}} {
		got := must[api.TaskHeld](t)(w.ExtendTask(ctx, w.Owner, "T-1", api.TaskExtendInput{AddSeconds: step.add}))
		if left := got.Task.Lease.ExpiresAt.Sub(w.Now()); left != step.want || got.CappedToMax != step.capped {
			t.Errorf("extended by %d s it lasts %v, capped %v", step.add, left, got.CappedToMax)
		}
	}
	if got := must[api.TaskHeld](t)(w.RenewTask(ctx, w.Owner, "T-1")); got.Task.Lease.ExpiresAt.Sub(w.Now()) != 24*time.Hour {
		t.Errorf("a renewal shortens it to %v", got.Task.Lease.ExpiresAt.Sub(w.Now()))
	}
	for _, n := range []int64{0, -5, 59} {
		_, err := w.ClaimTask(ctx, w.Owner, "T-1", api.TaskClaimInput{LeaseSeconds: &n})
		wantCode(t, err, api.CodeInvalidLease)
	}
	long := int64(1e18)
	if got := must[api.TaskHeld](t)(w.ClaimTask(ctx, w.Owner, "T-1", api.TaskClaimInput{LeaseSeconds: &long})); !got.CappedToMax || got.MaxLeaseSeconds != 86400 {
		t.Errorf("a lease of 1e18 s answers %+v", got)
	}
}

func TestTask_LeaseOutlivesARestartAndAnOutage(t *testing.T) {
	w := enginetest.New(t)
	w.Task("One")
	lease := int64(120)
	must[api.TaskHeld](t)(w.ClaimTask(context.Background(), w.Owner, "T-1", api.TaskClaimInput{LeaseSeconds: &lease}))
	w.Jump(5 * time.Minute) // the machine slept
	w.Turn()
	if got := w.TaskNow("T-1"); got.Lease == nil {
		t.Fatal("the coordinator's absence was taken for the holder's silence")
	}
	w.Advance(2 * time.Minute)
	if got := w.TaskNow("T-1"); got.Lease != nil {
		t.Fatalf("the grace has no end: %+v", got.Lease)
	}
}

func TestTask_EditsCarryTheVersion(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	w.Task("One")
	edit := func(c engine.Caller, change func(*api.TaskEdit)) (api.Task, error) {
		return w.EditTask(ctx, c, "T-1", func(in *api.TaskEdit) error { change(in); return nil })
	}
	if same := must[api.Task](t)(edit(w.Owner, func(in *api.TaskEdit) { in.Title = "One" })); same.Version != 1 {
		t.Errorf("an edit that changes nothing makes version %d", same.Version)
	}
	if next := must[api.Task](t)(edit(w.Owner, func(in *api.TaskEdit) { in.Title, in.Version = "Two", 1 })); next.Version != 2 || next.Title != "Two" {
		t.Errorf("the edit answers %+v", next)
	}
	_, err := edit(w.Owner, func(in *api.TaskEdit) { in.Title, in.Version = "Three", 1 })
	wantCode(t, err, api.CodeStaleVersion)
	bob := w.Colleague("Bob", api.Member)
	got := must[api.Task](t)(edit(bob, func(in *api.TaskEdit) { in.State = api.TaskInProgress }))
	if got.Lease == nil || got.Lease.Holder.Name != "Bob" || got.Assignee.Name != "Bob" {
		t.Errorf("setting in_progress doesn't claim: %+v", got)
	}
	_, err = edit(w.Owner, func(in *api.TaskEdit) { in.State = api.TaskInProgress })
	wantCode(t, err, api.CodeAlreadyClaimed)
	done := must[api.Task](t)(edit(w.Owner, func(in *api.TaskEdit) { in.State = api.TaskDone }))
	if done.Lease != nil || done.Assignee != nil || done.DoneAt.IsZero() {
		t.Errorf("done it is %+v", done)
	}
	viewer := w.Colleague("Vic", api.Viewer)
	_, err = edit(viewer, func(in *api.TaskEdit) { in.Title = "x" })
	wantCode(t, err, api.CodeForbidden)
	w.Check()
}

func TestTask_BadFieldsAreEachNamed(t *testing.T) {
	w := enginetest.New(t)
	w.Task("One")
	w.Task("Two", func(in *api.TaskInput) { in.BlockedBy = []string{"T-1"} })
	w.Task("Three", func(in *api.TaskInput) { in.BlockedBy = []string{"t-2"} })
	good := engine.DefaultTask()
	good.Title = "Good"
	for _, tt := range []struct {
		field  string
		change func(*api.TaskInput)
	}{
		{"title", func(in *api.TaskInput) { in.Title = " " }},
		{"title", func(in *api.TaskInput) { in.Title = strings.Repeat("x", 201) }},
		{"description", func(in *api.TaskInput) { in.Description = strings.Repeat("x", 1<<20) }},
		{"state", func(in *api.TaskInput) { in.State = "doing" }},
		{"priority", func(in *api.TaskInput) { in.Priority = "p4" }},
		{"labels", func(in *api.TaskInput) { in.Labels = api.Labels{"Not A Label"} }},
		{"assignee", func(in *api.TaskInput) { in.Assignee = "usr_0000000001" }},
		{"assignee", func(in *api.TaskInput) { in.Assignee = "no-such-agent" }},
		{"blockedBy", func(in *api.TaskInput) { in.BlockedBy = []string{"T-99"} }},
		{"slug", func(in *api.TaskInput) { in.Slug = "t-7" }},
		{"slug", func(in *api.TaskInput) { in.Slug = "next" }},
		{"links[0].url", func(in *api.TaskInput) { in.Links = api.TaskLinks{{URL: "javascript:alert(1)"}} }},
		{"links[0].url", func(in *api.TaskInput) { in.Links = api.TaskLinks{{URL: "https://me:secret@example.com/"}} }},
		{"links[0].url", func(in *api.TaskInput) { in.Links = api.TaskLinks{{URL: "https://example.com/a b"}} }},
		{"links[0].url", func(in *api.TaskInput) { in.Links = api.TaskLinks{{URL: "https://example.com/a\u00a0"}} }},
	} {
		in := good
		tt.change(&in)
		_, _, err := w.CreateTask(context.Background(), w.Owner, in, engine.Idempotency{})
		if e := wantCode(t, err, api.CodeInvalid); len(e.Fields) != 1 || e.Fields[0].Field != tt.field {
			t.Errorf("%s: the refusal names %v", tt.field, e.Fields)
		}
	}
	_, err := w.EditTask(context.Background(), w.Owner, "T-1", func(in *api.TaskEdit) error { in.BlockedBy = []string{"T-3"}; return nil })
	if e := wantCode(t, err, api.CodeInvalid); e.Fields[0].Field != "blockedBy" || !strings.Contains(e.Fields[0].Detail, "circle") {
		t.Errorf("a circle is refused as %v", e.Fields)
	}
}

// contract 7.4
func TestTask_DispatchClaimsOnceAndTheSessionHolds(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent()
	bob := w.Colleague("Bob", api.Member)
	w.Task("Limit the rate", func(in *api.TaskInput) {
		in.Description = "At most 10 a second."
		in.Links = api.TaskLinks{{URL: "https://example.com/spec", Title: "Spec"}}
	})
	must[api.TaskComment](t)(w.CommentTask(ctx, bob, "T-1", api.TaskCommentInput{Text: "Mind the bursts."}))
	preview, _, err := w.DispatchTask(ctx, w.Owner, "T-1", api.DispatchInput{Print: true}, engine.Idempotency{})
	if err != nil || preview.Session != nil || preview.Task.Lease != nil || preview.Agent != a.Slug {
		t.Fatalf("print answers %+v, %v", preview, err)
	}
	for _, part := range []string{"T-1: Limit the rate", "At most 10 a second.", "https://example.com/spec", "Bob", "Mind the bursts."} {
		if !strings.Contains(preview.Briefing, part) {
			t.Errorf("the briefing lacks %q:\n%s", part, preview.Briefing)
		}
	}
	d := w.Dispatch("T-1", api.DispatchInput{})
	if d.Session == nil || d.Session.Task == nil || d.Session.Task.Key != "T-1" || d.Session.UntrustedContext != d.Briefing {
		t.Fatalf("the dispatch answers %+v", d)
	}
	if l := d.Task.Lease; l == nil || !l.Bound || l.SessionID != d.Session.ID || !l.ExpiresAt.IsZero() {
		t.Fatalf("the lease is %+v", l)
	}
	for _, c := range []engine.Caller{w.Owner, bob} {
		_, _, err = w.DispatchTask(ctx, c, "T-1", api.DispatchInput{Agent: a.Slug}, engine.Idempotency{})
		if e := wantCode(t, err, api.CodeAlreadyClaimed); e.Holder != w.Owner.Name {
			t.Errorf("the refusal names %q", e.Holder)
		}
	}
	_, err = claimTask(w, bob, "T-1")
	wantCode(t, err, api.CodeAlreadyClaimed)
	_, _, err = w.DispatchTask(ctx, bob, "T-1", api.DispatchInput{Force: true}, engine.Idempotency{})
	wantCode(t, err, api.CodeForbidden)
	forced := w.Dispatch("T-1", api.DispatchInput{Force: true})
	if forced.Task.Lease.SessionID != forced.Session.ID {
		t.Errorf("forced, the lease is %+v", forced.Task.Lease)
	}
	w.Check()
}

func TestTask_DispatchRefusesWhatCantStart(t *testing.T) {
	w := enginetest.New(t)
	w.Agent()
	w.Task("One")
	w.Task("Two", func(in *api.TaskInput) { in.BlockedBy = []string{"T-1"} })
	w.Task("Three", func(in *api.TaskInput) { in.State = api.TaskDone })
	for ref, code := range map[string]api.Code{"T-2": api.CodeTaskBlocked, "T-3": api.CodeTaskDone, "T-9": api.CodeNotFound} {
		_, _, err := w.DispatchTask(context.Background(), w.Owner, ref, api.DispatchInput{}, engine.Idempotency{})
		wantCode(t, err, code)
	}
	w.Agent()
	_, _, err := w.DispatchTask(context.Background(), w.Owner, "T-1", api.DispatchInput{}, engine.Idempotency{})
	if e := wantCode(t, err, api.CodeInvalid); e.Fields[0].Field != "agent" {
		t.Errorf("with two agents the refusal names %v", e.Fields)
	}
	must[api.Task](t)(w.EditTask(context.Background(), w.Owner, "T-1", func(in *api.TaskEdit) error { in.State = api.TaskDone; return nil }))
	must[api.Task](t)(w.Engine.Task(context.Background(), w.Owner, "T-2"))
	w.Dispatch("T-2", api.DispatchInput{Agent: "agent-1"}) // nothing blocks it any more
	w.Check()
}

// However the session ends, its lease ends with it, in the same transaction, and the state
// follows the rules (contract 7.5).
func TestTask_EveryEndOfTheSessionFreesTheTask(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		end  func(w *enginetest.Fixture, k *enginetest.Worker, a api.Agent, s api.SessionID)
		want api.TaskState
	}{
		"complete": {func(w *enginetest.Fixture, k *enginetest.Worker, _ api.Agent, s api.SessionID) {
			_, _ = k.Complete(k.Claim(s), "")
		}, api.TaskReview},
		"fail": {func(w *enginetest.Fixture, k *enginetest.Worker, _ api.Agent, s api.SessionID) {
			_, _ = k.Fail(k.Claim(s), "X")
		}, api.TaskBlocked},
		"cancel": {func(w *enginetest.Fixture, _ *enginetest.Worker, _ api.Agent, s api.SessionID) {
			_, _ = w.CancelSession(ctx, w.Owner, s, api.CancelInput{})
		}, api.TaskTodo},
		"cancel while it runs": {func(w *enginetest.Fixture, k *enginetest.Worker, _ api.Agent, s api.SessionID) {
			k.Claim(s)
			_, _ = w.CancelSession(ctx, w.Owner, s, api.CancelInput{})
		}, api.TaskTodo},
		"stop": {func(w *enginetest.Fixture, k *enginetest.Worker, _ api.Agent, s api.SessionID) {
			c := k.Claim(s)
			_, _ = w.StopSession(ctx, w.Owner, s)
			_, _ = k.Complete(c, "")
		}, api.TaskTodo},
		"lapses": {func(w *enginetest.Fixture, k *enginetest.Worker, _ api.Agent, s api.SessionID) {
			for range 3 {
				k.Beat()
				k.Claim(s)
				w.Advance(16 * time.Minute)
			}
		}, api.TaskBlocked},
		"agent deleted": {func(w *enginetest.Fixture, _ *enginetest.Worker, a api.Agent, _ api.SessionID) {
			_ = w.DeleteAgent(ctx, w.Owner, a.Slug)
		}, api.TaskTodo},
		"never claimed": {func(w *enginetest.Fixture, _ *enginetest.Worker, _ api.Agent, _ api.SessionID) {
			w.Advance(2 * time.Hour)
		}, api.TaskBlocked},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(func(in *api.AgentInput) { in.QueueTimeoutSeconds = 3600 })
			k := w.Worker(a)
			bob := w.Colleague("Bob", api.Member)
			w.Task("One")
			d := w.Dispatch("T-1", api.DispatchInput{})
			tt.end(w, k, a, d.Session.ID)
			if s := must[api.Session](t)(w.Session(ctx, w.Owner, d.Session.ID)); !s.Status.Terminal() {
				t.Fatalf("the session is %s", s.Status)
			}
			got := w.TaskNow("T-1")
			if got.Lease != nil || got.State != tt.want || got.Assignee == nil {
				t.Fatalf("the task is %s, held by %+v, assigned to %+v; want %s", got.State, got.Lease, got.Assignee, tt.want)
			}
			if r := must[api.TaskReleased](t)(w.ReleaseTask(ctx, w.Owner, "T-1")); r.Released {
				t.Error("there was a lease to release")
			}
			must[api.TaskHeld](t)(claimTask(w, w.Owner, "T-1"))
			must[api.TaskReleased](t)(w.ReleaseTask(ctx, w.Owner, "T-1"))
			must[api.TaskHeld](t)(claimTask(w, bob, "T-1"))
			w.Check()
		})
	}
}

func TestTask_RulesFollowTheSessionUntilAPersonDecides(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent()
	k := w.Worker(a)
	w.Task("One")
	d := w.Dispatch("T-1", api.DispatchInput{})
	state := func(want api.TaskState) {
		t.Helper()
		if got := w.TaskNow("T-1"); got.State != want {
			t.Fatalf("the task is %s, want %s", got.State, want)
		}
	}
	state(api.TaskTodo)
	c := k.Claim(d.Session.ID)
	state(api.TaskInProgress)
	must[api.Session](t)(k.Ask(c, "May I?"))
	state(api.TaskBlocked)
	must[api.Finished](t)(k.Release(c))
	state(api.TaskTodo)
	c = k.Claim(d.Session.ID)
	state(api.TaskInProgress)
	must[api.Task](t)(w.EditTask(ctx, w.Owner, "T-1", func(in *api.TaskEdit) error { in.State = api.TaskReview; return nil }))
	must[api.Finished](t)(k.Fail(c, "X"))
	state(api.TaskReview) // a person had decided
	w.Check()
}

// A retry carries the task over in one step (contract 2.6, 7.2).
func TestTask_RetryCarriesTheLeaseOver(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	a := w.Agent()
	k := w.Worker(a)
	w.Task("One")
	d := w.Dispatch("T-1", api.DispatchInput{})
	must[api.Finished](t)(k.Fail(k.Claim(d.Session.ID), "X"))
	again := must[api.Retried](t)(w.RetrySession(ctx, w.Owner, d.Session.ID))
	got := w.TaskNow("T-1")
	if again.Task == nil || got.Lease == nil || got.Lease.SessionID != again.ID || got.State != api.TaskBlocked {
		t.Fatalf("after the retry the task is %s, held by %+v", got.State, got.Lease)
	}
	c := k.Claim(again.ID)
	if task := c.Untrusted.Task; task == nil || task.Key != "T-1" || task.Title != "One" {
		t.Errorf("the claim's task is %+v", task)
	}
	must[api.Finished](t)(k.Complete(c, ""))
	if got := w.TaskNow("T-1"); got.State != api.TaskReview || got.Lease != nil {
		t.Fatalf("done, the task is %s, held by %+v", got.State, got.Lease)
	}
	must[api.Task](t)(w.EditTask(ctx, w.Owner, "T-1", func(in *api.TaskEdit) error { in.State = api.TaskDone; return nil }))
	must[api.Retried](t)(w.RetrySession(ctx, w.Owner, d.Session.ID))
	if got := w.TaskNow("T-1"); got.Lease != nil {
		t.Errorf("a done task is held by %+v", got.Lease)
	}
	w.Check()
}

func TestTask_NextRanksWhatIsOnesOwnOrNobodys(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	bob := w.Colleague("Bob", api.Member)
	mine := func(in *api.TaskInput) { in.Assignee = "me" }
	w.Task("oldest")                                                                                    // T-1
	w.Task("Bob's", func(in *api.TaskInput) { in.Assignee = bob.UserID.String() })                      // T-2
	w.Task("waits", func(in *api.TaskInput) { in.BlockedBy = []string{"T-1"} })                         // T-3
	w.Task("younger")                                                                                   // T-4
	w.Task("mine and urgent", mine, func(in *api.TaskInput) { in.Priority = "p1" })                     // T-5
	w.Task("done", func(in *api.TaskInput) { in.State = api.TaskDone })                                 // T-6
	w.Task("waits too", func(in *api.TaskInput) { in.BlockedBy = []string{"T-3"} })                     // T-7
	w.Task("urgent, nobody's", func(in *api.TaskInput) { in.Priority = "p1" })                          // T-8
	w.Task("blocks")                                                                                    // T-9
	w.Task("in review", mine, func(in *api.TaskInput) { in.State, in.Priority = api.TaskReview, "p1" }) // T-10
	w.Task("blocked", func(in *api.TaskInput) { in.State = api.TaskBlocked })                           // T-11
	w.Task("urgent, nobody's, young", func(in *api.TaskInput) { in.Priority = "p1" })                   // T-12
	w.Task("some day", func(in *api.TaskInput) { in.Priority = "p3" })                                  // T-13
	w.Task("young")                                                                                     // T-14
	must[api.Task](t)(w.EditTask(ctx, w.Owner, "T-4", func(in *api.TaskEdit) error { in.BlockedBy = []string{"T-9"}; return nil }))
	must[api.TaskHeld](t)(claimTask(w, w.Owner, "T-8"))
	got := must[api.NextTasks](t)(w.NextTasks(ctx, w.Owner, 50))
	var order []string
	for _, n := range got.Items {
		if n.Why == "" {
			t.Errorf("%s stands there without a reason", n.Task.Key)
		}
		if n.InFlight != (n.Task.Key == "T-8") {
			t.Errorf("%s: in flight %v", n.Task.Key, n.InFlight)
		}
		if n.Ready != slices.Contains([]string{"T-5", "T-1", "T-9", "T-12", "T-13", "T-14"}, n.Task.Key) {
			t.Errorf("%s: ready %v", n.Task.Key, n.Ready)
		}
		order = append(order, n.Task.Key)
	}
	if want := "T-5 T-8 T-1 T-9 T-12 T-14 T-13 T-10 T-3 T-4 T-7 T-11"; strings.Join(order, " ") != want {
		t.Errorf("the order is %v, want %s", order, want)
	}
}

func TestTask_AMemberWhoLeavesHoldsNothing(t *testing.T) {
	w := enginetest.New(t)
	ctx := context.Background()
	bob := w.Colleague("Bob", api.Member)
	w.Task("held")
	w.Task("assigned", func(in *api.TaskInput) { in.Assignee = bob.UserID.String() })
	must[api.TaskHeld](t)(claimTask(w, bob, "T-1"))
	must[api.MemberRemoved](t)(w.RemoveMember(ctx, w.Owner, bob.UserID))
	for _, ref := range []string{"T-1", "T-2"} {
		if got := w.TaskNow(ref); got.Lease != nil || got.Assignee != nil || got.State != api.TaskTodo {
			t.Errorf("%s is %s, held by %+v, assigned to %+v", ref, got.State, got.Lease, got.Assignee)
		}
	}
	w.Check()
}
