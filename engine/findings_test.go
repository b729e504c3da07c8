package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// toldTo makes a channel that takes whatever it is told, and returns what it was told since the
// last look, oldest first, with causes. Time passes until nothing waits.
func toldTo(t *testing.T, w *enginetest.Fixture, c engine.Caller, change ...func(*api.ChannelInput)) func() []string {
	t.Helper()
	in := engine.DefaultChannel()
	in.URL = "ntfy://ntfy.sh/topic"
	for _, f := range change {
		f(&in)
	}
	ch := must[api.Channel](t)(w.CreateChannel(t.Context(), c, in))
	seen := map[api.DeliveryID]bool{}
	return func() (told []string) {
		t.Helper()
		takeAll(t, w)
		log := must[api.List[api.ChannelDelivery]](t)(w.ChannelDeliveries(t.Context(), c, ch.ID, api.Page{Limit: 200}))
		for _, d := range slices.Backward(log.Items) {
			if !seen[d.ID] && d.State == api.DeliveryDelivered {
				told = append(told, string(d.Cause)+": "+d.Title)
				seen[d.ID] = true
			}
		}
		return told
	}
}

// takeAll sends what is due now, and says yes to all of it.
func takeAll(t *testing.T, w *enginetest.Fixture) (sent []engine.DeliveryAttempt) {
	t.Helper()
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		due := must[[]engine.DeliveryAttempt](t)(w.TakeDeliveries(t.Context(), w.Now(), 100, nil))
		if len(due) == 0 {
			return sent
		}
		for _, d := range due {
			if err := w.EndTry(t.Context(), d, engine.Sent{StatusCode: 200}); err != nil {
				t.Fatal(err)
			}
		}
		sent = append(sent, due...)
	}
}

// wants compares what was told with what was to be, whatever agents are called.
func wants(t *testing.T, when string, told []string, want ...string) {
	t.Helper()
	if !slices.Equal(told, want) {
		t.Errorf("%s: told %q, want %q", when, told, want)
	}
}

func advance(w *enginetest.Fixture, d time.Duration, ks ...*enginetest.Worker) {
	w.Helper()
	for range int(d / time.Minute) {
		w.Advance(time.Minute)
		for _, k := range ks {
			k.Beat()
		}
	}
}

func everyMinutes(n string) func(*api.AgentInput) {
	return func(in *api.AgentInput) { in.Schedule, in.CatchUp = "@every "+n, api.CatchUpNone }
}

// A schedule whose run nobody takes is told once, of everybody who sees the agent, and is over
// when a worker has taken it.
func TestFindings_AScheduleThatNobodyServes(t *testing.T) {
	w := enginetest.New(t, enginetest.AtOnce)
	ann := w.Colleague("ann", api.Admin)
	told, others := toldTo(t, w, w.Owner), toldTo(t, w, ann)
	a := w.Agent(everyMinutes("1h"))
	advance(w, time.Hour+9*time.Minute)
	wants(t, "nine minutes after it was due", told())
	advance(w, 3*time.Minute)
	want := "schedule: " + a.Slug + " didn't run when it was due"
	wants(t, "ten minutes after it was due", told(), want)
	wants(t, "another admin", others(), want)
	if got := inboxOf(w, w.Owner); got != strings.Replace(want, ": ", ":", 1) {
		t.Errorf("the inbox holds %q", got)
	}
	item := must[engine.InboxView](t)(w.Inbox(t.Context(), ann)).Items[0]
	if !strings.Contains(item.Detail, "No worker serves this agent") || !strings.Contains(item.Mend, "stint worker run --agent "+a.Slug) || strings.Contains(item.Detail, "ses_") {
		t.Errorf("it says %q, to mend by %q", item.Detail, item.Mend)
	}
	advance(w, 6*time.Hour) // now also its last slots were skipped: the same cause
	w.Restart()
	wants(t, "hours later", told())
	k := w.Worker(a)
	c := k.Claim(w.All(a.ID)[0].ID)
	advance(w, time.Minute, k)
	wants(t, "a worker has it", told(), "recovered: "+a.Slug+" runs on schedule again")
	if got := inboxOf(w, w.Owner); got != "" {
		t.Errorf("the inbox still holds %q", got)
	}
	must[api.Finished](t)(k.Complete(c, ""))
}

