package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
)

// backedUp backs the fixture's database up while it runs.
func backedUp(t *testing.T, w *enginetest.Fixture) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.zip")
	if _, err := w.Store.Backup(t.Context(), db.BackupOptions{File: file, Version: "1", Clock: w.Clock.Now}); err != nil {
		t.Fatal(err)
	}
	return file
}

// restoredAt restores a backup elsewhere, at a time, and starts a coordinator on it.
func restoredAt(t *testing.T, file string, at time.Time) (*enginetest.Fixture, engine.Voided) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stint.db")
	r, err := db.BeginRestore(t.Context(), path, file)
	if err != nil {
		t.Fatal(err)
	}
	store, err := db.Open(t.Context(), db.Options{Path: r.Database(), Clock: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.DefaultConfig()
	cfg.Log = slog.New(slog.DiscardHandler)
	void, err := engine.New(store, cfg).Restored(t.Context(), r.At)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.New(t, enginetest.From(image, at)), void
}

func TestRestored_EveryClaimIsVoidAndGoesOnAsItsRuleSays(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 10 })
	once := w.Agent(func(in *api.AgentInput) { in.MaxLapses = 1 })
	k, o := w.Worker(a), w.Worker(once)
	running, asking, stopping, last, waiting := w.New(a), w.New(a), w.New(a), w.New(once), w.New(a)
	held := k.Claim(running.ID)
	asked := k.Claim(asking.ID)
	must[api.Session](t)(k.Ask(asked, "which?"))
	k.Claim(stopping.ID)
	must[api.Changed](t)(w.StopSession(t.Context(), w.Owner, stopping.ID))
	o.Claim(last.ID)
	task := w.Task("by hand")
	must[api.TaskHeld](t)(w.ClaimTask(t.Context(), w.Owner, task.ID.String(), api.TaskClaimInput{}))
	file := backedUp(t, w)

	// The old coordinator lives on for a while, and its worker begins what waited.
	w.Clock.Step(10 * time.Second)
	k.Beat(held, asked)
	late := k.Claim(waiting.ID)

	n, void := restoredAt(t, file, w.Clock.Now().Add(20*time.Second))
	if want := (engine.Voided{Sessions: 4, Tasks: 1, Workers: 2}); void != want {
		t.Errorf("the restore ended %+v, not %+v", void, want)
	}
	n.Want(running.ID, api.Stale)
	n.Want(asking.ID, api.Stale)
	n.Want(stopping.ID, api.Cancelled)
	if s := n.Want(last.ID, api.Failed); s.Error == nil || s.Error.Code != "lease_lapsed_repeatedly" {
		t.Errorf("a session that may lapse once ended with %+v", s.Error)
	}
	if got := n.TaskNow(task.ID.String()); got.Lease != nil || got.Assignee == nil {
		t.Errorf("the task has the lease %v and is of %v", got.Lease, got.Assignee)
	}

	// What the old process still writes is refused, whatever it is under.
	old := k.Through(n)
	_, err := old.Renew(held)
	wantCode(t, err, api.CodeClaimNotActive)
	_, err = old.Complete(held, "done")
	if code := refusal(err); code == nil || code.Code != api.CodeClaimNotActive && code.Code != api.CodeInstanceSuperseded {
		t.Errorf("a result of before: %v", err)
	}
	_, err = old.Complete(late, "done")
	if refusal(err) == nil {
		t.Errorf("a result under a claim that nobody knows: %v", err)
	}
	_, err = n.Engine.Beat(t.Context(), n.Owner, k.ID, api.Beat{InstanceID: k.Instance, ClaimIDs: []api.ClaimID{held.ClaimID}})
	wantCode(t, err, api.CodeInstanceSuperseded)
	_, err = old.Try(waiting.ID)
	wantCode(t, err, api.CodeInstanceSuperseded)
	if alive(t, n, held.RunToken) || alive(t, n, late.RunToken) {
		t.Error("a run of before can still use its token")
	}

	// Another process of the same name is welcome at once. It gets nothing that an old one may
	// still run, and everything afterwards.
	again := n.Worker(a, func(in *api.WorkerInput) { in.Name, in.InstanceID = k.Name, "boot-after" })
	if again.ID != k.ID {
		t.Errorf("worker %s became %s", k.ID, again.ID)
	}
	if c := again.Next(); c != nil {
		t.Errorf("session %s is given out while an old worker may run it", c.SessionID)
	}
	if why := n.Get(waiting.ID).WaitingFor; why == nil || !strings.Contains(why.Sentence, "restored") {
		t.Errorf("what waited waits for %+v", why)
	}
	fresh := n.New(a)
	if c := again.Next(); c == nil || c.SessionID != fresh.ID {
		t.Errorf("a new session is not given out: %v", c)
	}
	for passed := time.Duration(0); passed < n.Config().OfflineAfter+time.Minute; passed += time.Minute {
		n.Advance(time.Minute)
		again.Beat()
	}
	var got []api.SessionID
	for c := again.Next(); c != nil; c = again.Next() {
		got = append(got, c.SessionID)
	}
	for _, id := range []api.SessionID{running.ID, waiting.ID} {
		if !slices.Contains(got, id) {
			t.Errorf("session %s is never given out; %v are", id, got)
		}
	}
}

