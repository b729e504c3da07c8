package engine_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

var looking = engine.Looking{Rules: time.Minute, Pages: time.Minute}

// wrong are the codes of what an examination found, each with a mend.
func wrong(t *testing.T, w *enginetest.Fixture, how engine.Looking) (codes []string, out api.Examination) {
	t.Helper()
	out, err := w.Examine(t.Context(), w.Owner, how)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range out.Checks {
		if c.OK {
			continue
		}
		codes = append(codes, c.Code)
		if c.Mend == "" || c.Detail == "" || !slices.Contains(api.FoundCodes, c.Code) {
			t.Errorf("a finding is %+v", c)
		}
	}
	if out.Healthy != (len(codes) == 0) {
		t.Errorf("healthy is %v with %v", out.Healthy, codes)
	}
	return codes, out
}

// busy is a coordinator with a schedule that fires, a worker, a session that runs and one that
// waits for it.
func busy(t *testing.T, opts ...enginetest.Option) (w *enginetest.Fixture, a api.Agent, k *enginetest.Worker) {
	t.Helper()
	w = enginetest.Open(t, opts...)
	a = w.Agent(func(in *api.AgentInput) { in.Schedule, in.CatchUp = "@every 1h", api.CatchUpNone })
	k = w.Worker(a)
	w.Turn()
	k.Claim(w.New(a).ID)
	w.New(a)
	return w, a, k
}

