// Package enginetest makes engines for tests: a real SQLite file, a clock that the test owns,
// agents and workers in a line each, and one check of everything that must never happen, which
// every test ends with.
//
// It fakes time and nothing else. It only knows the engine's exported verbs.
package enginetest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
)

// Start is what the clock of a new fixture shows: a Monday, on the minute.
var Start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// TB is what a fixture needs of its test; both testing.TB and *rapid.T have it.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Fixture is one coordinator over one file, and the time in it.
type Fixture struct {
	TB
	*engine.Engine
	*account.Accounts

	Store *db.Store
	Clock *Clock
	Owner engine.Caller // owner of the workspace `default`
	Path  string        // the database file

	options options
	watched time.Time // when the watch ran last
	agents  int       // names given out
	workers int
}

type options struct {
	config engine.Config
	sync   string
	skew   time.Duration
	stride time.Duration
	now    func() time.Time // instead of the clock
	image  func() ([]byte, error)
	clock  *Clock
}

// Option changes how a fixture is made.
type Option func(*options)

// With changes the engine's configuration.
func With(change func(*engine.Config)) Option {
	return func(o *options) { change(&o.config) }
}

// AtOnce makes channels tell each thing by itself, as soon as it happens.
var AtOnce = With(func(c *engine.Config) { c.GatherFor, c.GatherEvery = 0, 0 })

// From lays a copy of a fixture's file, taken by Image, at the time of that fixture.
func From(image []byte, at time.Time) Option {
	return func(o *options) {
		o.image = func() ([]byte, error) { return image, nil }
		o.clock = NewClock(at)
	}
}

// Now makes the coordinator read another clock than the fixture's, such as that of
// a bubble of testing/synctest.
func Now(now func() time.Time) Option { return func(o *options) { o.now = now } }

// Stride is the longest step of the clock in Advance; 5 s by default. With a longer one,
// OutageAfter must be longer still.
func Stride(d time.Duration) Option { return func(o *options) { o.stride = d } }

// New makes a fixture that is checked and closed at the end of the test.
func New(t testing.TB, opts ...Option) *Fixture {
	t.Helper()
	w := Open(t, opts...)
	t.Cleanup(func() {
		t.Helper()
		if !t.Failed() {
			w.Check()
		}
	})
	return w
}

