package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stint/api"
	"stint/db"
	"stint/engine"
)

// crashFixture is a coordinator that is killed again and again under load.
type crashFixture struct {
	*home
	rand   *rand.Rand
	j      *journal
	tally  *tally
	board  *board
	actors []actor
	reader *reader

	log       []api.Event // the event log up to where it was read after a restart
	bySession map[api.SessionID][]api.Event
	checked   int
	spent     map[string]time.Duration
}

func (s *crashFixture) spend(on string, d time.Duration) { s.spent[on] += d.Round(time.Millisecond) }

// actor is a client that runs as long as the coordinator and continues after its restart.
type actor interface{ live(l *serverRun) }

// kills is how often the coordinator is killed under load; a soak test asks for more. With the
// race detector it is a fifth: the whole number is for a run without.
func kills(t *testing.T, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv("STINT_TEST_KILLS"))
	if err != nil && raced {
		return otherwise / 5
	}
	if err != nil {
		return otherwise
	}
	return n
}

// TestKill_ServerLosesNothingAcknowledged kills the coordinator's process with SIGKILL at
// random moments while clients mix all verbs, and checks that everything it acknowledged stays
// true (contract 14).
func TestKill_ServerLosesNothingAcknowledged(t *testing.T) {
	s := newCrashFixture(t)
	n := kills(t, 50)
	for range n {
		m := someMoment(s.rand)
		begun := time.Now()
		p, l := s.resume()
		started := time.Now()
		s.verify(l.client, s.j.some(10))
		verified := time.Now()
		l.wire.at.Store(&m)
		s.riot(l)
		p.killed()
		dead := time.Now()
		s.heed(p)
		s.spend("starting", started.Sub(begun))
		s.spend("verifying", verified.Sub(started))
		s.spend("under load", dead.Sub(verified))
		s.spend("looking at files", time.Since(dead))
		if t.Failed() {
			t.Fatalf("in the life that ended %v", m)
		}
	}
	begun := time.Now()
	s.recover()
	s.spend("at the end", time.Since(begun))
	t.Logf("time spent: %v", s.spent)
	t.Logf("%d kills, %d of them at the start; %d sessions, %d events, %d claims; %d copies of the file checked",
		n+s.tally.count("kill at start"), s.tally.count("kill at start"), len(s.j.sessions), len(s.log), len(s.j.claims), s.checked)
	for _, what := range slices.Sorted(keys(s.tally.by)) {
		t.Logf("%6d %s", s.tally.by[what], what)
	}
}

func keys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// newCrashFixture starts the coordinator for the first time and creates the agents.
func newCrashFixture(t *testing.T) *crashFixture {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &crashFixture{
		home: newHome(t), rand: rand.New(rand.NewPCG(seed, 0)), j: newJournal(), tally: &tally{by: map[string]int{}},
		board: &board{}, spent: map[string]time.Duration{}, bySession: map[api.SessionID][]api.Event{},
	}
	p := s.serve(shortClocks, "serve")
	c := p.client(nil)
	for i, slug := range []string{"alpha", "beta", "gamma", "delta"} {
		in := map[string]any{"slug": slug, "run": map[string]any{"command": []string{"true"}}, "maxConcurrent": 8 + i, "leaseSeconds": 2}
		if i == 3 {
			in["schedule"] = "* * * * *" // it fires about once
		}
		a, err := c.CreateAgent(t.Context(), in)
		s.must(err)
		s.j.sawAgent(a)
		s.board.agents = append(s.board.agents, slug)
	}
	p.kill()
	p.killed()
	for i := range 6 {
		s.actors = append(s.actors, &person{name: fmt.Sprintf("p%d", i), rand: rand.New(rand.NewPCG(seed, uint64(100+i))), j: s.j, board: s.board})
	}
	for i := range 8 {
		s.actors = append(s.actors, &hand{
			name: fmt.Sprintf("w%d", i), rand: rand.New(rand.NewPCG(seed, uint64(200+i))), j: s.j, board: s.board,
			workers: map[api.AgentID]api.WorkerID{},
		})
	}
	s.reader = &reader{j: s.j}
	s.actors = append(s.actors, s.reader)
	return s
}