// One whose last slots were skipped is told once, whatever comes and goes within the hour, and
// is over when it fires.
func TestFindings_AScheduleThatSilentlyDoesNothing(t *testing.T) {
	w := enginetest.New(t, enginetest.AtOnce)
	told := toldTo(t, w, w.Owner)
	a := w.Agent(everyMinutes("5m"), func(in *api.AgentInput) { in.LeaseSeconds = 3600 })
	k := w.Worker(a)
	advance(w, 5*time.Minute, k)
	c := *k.Next()
	advance(w, 14*time.Minute, k)
	wants(t, "two slots were skipped", told())
	advance(w, 2*time.Minute, k)
	wants(t, "three were", told(), "schedule: "+a.Slug+" didn't run when it was due")
	must[api.Finished](t)(k.Complete(c, ""))
	advance(w, 5*time.Minute, k)
	wants(t, "it fired", told(), "recovered: "+a.Slug+" runs on schedule again")
	if got := inboxOf(w, w.Owner); got != "" {
		t.Errorf("the inbox still holds %q", got)
	}
	c = *k.Next()
	advance(w, 16*time.Minute, k)
	if got := inboxOf(w, w.Owner); !strings.HasPrefix(got, "schedule:") {
		t.Errorf("back again, the inbox holds %q", got)
	}
	wants(t, "back again", told())
	for range 6 {
		advance(w, 10*time.Minute, k)
		must[api.Lease](t)(k.Renew(c))
	}
	wants(t, "back for an hour", told(), "schedule: "+a.Slug+" didn't run when it was due")
	if _, _, err := w.PauseAgent(t.Context(), w.Owner, a.ID.String(), ""); err != nil {
		t.Fatal(err)
	}
	advance(w, time.Minute, k)
	wants(t, "somebody paused it", told())
	if got := inboxOf(w, w.Owner); got != "" {
		t.Errorf("paused, the inbox holds %q", got)
	}
	must[api.Finished](t)(k.Complete(c, ""))
	advance(w, 2*time.Hour, k)
	if left := w.Tell("SELECT COUNT(*) FROM findings"); left[0] != "0" {
		t.Errorf("%v findings are left", left)
	}
}

// A run that lost its worker is told to those who may see it, unless another takes it at once.
func TestFindings_AWorkerThatVanishesWithWork(t *testing.T) {
	w := enginetest.New(t, enginetest.AtOnce)
	ann := w.Colleague("ann", api.Admin)
	mine, others := toldTo(t, w, w.Owner), toldTo(t, w, ann)
	all := toldTo(t, w, w.Owner, func(in *api.ChannelInput) { in.Scope = api.ScopeWorkspace })
	a := w.Agent()
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	advance(w, 20*time.Minute) // not a sign of life
	w.Want(c.SessionID, api.Stale)
	wants(t, "its owner", mine(), "worker_lost: "+a.Slug+" lost its worker")
	wants(t, "another admin", others())
	wants(t, "the workspace", all())
	advance(w, time.Hour)
	wants(t, "an hour later", mine())
	k = w.Worker(a)
	c = k.Claim(c.SessionID)
	advance(w, time.Minute, k)
	wants(t, "another has it", mine(), "recovered: "+a.Slug+" goes on")
	must[api.Finished](t)(k.Complete(c, ""))

	c = k.Claim(w.New(a).ID)
	other := w.Worker(a)
	for range 12 {
		advance(w, time.Minute, other)
		if w.Get(c.SessionID).Status == api.Stale {
			other.Claim(c.SessionID)
			break
		}
	}
	advance(w, time.Minute, other)
	wants(t, "another took it at once", mine())
	wants(t, "the workspace in the end", all())
}

