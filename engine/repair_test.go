package engine_test

import (
	"context"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// damagedFixture is a coordinator with one agent whose rows are broken and one that is
// sound: each with a running session, one that asks, a stale one, one that waits and ones
// that ended.
type damagedFixture struct {
	*enginetest.Fixture
	broken, sound   api.Agent
	worker, other   *enginetest.Worker
	running, asking api.Claim
	waits           api.Session
}

func newDamagedFixture(t *testing.T) *damagedFixture {
	t.Helper()
	d := &damagedFixture{Fixture: enginetest.Open(t)}
	t.Cleanup(d.Close)
	most := func(in *api.AgentInput) { in.MaxConcurrent, in.Schedule, in.Overlap = 5, "@hourly", api.OverlapAllow }
	d.broken, d.sound = d.Agent(most), d.Agent(most)
	d.worker, d.other = d.Worker(d.broken), d.Worker(d.sound)
	ended := d.worker.Claim(d.Fixture.New(d.broken).ID)
	must[api.Finished](t)(d.worker.Fail(ended, "X"))
	d.running = d.worker.Claim(d.Fixture.New(d.broken).ID)
	d.asking = d.worker.Claim(d.Fixture.New(d.broken).ID)
	must[api.Session](t)(d.worker.Ask(d.asking, "Which one?"))
	d.waits = d.Fixture.New(d.broken)
	d.other.Claim(d.Fixture.New(d.sound).ID)
	webhookOf(t, d.Fixture, d.Owner, "https://receiver.test/")
	return d
}

// reads are all that shows more than one thing.
func (d *damagedFixture) reads() map[string]func() error {
	ctx, c := context.Background(), d.Owner
	return map[string]func() error{
		"sessions":     func() error { _, err := d.Sessions(ctx, c, api.SessionFilter{}, api.Page{}); return err },
		"session list": func() error { _, err := d.SessionList(ctx, c, api.SessionFilter{}, api.Page{}); return err },
		"agents":       func() error { _, err := d.Agents(ctx, c, api.Page{}); return err },
		"agent list":   func() error { _, err := d.AgentList(ctx, c, ""); return err },
		"agent page":   func() error { _, err := d.AgentPageOf(ctx, c, d.sound.Slug); return err },
		"its page":     func() error { _, err := d.AgentPageOf(ctx, c, d.broken.Slug); return err },
		"workers":      func() error { _, err := d.Workers(ctx, c, "", api.Page{}); return err },
		"worker list":  func() error { _, err := d.WorkerList(ctx, c); return err },
		"worker page":  func() error { _, err := d.WorkerPageOf(ctx, c, d.other.ID); return err },
		"home":         func() error { _, err := d.Home(ctx, c, time.UTC); return err },
		"inbox":        func() error { _, err := d.Inbox(ctx, c); return err },
		"audit":        func() error { _, err := d.Audit(ctx, c, api.AuditFilter{}, api.Page{}); return err },
		"webhooks":     func() error { _, err := d.Webhooks(ctx, c, api.Page{}); return err },
		"deliveries":   func() error { return d.ExpandWebhooks(ctx) },
	}
}

// loops are the timers, and what workers ask.
func (d *damagedFixture) loops() map[string]func() error {
	ctx := context.Background()
	timer := func(do func(context.Context, time.Time) (time.Time, error)) func() error {
		return func() error { _, err := do(ctx, d.Now()); return err }
	}
	return map[string]func() error{
		"cron": timer(d.Tick), "lapse": timer(d.Lapse), "admit": timer(d.Admit), "unclaimed": timer(d.EndUnclaimed),
		"repair": timer(d.Repair), "lift": timer(d.Lift), "deadlines": timer(d.Deadlines),
		"claim next": func() error {
			_, err := d.ClaimNext(ctx, d.other.Caller, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{d.other.ID}, InstanceID: d.other.Instance, RequestID: "r"})
			return err
		},
		"poll": func() error { _, err := d.Poll(ctx, d.other.Caller, d.other.ID, d.other.Instance, 0, 0); return err },
		"beat": func() error {
			_, err := d.Beat(ctx, d.other.Caller, d.other.ID, api.Beat{InstanceID: d.other.Instance})
			return err
		},
		"trigger": func() error {
			_, _, err := d.CreateSession(ctx, d.Owner, d.sound.Slug, api.SessionInput{}, engine.Idempotency{})
			return err
		},
	}
}