// TestExamine_FindsWhatIsWrongAndNothingElse plants one fault after the other.
func TestExamine_FindsWhatIsWrongAndNothingElse(t *testing.T) {
	beating := func(w *enginetest.Fixture, k *enginetest.Worker, d time.Duration) {
		for range int(d / time.Minute) {
			w.Advance(time.Minute)
			k.Beat()
		}
	}
	ends := func(w *enginetest.Fixture, got engine.Sent) {
		t.Helper()
		due, err := w.TakeDeliveries(t.Context(), w.Now(), 1, nil)
		if err != nil || len(due) != 1 {
			t.Fatalf("%d messages are due: %v", len(due), err)
		}
		if err := w.EndTry(t.Context(), due[0], got); err != nil {
			t.Fatal(err)
		}
	}
	sends := func(w *enginetest.Fixture, got engine.Sent) {
		t.Helper()
		hook := webhookOf(t, w, w.Owner, "https://ann.example/secret")
		must[api.Delivery](t)(w.TestWebhook(t.Context(), w.Owner, hook.ID))
		ends(w, got)
	}
	tells := func(w *enginetest.Fixture, scope api.ChannelScope, got ...engine.Sent) api.Channel {
		t.Helper()
		ch := channelOf(t, w, func(in *api.ChannelInput) { in.Scope = scope })
		for _, sent := range got {
			must[api.ChannelDelivery](t)(w.TestChannel(t.Context(), w.Owner, ch.ID))
			ends(w, sent)
			w.Advance(time.Second)
		}
		return ch
	}
	bad, good := engine.Sent{StatusCode: 500, Problem: "it answered 500"}, engine.Sent{StatusCode: 200}
	for _, row := range []struct {
		code  string
		says  string
		fault func(w *enginetest.Fixture, a api.Agent, k *enginetest.Worker)
	}{
		{"", "", func(*enginetest.Fixture, api.Agent, *enginetest.Worker) {}},
		{api.FoundScheduleBroken, "never fires: no such day", func(w *enginetest.Fixture, a api.Agent, _ *enginetest.Worker) {
			damage(t, w, "UPDATE agents SET schedule_error = 'no such day', next_slot_at = 0")
		}},
		{api.FoundZoneUnknown, "Nowhere/City", func(w *enginetest.Fixture, a api.Agent, _ *enginetest.Worker) {
			damage(t, w, "UPDATE agents SET time_zone = 'Nowhere/City'")
		}},
		{api.FoundScheduleSilent, "none of its last 4 slots; the last was skipped", func(w *enginetest.Fixture, a api.Agent, k *enginetest.Worker) {
			w.Edit(a.ID, func(in *api.AgentInput) { in.Schedule = "@every 1m" })
			beating(w, k, 4*time.Minute+30*time.Second) // it runs, and the next is skipped
		}},
		{api.FoundNoWorker, "No worker serves this agent", func(w *enginetest.Fixture, _ api.Agent, k *enginetest.Worker) {
			w.New(w.Agent())
			beating(w, k, 2*time.Minute)
		}},
		{api.FoundSessionWaits, "paused", func(w *enginetest.Fixture, a api.Agent, k *enginetest.Worker) {
			b := w.Agent()
			s := w.New(b)
			other := w.Worker(b)
			if _, _, err := w.PauseAgent(t.Context(), w.Owner, b.ID.String(), ""); err != nil {
				t.Fatal(err)
			}
			damage(t, w, "UPDATE sessions SET created_at = created_at - 90000000000 WHERE id = "+number(s.ID))
			other.Beat()
		}},
		{api.FoundWorkerSilent, "has not been heard of", func(w *enginetest.Fixture, _ api.Agent, k *enginetest.Worker) {
			b := w.Agent()
			w.Worker(b)
			beating(w, k, 4*time.Minute)
		}},
		{api.FoundWorkerNotice, "It can't be used.", func(w *enginetest.Fixture, _ api.Agent, k *enginetest.Worker) {
			_, err := w.Engine.Beat(t.Context(), w.Owner, k.ID, api.Beat{InstanceID: k.Instance, Notices: []api.Notice{{Code: api.NoticeWorkflowInvalid, Text: "It can't be used."}}})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{api.FoundReportsUnsent, "holds 12 reports", func(w *enginetest.Fixture, _ api.Agent, k *enginetest.Worker) {
			_, err := w.Engine.Beat(t.Context(), w.Owner, k.ID, api.Beat{InstanceID: k.Instance, Unsent: api.Unsent{Reports: 12, Seconds: 301}})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"", "", func(w *enginetest.Fixture, _ api.Agent, k *enginetest.Worker) { // it has only just begun
			_, err := w.Engine.Beat(t.Context(), w.Owner, k.ID, api.Beat{InstanceID: k.Instance, Unsent: api.Unsent{Reports: 12, Seconds: 200}})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{api.FoundWebhookFails, "after 1 tries", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			sends(w, engine.Sent{StatusCode: 500, Problem: "it answered 500"})
		}},
		{api.FoundChannelFails, "after 1 tries", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			tells(w, api.ScopeWorkspace, good, bad)
		}},
		{api.FoundChannelFails, "Channel chn_", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			tells(w, api.ScopePerson, bad)
		}},
		{"", "", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			tells(w, api.ScopeWorkspace, bad, good)
		}},
		{api.FoundChannelDisabled, "sends nothing any more: It", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			tells(w, api.ScopeWorkspace)
			damage(t, w, "UPDATE webhooks SET enabled = 0, disabled_reason = 'It was gone for good.'")
		}},
		{api.FoundWebhookDisabled, "gone for good", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			hook := webhookOf(t, w, w.Owner, "https://ann.example/secret")
			w.New(w.Agent())
			if err := w.ExpandWebhooks(t.Context()); err != nil {
				t.Fatal(err)
			}
			due, err := w.TakeDeliveries(t.Context(), w.Now(), 1, nil)
			if err != nil || len(due) != 1 {
				t.Fatalf("%d messages of %s are due: %v", len(due), hook.ID, err)
			}
			if err := w.EndTry(t.Context(), due[0], engine.Sent{StatusCode: 410}); err != nil {
				t.Fatal(err)
			}
		}},
		{api.FoundClockSetBack, "was set back", func(w *enginetest.Fixture, _ api.Agent, k *enginetest.Worker) {
			w.Jump(-time.Minute)
			w.Turn()
			beating(w, k, 2*time.Minute)
		}},
		{api.FoundClockBehind, "behind the newest entry", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			w.Jump(-time.Hour)
		}},
		{api.FoundPromiseBroken, "ids come from the counter", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			damage(t, w, "UPDATE counters SET value = 7 WHERE name = 'id'")
		}},
		{api.FoundBackupFailed, "The disk with the backups is full. And none has been made yet", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			damage(t, w, "UPDATE backups SET failed_at = 1772442000000000, failure = 'The disk with the backups is full.'")
		}},
		{api.FoundBackupLate, "every 1h0m0s, and the last good one is from 2026-03-02 06:00:00", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			w.Reconfigure(func(c *engine.Config) { c.Backups.Every = time.Hour })
			damage(t, w, "UPDATE backups SET good_at = 1772431200000000")
		}},
		{api.FoundDatabaseLimit, "STINT_DATA_MIB", func(w *enginetest.Fixture, _ api.Agent, _ *enginetest.Worker) {
			w.Reconfigure(func(c *engine.Config) { c.MaxData = 1 })
			if err := w.Measure(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(row.code, func(t *testing.T) {
			w, a, k := busy(t)
			row.fault(w, a, k)
			codes, out := wrong(t, w, looking)
			var want []string
			if row.code != "" {
				want = []string{row.code}
			}
			if !slices.Equal(codes, want) {
				t.Fatalf("it found %v: %+v", codes, out.Checks)
			}
			for _, c := range out.Checks {
				if !c.OK && !strings.Contains(c.Detail, row.says) || strings.Contains(c.Detail+c.Mend, "ann.example") || strings.Contains(c.Detail+c.Mend, w.Path) {
					t.Errorf("%s is told as %q, %q", c.Code, c.Detail, c.Mend)
				}
			}
		})
	}
}

// A check that has no time says so and finds nothing; it isn't an error.
func TestExamine_SaysHowFarItCame(t *testing.T) {
	w, _, _ := busy(t)
	_, out := wrong(t, w, engine.Looking{Rules: 1, Pages: time.Minute})
	i := slices.IndexFunc(out.Checks, func(c api.Check) bool { return c.Name == api.CheckPromises })
	if got := out.Checks[i]; !got.OK || !strings.HasPrefix(got.Detail, "0 of ") {
		t.Errorf("without time it says %+v", got)
	}
	whole, err := w.CheckWithin(t.Context(), time.Minute)
	if err != nil || whole.Rules != whole.Of || whole.Of < 40 {
		t.Errorf("with time it checked %d of %d (%v)", whole.Rules, whole.Of, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.CheckWithin(ctx, time.Minute); err == nil {
		t.Error("a caller who left is told that all is well")
	}
}

func TestExamine_OfAStoppedDirectoryNamesTheRowsAndNobodyWhoShouldServe(t *testing.T) {
	w, _, _ := busy(t)
	w.New(w.Agent())
	w.Jump(time.Hour)
	stopped := looking
	stopped.Stopped = true
	if codes, out := wrong(t, w, stopped); len(codes) > 0 {
		t.Errorf("it found %v", out.Checks)
	}
	damage(t, w, "UPDATE counters SET value = 7 WHERE name = 'id'")
	_, out := wrong(t, w, stopped)
	_, online := wrong(t, w, looking)
	told := func(e api.Examination) string {
		return e.Checks[slices.IndexFunc(e.Checks, func(c api.Check) bool { return c.Code == api.FoundPromiseBroken })].Detail
	}
	if strings.Contains(told(online), "7") || told(out) == told(online) {
		t.Errorf("offline it says %q, online %q", told(out), told(online))
	}
}

func TestExamine_TakesTheRoleAdmin(t *testing.T) {
	w := enginetest.New(t)
	_, viewer := joined(t, w, api.Member, "ben")
	_, err := w.Examine(t.Context(), viewer, looking)
	refusedWith(t, err, api.CodeForbidden)
	if account.Examine.Role() != api.Admin {
		t.Error("the right is another role's")
	}
}

// What is wrong in the other workspaces of an admin is told too, and where; not what is wrong in
// those in which they may examine nothing.
func TestExamine_LooksAtAllWorkspacesOfAnAdmin(t *testing.T) {
	w := enginetest.Open(t)
	ann := w.Colleague("ann", api.Admin)
	owner := account.Identity{UserID: w.Owner.UserID, Name: w.Owner.Name}
	for _, slug := range []string{"lab", "den"} {
		must[api.Workspace](t)(w.CreateWorkspace(t.Context(), owner, api.WorkspaceInput{Slug: slug, Name: slug}))
		in := engine.DefaultConfig().DefaultAgent()
		in.Slug, in.Run.Command, in.Schedule = "of-"+slug, []string{"true"}, "@daily"
		must[api.Agent](t)(w.CreateAgent(t.Context(), must[engine.Caller](t)(w.In(t.Context(), owner, slug)), in))
	}
	if codes, _ := wrong(t, w, looking); len(codes) > 0 {
		t.Errorf("nothing is wrong and %v is found", codes)
	}
	damage(t, w, "UPDATE agents SET time_zone = 'Nowhere/Land'", "INSERT INTO members SELECT id, "+strconv.FormatInt(int64(ann.UserID), 10)+", 'member', 1 FROM workspaces WHERE slug = 'lab'")
	for _, tt := range []struct {
		who  engine.Caller
		want []string
	}{{w.Owner, []string{"lab", "den"}}, {ann, nil}} {
		out := must[api.Examination](t)(w.Examine(t.Context(), tt.who, looking))
		var got []string
		for _, c := range out.Checks {
			if c.Code == api.FoundZoneUnknown {
				_, slug, _ := strings.Cut(c.Mend, "--workspace ")
				slug = strings.TrimSuffix(slug, ")")
				if got = append(got, slug); !strings.HasPrefix(c.Detail, "In the workspace "+slug+": Agent of-"+slug+" ") {
					t.Errorf("it says %+v", c)
				}
			}
		}
		if !slices.Equal(got, tt.want) || out.Healthy != (tt.want == nil) {
			t.Errorf("%s is told of %v", tt.who.Name, got)
		}
	}
}