// What an agent's day may cost is told once for all its runs; what one run may cost once for
// it, and neither as a failure.
func TestFindings_SpendLimits(t *testing.T) {
	w := enginetest.New(t, enginetest.AtOnce)
	told := toldTo(t, w, w.Owner)
	a := w.Agent(func(in *api.AgentInput) {
		in.DailySpendLimitMicros, in.SessionSpendLimitMicros, in.MaxConcurrent = 3000, 1000, 5
	})
	k := w.Worker(a)
	spend := func() {
		t.Helper()
		c := k.Claim(w.New(a).ID)
		_, err := w.Fail(t.Context(), w.Owner, k.ID, c.SessionID, api.FailRequest{UnderClaim: k.Under(c.ClaimID), Code: "SPEND_LIMIT", Usage: &api.Usage{CostMicros: 1000}})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "spend_limit: " + a.Slug + " reached its spend limit"
	spend()
	advance(w, time.Minute, k)
	wants(t, "one run", told(), want)
	spend()
	advance(w, time.Minute, k)
	wants(t, "another", told(), want)
	spend()
	advance(w, time.Minute, k)
	wants(t, "the day", told(), want)
	if got := inboxOf(w, w.Owner); !strings.Contains(got, "spend_limit:"+a.Slug+" reached") {
		t.Errorf("the inbox holds %q", got)
	}
	advance(w, 16*time.Hour, k)
	wants(t, "the next day", told())
	if got := inboxOf(w, w.Owner); strings.Contains(got, "spend_limit:") {
		t.Errorf("the next day the inbox holds %q", got)
	}
}

// Trouble of the coordinator's own is told to those who may look at it.
func TestFindings_DiskAndBackup(t *testing.T) {
	root := t.TempDir()
	in := filepath.Join(root, "file")
	if err := os.WriteFile(in, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free := int64(1 << 40)
	w := enginetest.New(t, enginetest.AtOnce, everyHour(filepath.Join(in, "backups")), enginetest.With(func(c *engine.Config) { c.FreeBytes = func() (int64, error) { return free, nil } }))
	ann, ben := w.Colleague("ann", api.Admin), w.Colleague("ben", api.Member)
	owner, admin, member := toldTo(t, w, w.Owner), toldTo(t, w, ann), toldTo(t, w, ben)
	all := toldTo(t, w, ann, func(in *api.ChannelInput) { in.Scope = api.ScopeWorkspace })
	free = 100 << 20
	advance(w, time.Minute)
	wants(t, "a full disk", owner(), "disk: The disk is nearly full")
	wants(t, "a full disk, to an admin", admin(), "disk: The disk is nearly full")
	if got := inboxOf(w, ann); got != "disk:The disk is nearly full" {
		t.Errorf("an admin's inbox holds %q", got)
	}
	if got := inboxOf(w, ben); got != "" {
		t.Errorf("a member's inbox holds %q", got)
	}
	free = 1 << 40
	advance(w, time.Minute)
	wants(t, "there is room", owner(), "recovered: There is room on the disk again")
	backup(t, w)
	advance(w, time.Minute)
	wants(t, "a backup failed", owner(), "backup: The backup failed")
	w.Clock.Step(10 * time.Minute)
	backup(t, w)
	advance(w, time.Minute)
	wants(t, "it fails again", owner())
	if err := os.Remove(in); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(10 * time.Minute)
	backup(t, w)
	advance(w, time.Minute)
	wants(t, "it succeeds", owner(), "recovered: Backups succeed again")
	advance(w, 2*time.Hour+5*time.Minute) // and nobody makes one
	wants(t, "none is made", owner(), "backup: The backup is overdue")
	wants(t, "a member", member())
	wants(t, "the workspace", all())
	if events := w.Tell("SELECT data FROM events WHERE type LIKE 'finding%'"); strings.Contains(strings.Join(events, " "), root) {
		t.Errorf("an event names the folder: %v", events)
	}
}

// While how much is free can't be asked, nothing is said of it.
func TestFindings_ADiskThatCannotBeAsked(t *testing.T) {
	w := enginetest.New(t, enginetest.AtOnce, enginetest.With(func(c *engine.Config) { c.FreeBytes = func() (int64, error) { return 0, errors.New("no") } }))
	advance(w, time.Minute)
	if got := inboxOf(w, w.Owner); got != "" {
		t.Errorf("the inbox holds %q", got)
	}
}

// What is over before anybody could be told is told to nobody.
func TestFindings_WhatIsOverIsNotTold(t *testing.T) {
	free := int64(1)
	w := enginetest.New(t, enginetest.AtOnce, enginetest.With(func(c *engine.Config) { c.FreeBytes = func() (int64, error) { return free, nil } }))
	told := toldTo(t, w, w.Owner)
	advance(w, time.Minute)
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	free = 1 << 40
	advance(w, time.Minute)
	wants(t, "it is over", told())
}

// What waited while the coordinator was away is given the time to be taken up.
func TestFindings_AnAbsenceIsNobodysFault(t *testing.T) {
	for name, away := range map[string]time.Duration{"a run waited": 20 * time.Minute, "a run was due": 2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.AtOnce)
			told := toldTo(t, w, w.Owner)
			a := w.Agent(func(in *api.AgentInput) { in.Schedule, in.CatchUp = "@every 1h", api.CatchUpLatest })
			advance(w, time.Hour+time.Minute)
			if away > time.Hour {
				if _, err := w.CancelSession(t.Context(), w.Owner, w.All(a.ID)[0].ID, api.CancelInput{}); err != nil {
					t.Fatal(err)
				}
			}
			w.Jump(away)
			advance(w, 9*time.Minute)
			wants(t, "nine minutes after the absence", told())
			advance(w, 2*time.Minute)
			wants(t, "ten minutes after it", told(), "schedule: "+a.Slug+" didn't run when it was due")
		})
	}
}