// One broken row, for example after a manual repair or a partial restore, fails no list and no
// loop, and the agent that it belongs to can still be deleted.
func TestDamage_OneRowFailsNothingElse(t *testing.T) {
	for name, harm := range map[string]func(d *damagedFixture) string{
		"the claim of a running session is gone": func(d *damagedFixture) string {
			return "DELETE FROM claims WHERE id = " + number(d.running.ClaimID.Key)
		},
		"the claim of one that asks is gone": func(d *damagedFixture) string { return "DELETE FROM claims WHERE id = " + number(d.asking.ClaimID.Key) },
		"its question is gone":               func(d *damagedFixture) string { return "DELETE FROM prompts" },
		"its thread is gone":                 func(d *damagedFixture) string { return "DELETE FROM threads" },
		"its agent is gone":                  func(d *damagedFixture) string { return "DELETE FROM agents WHERE id = " + number(d.broken.ID) },
		"its worker is gone":                 func(d *damagedFixture) string { return "DELETE FROM workers WHERE id = " + number(d.worker.ID) },
		"the trusted part is gone":           func(d *damagedFixture) string { return "DELETE FROM agent_versions" },
		"the run block can't be read":        func(d *damagedFixture) string { return "UPDATE agents SET run = '{' WHERE id = " + number(d.broken.ID) },
		"the schedule can't be read": func(d *damagedFixture) string {
			return "UPDATE agents SET schedule = 'never' WHERE id = " + number(d.broken.ID)
		},
		"the zone is none": func(d *damagedFixture) string {
			return "UPDATE agents SET time_zone = 'Nowhere' WHERE id = " + number(d.broken.ID)
		},
		"the labels can't be read": func(d *damagedFixture) string {
			return "UPDATE agents SET labels = 'x' WHERE id = " + number(d.broken.ID)
		},
		"a session's labels can't be read": func(d *damagedFixture) string {
			return "UPDATE sessions SET labels = '[' WHERE id = " + number(d.waits.ID)
		},
		"a worker's types can't be read": func(d *damagedFixture) string {
			return "UPDATE workers SET types = '[1]' WHERE id = " + number(d.worker.ID)
		},
		"a worker's notices can't be read": func(d *damagedFixture) string {
			return "UPDATE workers SET notices = '[' WHERE id = " + number(d.worker.ID)
		},
		"an event can't be read":           func(d *damagedFixture) string { return "UPDATE events SET data = '{' WHERE seq % 2 = 0" },
		"a question's parts can't be read": func(d *damagedFixture) string { return "UPDATE prompts SET detail = '{', fallback = '['" },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDamagedFixture(t)
			statement := harm(d)
			damage(t, d.Fixture, "PRAGMA foreign_keys = OFF", statement)
			d.Restart()
			for _, doing := range []map[string]func() error{d.reads(), d.loops(), d.reads()} {
				for what, do := range doing {
					func() {
						defer func() {
							if p := recover(); p != nil {
								t.Errorf("%s: panic %v", what, p)
							}
						}()
						if err := do(); err != nil && (api.CodeOf(err) == "" || api.CodeOf(err) == api.CodeInternal) {
							t.Errorf("%s: %v", what, err)
						}
					}()
				}
				d.Clock.Step(time.Hour)
			}
			if err := d.DeleteAgent(t.Context(), d.Owner, d.broken.ID.String()); err != nil && api.CodeOf(err) != api.CodeNotFound {
				t.Errorf("delete the agent: %v", err)
			}
		})
	}
}

// A session whose claim is gone is free again, as after a lapse, and continues.
func TestRepair_FreesWhatRunsWithoutAClaim(t *testing.T) {
	d := newDamagedFixture(t)
	damage(t, d.Fixture, "PRAGMA foreign_keys = OFF", "DELETE FROM claims WHERE id IN ("+number(d.running.ClaimID.Key)+", "+number(d.asking.ClaimID.Key)+")")
	d.Restart()
	for range 2 {
		if _, err := d.Repair(t.Context(), d.Now()); err != nil {
			t.Fatal(err)
		}
		if got := d.Want(d.running.SessionID, api.Stale); got.Lapses != 1 {
			t.Errorf("it has lapsed %d times", got.Lapses)
		}
		d.Want(d.asking.SessionID, api.Stale)
	}
	if a, err := d.Engine.Agent(t.Context(), d.Owner, d.broken.Slug); err != nil || a.Running != 0 {
		t.Errorf("%d sessions of the agent count as running (%v)", a.Running, err)
	}
	if c := d.worker.Claim(d.running.SessionID); c.Fence != d.running.Fence+1 {
		t.Errorf("it is claimed again with fence %d after %d", c.Fence, d.running.Fence)
	}
}