// TestRestored_NoFenceRepeats restores a backup twice. What was claimed since the backup, or
// since the first restore, had smaller fences than what is claimed now, which grow on by one;
// what is new begins with 1.
func TestRestored_NoFenceRepeats(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	k := w.Worker(a)
	s := w.New(a)
	file := backedUp(t, w)
	largest := int64(0)
	claimed := func(f *enginetest.Fixture, k *enginetest.Worker) {
		t.Helper()
		for range 3 {
			c := k.Claim(s.ID)
			if c.Fence <= largest {
				t.Errorf("fence %d comes after %d", c.Fence, largest)
			}
			largest = c.Fence
			must[api.Finished](t)(k.Release(c))
		}
		f.Check()
	}
	claimed(w, k)
	for round := range 2 {
		n, _ := restoredAt(t, file, w.Clock.Now().Add(time.Duration(round+1)*time.Hour))
		again := n.Worker(a, func(in *api.WorkerInput) { in.Name, in.InstanceID = k.Name, "boot-after" })
		for passed := time.Duration(0); passed < n.Config().OfflineAfter+time.Minute; passed += time.Minute {
			n.Advance(time.Minute)
			again.Beat()
		}
		claimed(n, again)
		if c := again.Claim(n.New(a).ID); c.Fence != 1 {
			t.Errorf("a new session begins with fence %d", c.Fence)
		}
		n.Restart()
		n.Check()
	}
}

// TestRestored_NoSlotFiresTwice restores backups of a busy timetable at random moments, also
// with a clock that was set back: no slot has two verdicts, and what fired before the backup
// stays as it was.
func TestRestored_NoSlotFiresTwice(t *testing.T) {
	for seed := range uint64(6) {
		rand := rand.New(rand.NewPCG(seed, 1))
		w := enginetest.New(t)
		var all []api.Agent
		for _, c := range []api.CatchUp{api.CatchUpLatest, api.CatchUpNone} {
			for _, expr := range []string{"* * * * *", "@every 2m"} {
				all = append(all, w.Agent(scheduled(expr, overlap(api.OverlapAllow)), func(in *api.AgentInput) { in.CatchUp, in.MaxConcurrent = c, 100 }))
			}
		}
		w.Advance(5*time.Minute + time.Duration(rand.IntN(120))*time.Second)
		file, at := backedUp(t, w), w.Clock.Now()
		before := map[api.AgentID][]time.Time{}
		for _, a := range all {
			before[a.ID] = fired(w, a.ID)
		}
		w.Advance(3 * time.Minute) // lost with the old coordinator
		away := time.Duration(rand.IntN(900)) * time.Second
		if seed%3 == 2 {
			away = -time.Duration(rand.IntN(200)) * time.Second
		}
		n, _ := restoredAt(t, file, at.Add(away))
		n.Advance(10 * time.Minute)
		for _, a := range all {
			seen := map[time.Time]int{}
			for _, slot := range fired(n, a.ID) {
				seen[slot]++
			}
			for slot, times := range seen {
				if times > 1 {
					t.Errorf("seed %d, away %v: %s fired %s %d times", seed, away, a.Slug, slot, times)
				}
			}
			for _, slot := range before[a.ID] {
				if seen[slot] != 1 {
					t.Errorf("seed %d: what %s fired at %s is gone", seed, a.Slug, slot)
				}
			}
			decided := map[string]bool{}
			for _, l := range n.Verdicts(a.ID) {
				key := fmt.Sprint(l.FirstSlot)
				if decided[key] {
					t.Errorf("seed %d: two verdicts of %s begin with %s", seed, a.Slug, key)
				}
				decided[key] = true
			}
		}
	}
}

// TestBackup_UnderLoadLosesNothingAcknowledged backs up while 64 clients make, claim and finish
// sessions, and restores elsewhere: whatever was answered before the backup began is there.
func TestBackup_UnderLoadLosesNothingAcknowledged(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 1000 })
	var (
		mu   sync.Mutex
		done = map[api.SessionID]api.Status{} // acknowledged
		wg   sync.WaitGroup
	)
	note := func(id api.SessionID, status api.Status) {
		mu.Lock()
		defer mu.Unlock()
		done[id] = status
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(done)
	}
	ctx, stop := context.WithCancel(t.Context())
	workers := make([]*enginetest.Worker, 64)
	for i := range workers {
		workers[i] = w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 1000 })
	}
	for i := range workers {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s, _, err := w.CreateSession(context.Background(), w.Owner, a.ID.String(), api.SessionInput{}, engine.Idempotency{})
				if err != nil {
					t.Errorf("make a session: %v", err)
					return
				}
				note(s.ID, api.Queued)
				c, err := workers[i].Try(s.ID)
				if err != nil {
					t.Errorf("claim a session: %v", err)
					return
				}
				note(s.ID, api.Active)
				if n%3 == 0 {
					continue
				}
				if _, err := workers[i].Complete(c, "done"); err != nil {
					t.Errorf("complete a session: %v", err)
					return
				}
				note(s.ID, api.Complete)
			}
		})
	}
	var files []string
	var known []map[api.SessionID]api.Status
	for range 3 {
		for n := count(); count() < n+100 && !t.Failed(); {
			if err := w.Alive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		copied := map[api.SessionID]api.Status{}
		for id, status := range done {
			copied[id] = status
		}
		mu.Unlock()
		known, files = append(known, copied), append(files, backedUp(t, w))
	}
	stop()
	wg.Wait()
	for i, file := range files {
		if _, err := db.VerifyBackup(t.Context(), file); err != nil {
			t.Error(err)
		}
		n, _ := restoredAt(t, file, w.Clock.Now())
		for id, status := range known[i] {
			switch got := n.Get(id).Status; {
			case status == api.Complete && got != api.Complete, status == api.Active && got != api.Complete && got != api.Stale:
				t.Errorf("session %s was %s before backup %d began and is %s in it", id, status, i, got)
			}
		}
		n.Check()
	}
	t.Logf("%d, %d and %d sessions were acknowledged before the backups", len(known[0]), len(known[1]), len(known[2]))
}