// Open makes a fixture that is only closed at the end of the test; the test
// calls Check itself.
func Open(t TB, opts ...Option) *Fixture {
	t.Helper()
	o := options{config: engine.DefaultConfig(), sync: "OFF", stride: 5 * time.Second, clock: NewClock(Start), image: template}
	o.config.Log = slog.New(slog.DiscardHandler)
	for _, change := range opts {
		change(&o)
	}
	dir, err := os.MkdirTemp("", "stint-engine-")
	if err != nil {
		t.Fatalf("make a directory: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	w := &Fixture{TB: t, Clock: o.clock, Path: filepath.Join(dir, "stint.db"), options: o}
	if err := lay(w.Path, o.image); err != nil {
		t.Fatalf("lay a database: %v", err)
	}
	w.open()
	t.Cleanup(w.Close)
	w.signIn()
	return w
}

// Beside opens a second coordinator on the same file, in the same time but with a clock that
// is off by skew.
func (w *Fixture) Beside(skew time.Duration) *Fixture {
	w.Helper()
	o := w.options
	o.skew = skew
	other := &Fixture{TB: w.TB, Clock: w.Clock, Path: w.Path, Owner: w.Owner, options: o}
	other.open()
	w.Cleanup(other.Close)
	return other
}

func (w *Fixture) open() {
	w.Helper()
	now := w.options.now
	if now == nil {
		now = func() time.Time { return w.Clock.Now().Add(w.options.skew) }
	}
	store, err := db.Open(context.Background(), db.Options{
		Path: w.Path, Clock: now,
		Unsafe: db.Unsafe{Synchronous: w.options.sync, CheckRowCache: true}, Log: w.options.config.Log,
	})
	if err != nil {
		w.Fatalf("open the store: %v", err)
	}
	w.Store, w.Engine = store, engine.New(store, w.options.config)
	w.Accounts = account.New(store, account.Config{AccessLife: account.DefaultConfig().AccessLife, Log: w.options.config.Log})
}

func (w *Fixture) signIn() {
	w.Helper()
	ctx := context.Background()
	if _, _, err := w.EnsureOwner(ctx); err != nil {
		w.Fatalf("make the owner: %v", err)
	}
	id, err := w.Accounts.Owner(ctx)
	if err != nil {
		w.Fatalf("read the owner: %v", err)
	}
	if w.Owner, err = w.In(ctx, id, account.DefaultWorkspace); err != nil {
		w.Fatalf("enter the workspace: %v", err)
	}
}

// Image closes the fixture and returns its file.
func (w *Fixture) Image() []byte {
	w.Helper()
	w.Close()
	image, err := os.ReadFile(w.Path)
	if err != nil {
		w.Fatalf("read the database: %v", err)
	}
	return image
}

// Close closes the store; later calls do nothing.
func (w *Fixture) Close() {
	w.Helper()
	if err := w.Store.Close(); err != nil {
		w.Errorf("close the store: %v", err)
	}
}

// Restart closes the store and opens it and a new engine, like a coordinator that was stopped
// and started again at once.
func (w *Fixture) Restart() {
	w.Helper()
	w.Close()
	w.open()
}

// Reconfigure restarts with a changed configuration.
func (w *Fixture) Reconfigure(change func(*engine.Config)) {
	w.Helper()
	change(&w.options.config)
	w.Restart()
}

// Check fails the test for every row that breaks a promise of contract 14.
func (w *Fixture) Check() {
	w.Helper()
	found, err := w.Engine.Check(context.Background())
	if err != nil {
		w.Fatalf("check the database: %v", err)
	}
	for _, v := range found {
		w.Errorf("broken promise: %s", v)
	}
}

// Advance lets time pass while the coordinator runs: in steps of at most 5 s, exactly to what
// its loops wait for, each step with one turn of all loops. Afterwards the coordinator has
// done everything that was due.
func (w *Fixture) Advance(d time.Duration) {
	w.Helper()
	w.AdvanceWith(d)
}

// AdvanceWith is Advance with more coordinators on the same clock.
func (w *Fixture) AdvanceWith(d time.Duration, others ...*Fixture) {
	w.Helper()
	end := w.Clock.Now().Add(d)
	for {
		next := w.turnAll(others)
		now := w.Clock.Now()
		left := end.Sub(now)
		if left <= 0 {
			return
		}
		step := min(left, w.options.stride)
		if !next.IsZero() && next.Sub(now) < step {
			// Loops sleep until their time, never shorter than a moment.
			step = max(next.Sub(now), 10*time.Millisecond)
		}
		w.Clock.Step(min(step, left))
	}
}

func (w *Fixture) turnAll(others []*Fixture) (next time.Time) {
	w.Helper()
	next = w.Turn()
	for _, o := range others {
		next = sooner(next, o.Turn())
	}
	return next
}

// Turn runs every timer loop once, now, and returns when the first of them wants to run again
// by the fixture's clock.
func (w *Fixture) Turn() (next time.Time) {
	w.Helper()
	ctx := context.Background()
	if err := w.Alive(ctx); err != nil {
		w.Fatalf("loop alive: %v", err)
	}
	for name, do := range map[string]func(context.Context, time.Time) (time.Time, error){
		"cron": w.Tick, "lapse": w.Lapse, "admit": w.Admit, "unclaimed": w.EndUnclaimed, "lift": w.Lift, "deadlines": w.Deadlines,
	} {
		at, err := do(ctx, w.Now())
		if err != nil {
			w.Fatalf("loop %s: %v", name, err)
		}
		if !at.IsZero() {
			next = sooner(next, at.Add(-w.options.skew))
		}
	}
	// This one waits for no instant: it runs as often as the coordinator lets it.
	if since := w.Now().Sub(w.watched); since < 0 || since >= w.Config().TickEvery {
		if _, err := w.Watch(ctx, w.Now()); err != nil {
			w.Fatalf("loop watch: %v", err)
		}
		w.watched = w.Now()
	}
	return next
}

// Jump moves the clock while nothing runs: an outage, a machine that slept, or a clock that
// was set, forward or backward.
func (w *Fixture) Jump(d time.Duration) { w.Clock.Step(d) }

// Agent creates an agent: local, of type command, at most one session at once, without a
// schedule. change may change that.
func (w *Fixture) Agent(change ...func(*api.AgentInput)) api.Agent {
	w.Helper()
	w.agents++
	in := w.DefaultAgent()
	in.Slug = fmt.Sprintf("agent-%d", w.agents)
	in.Run.Command = []string{"true"}
	in.Prompt = "do it"
	for _, c := range change {
		c(&in)
	}
	a, err := w.CreateAgent(context.Background(), w.Owner, in)
	if err != nil {
		w.Fatalf("make an agent: %v", err)
	}
	return a
}

// Edit changes an agent.
func (w *Fixture) Edit(id api.AgentID, change func(*api.AgentInput)) api.Agent {
	w.Helper()
	a, err := w.EditAgent(context.Background(), w.Owner, id.String(), func(in *api.AgentInput) error {
		change(in)
		return nil
	})
	if err != nil {
		w.Fatalf("edit agent %s: %v", id, err)
	}
	return a
}

// New makes a session of an agent.
func (w *Fixture) New(a api.Agent, change ...func(*api.SessionInput)) api.Session {
	w.Helper()
	in := api.SessionInput{Prompt: new("do it")}
	for _, c := range change {
		c(&in)
	}
	s, _, err := w.CreateSession(context.Background(), w.Owner, a.ID.String(), in, engine.Idempotency{})
	if err != nil {
		w.Fatalf("make a session: %v", err)
	}
	return s
}

// Get reads a session.
func (w *Fixture) Get(id api.SessionID) api.Session {
	w.Helper()
	s, err := w.Session(context.Background(), w.Owner, id)
	if err != nil {
		w.Fatalf("read session %s: %v", id, err)
	}
	return s
}

// Want fails the test unless the session has the status.
func (w *Fixture) Want(id api.SessionID, status api.Status) api.Session {
	w.Helper()
	s := w.Get(id)
	if s.Status != status {
		w.Fatalf("session %s is %s, want %s (waiting for %v, error %v)", id, s.Status, status, s.WaitingFor, s.Error)
	}
	return s
}

// All lists every session of an agent, oldest first.
func (w *Fixture) All(a api.AgentID) []api.Session {
	w.Helper()
	var out []api.Session
	page := api.Page{Limit: 200}
	for {
		list, err := w.Sessions(context.Background(), w.Owner, api.SessionFilter{Agent: a.String(), Archived: true}, page)
		if err != nil {
			w.Fatalf("list sessions: %v", err)
		}
		out = append(out, list.Items...)
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// Verdicts lists an agent's ledger, oldest first.
func (w *Fixture) Verdicts(a api.AgentID) []api.LedgerEntry {
	w.Helper()
	var out []api.LedgerEntry
	page := api.Page{Limit: 200}
	for {
		list, err := w.Ledger(context.Background(), w.Owner, a.String(), page)
		if err != nil {
			w.Fatalf("list the ledger: %v", err)
		}
		out = append(out, list.Items...)
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