// What told of trouble that lasts stays in a channel's log, however old it is, so that its end is
// told too; it goes once that is over.
func TestFindings_TheEndOfLongTroubleIsTold(t *testing.T) {
	for name, limit := range map[string]engine.RetentionLimit{"age": {Age: time.Hour}, "count": {Count: 1}, "bytes": {Bytes: 1}} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.AtOnce, retaining(func(r *engine.Retention) { r.Deliveries = limit }))
			told := toldTo(t, w, w.Owner)
			a := w.Agent(everyMinutes("1h"))
			advance(w, 2*time.Hour)
			b := w.Agent(everyMinutes("1h"))
			advance(w, 2*time.Hour)
			wants(t, "nobody takes them", told(), "schedule: "+a.Slug+" didn't run when it was due", "schedule: "+b.Slug+" didn't run when it was due")
			later(w, 40*day)
			prune(t, w)
			k := w.Worker(a)
			c := k.Claim(w.All(a.ID)[0].ID)
			advance(w, time.Minute, k)
			wants(t, "a worker has it", told(), "recovered: "+a.Slug+" runs on schedule again")
			must[api.Finished](t)(k.Complete(c, ""))
			if _, _, err := w.PauseAgent(t.Context(), w.Owner, b.ID.String(), ""); err != nil {
				t.Fatal(err)
			}
			w.Advance(time.Minute)
			later(w, 2*time.Hour)
			w.Advance(time.Minute)
			prune(t, w)
			if got := w.Tell("SELECT COUNT(*) FROM deliveries WHERE cause LIKE 'finding-%' AND created_at < 1774000000000000"); !slices.Equal(got, []string{"0"}) {
				t.Errorf("%v deliveries about what is over are left", got)
			}
		})
	}
}

// What waits in an admin's channel isn't told to who is no admin any more when its time comes.
func TestFindings_OfTheHouseAreNotToldToAnAdminOfBefore(t *testing.T) {
	free := int64(100 << 20)
	w := enginetest.New(t, enginetest.AtOnce, enginetest.With(func(c *engine.Config) { c.FreeBytes = func() (int64, error) { return free, nil } }))
	digest := func(in *api.ChannelInput) { in.DigestAt, in.TimeZone = "08:00", "UTC" }
	ann, ben := w.Colleague("ann", api.Admin), w.Colleague("ben", api.Admin)
	before, still := toldTo(t, w, ann, digest), toldTo(t, w, ben, digest)
	advance(w, time.Minute)
	wants(t, "before the digest", before())
	wants(t, "before the digest, to another", still())
	must[api.WorkspaceMember](t)(w.SetRole(t.Context(), w.Owner, ann.UserID, api.Member))
	later(w, 24*time.Hour)
	wants(t, "to who is an admin", still(), "disk: The disk is nearly full")
	wants(t, "to who was one", before())
}