// resume starts the coordinator again; now and then it is killed before it is ready.
func (s *crashFixture) resume() (*program, *serverRun) {
	s.Helper()
	for s.rand.IntN(6) == 0 {
		p := s.start(shortClocks, "serve", "--addr", "127.0.0.1:0")
		time.AfterFunc(time.Duration(s.rand.IntN(250))*time.Millisecond, p.kill)
		p.wait()
		s.tally.add("kill at start")
		s.heed(p)
	}
	p := s.serve(shortClocks, "serve")
	w := newWire(p.kill)
	s.Cleanup(w.base.CloseIdleConnections)
	return p, &serverRun{TB: s.TB, wire: w, client: p.client(w), tally: s.tally}
}

// riot lets all clients act until the coordinator is gone.
func (s *crashFixture) riot(l *serverRun) {
	late := time.AfterFunc(patience, func() {
		s.Errorf("the moment %v doesn't come", l.wire.at.Load())
		l.wire.end()
	})
	defer late.Stop()
	var all sync.WaitGroup
	for _, a := range s.actors {
		all.Go(func() { a.live(l) })
	}
	all.Wait()
	l.wire.base.CloseIdleConnections()
}

// heed checks what a killed coordinator left: its log without errors, and now and then a copy
// of its files, in which nothing may be broken.
func (s *crashFixture) heed(p *program) {
	s.Helper()
	if bad := p.complaints(); len(bad) > 0 {
		s.Errorf("the coordinator logged\n%s", strings.Join(bad, "\n"))
	}
	if s.rand.IntN(5) > 0 {
		return
	}
	s.checked++
	dir := s.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(s.data().database() + suffix)
		if os.IsNotExist(err) {
			continue
		}
		s.must(err)
		s.must(os.WriteFile(filepath.Join(dir, "stint.db"+suffix), b, 0o600))
	}
	s.sound(filepath.Join(dir, "stint.db"))
	s.must(os.RemoveAll(dir))
}

// sound checks a file that no coordinator runs on.
func (h *home) sound(path string) {
	h.Helper()
	ctx := context.Background()
	store, err := db.Open(ctx, db.Options{Path: path})
	h.must(err)
	defer func() { h.must(store.Close()) }()
	h.must(store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.Query(ctx, "PRAGMA integrity_check")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var verdict string
			if err := rows.Scan(&verdict); err != nil {
				return err
			}
			if verdict != "ok" {
				h.Errorf("integrity_check: %s", verdict)
			}
		}
		return rows.Err()
	}))
	found, err := engine.New(store, hastyEngine()).Check(ctx)
	h.must(err)
	for _, v := range found {
		h.Errorf("a promise is broken: %s", v)
	}
}

// recover is the end: a last start without kills, and one healthy worker that finishes
// everything with no help except answers.
func (s *crashFixture) recover() {
	s.Helper()
	p := s.serve(shortClocks, "serve")
	c := p.client(nil)
	s.finishAll(c)
	s.reader.catchUp(s, c)
	everything := s.eventsAfter(c, 0)
	s.log, s.bySession = nil, map[api.SessionID][]api.Event{}
	s.readLog(c)
	if len(s.log) < len(everything) { // the schedule may have added some in between
		s.Errorf("%d events, and then %d", len(everything), len(s.log))
	}
	s.reader.missedNothing(s)
	s.j.some(0)
	s.verify(c, s.all(c))
	for key, k := range s.j.keyed {
		again, replayed, err := c.CreateSession(s.Context(), k.agent, k.in, key)
		s.must(err)
		if again.ID != k.id || !replayed {
			s.Errorf("key %s answered session %s and now %s, replayed: %v", key, k.id, again.ID, replayed)
		}
	}
	p.stop()
	s.sound(s.data().database())
	s.claimsStay()
}
