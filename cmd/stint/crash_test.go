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
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/db"
	"stint/engine"
)

// siege is a coordinator that is killed again and again under load.
type siege struct {
	*home
	rand   *rand.Rand
	j      *journal
	tally  *tally
	board  *board
	actors []actor
	reader *reader

	log       []api.Event // the event log as far as it was read after a restart
	bySession map[api.SessionID][]api.Event
	checked   int
	spent     map[string]time.Duration
}

func (s *siege) spend(on string, d time.Duration) { s.spent[on] += d.Round(time.Millisecond) }

// actor is a client that lives as long as the coordinator and goes on in its next life.
type actor interface{ live(l *life) }

// kills is how often the coordinator is killed under load; a soak test asks for more.
func kills(t *testing.T, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv("STINT_TEST_KILLS"))
	if err != nil {
		return otherwise
	}
	return n
}

// TestKill_ServerLosesNothingAcknowledged kills the coordinator's process with
// SIGKILL at random moments while clients mix all verbs, and holds it to what
// they were told (contract 14).
func TestKill_ServerLosesNothingAcknowledged(t *testing.T) {
	s := besiege(t)
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

// besiege makes the coordinator's first life, in which the agents are made.
func besiege(t *testing.T) *siege {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &siege{
		home: newHome(t), rand: rand.New(rand.NewPCG(seed, 0)), j: newJournal(), tally: &tally{by: map[string]int{}},
		board: &board{}, spent: map[string]time.Duration{}, bySession: map[api.SessionID][]api.Event{},
	}
	p := s.serve(hasty, "serve")
	c := p.client(nil)
	for i, slug := range []string{"alpha", "beta", "gamma", "delta"} {
		in := map[string]any{"slug": slug, "run": map[string]any{"command": []string{"true"}}, "maxConcurrent": 8 + i, "leaseSeconds": 2}
		if i == 3 {
			in["schedule"] = "* * * * *" // it fires once or so
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

// resume starts the coordinator's next life; now and then it is killed before it is ready.
func (s *siege) resume() (*program, *life) {
	s.Helper()
	for s.rand.IntN(6) == 0 {
		p := s.start(hasty, "serve", "--addr", "127.0.0.1:0")
		time.AfterFunc(time.Duration(s.rand.IntN(250))*time.Millisecond, p.kill)
		p.wait()
		s.tally.add("kill at start")
		s.heed(p)
	}
	p := s.serve(hasty, "serve")
	w := newWire(p.kill)
	s.Cleanup(w.base.CloseIdleConnections)
	return p, &life{TB: s.TB, wire: w, client: p.client(w), tally: s.tally}
}

// riot lets all clients act until the coordinator is gone.
func (s *siege) riot(l *life) {
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

// heed looks at what a killed coordinator left: its log without errors, and now
// and then a copy of its files, in which nothing may be broken.
func (s *siege) heed(p *program) {
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

// verify asks the coordinator whether it still knows what it said.
func (s *siege) verify(c *api.Client, ids []api.SessionID) {
	s.Helper()
	s.readLog(c)
	s.verifyAgents(c)
	var wg sync.WaitGroup
	next := make(chan api.SessionID)
	for range 4 {
		wg.Go(func() {
			for id := range next {
				s.verifySession(c, id)
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	wg.Wait()
	for _, f := range s.j.faults {
		s.Errorf("a client saw: %s", f)
	}
	s.j.faults = nil
}

func (s *siege) verifySession(c *api.Client, id api.SessionID) {
	v, err := readView(s.Context(), c, id, s.bySession[id])
	if err != nil {
		s.Errorf("session %s: %v", id, err)
		return
	}
	if wrong := v.whole(); wrong != "" {
		s.Errorf("session %s: %s", id, wrong)
	}
	for _, f := range s.j.factsOf(id) {
		if wrong := f.holds(v); wrong != "" {
			s.Errorf("session %s: %s: %s", id, f.what, wrong)
		}
	}
}

// readLog goes on reading the event log where the last restart left it: nothing
// that anybody saw may be missing from it or be another.
func (s *siege) readLog(c *api.Client) {
	s.Helper()
	after := int64(0)
	if n := len(s.log); n > 0 {
		after = s.log[n-1].Seq
	}
	more := s.eventsAfter(c, after)
	for _, e := range more {
		s.bySession[e.SessionID] = append(s.bySession[e.SessionID], e)
	}
	s.log = append(s.log, more...)
	s.compare(more, after)
}

func (s *siege) eventsAfter(c *api.Client, after int64) (all []api.Event) {
	s.Helper()
	for {
		page, err := c.Events(s.Context(), after, 200)
		s.must(err)
		if len(page.Items) == 0 {
			return all
		}
		all = append(all, page.Items...)
		after = all[len(all)-1].Seq
	}
}

// compare holds a stretch of the log, beginning after a number, to what was seen of it.
func (s *siege) compare(stretch []api.Event, after int64) {
	s.Helper()
	is := map[int64]string{}
	last := after
	for _, e := range stretch {
		if e.Seq <= last {
			s.Errorf("event %d follows event %d", e.Seq, last)
		}
		last = e.Seq
		is[e.Seq] = eventText(e)
	}
	s.j.mu.Lock()
	defer s.j.mu.Unlock()
	for seq, was := range s.j.seen {
		if seq > after && is[seq] != was {
			s.Errorf("event %d was seen as %s and is %q", seq, was, is[seq])
		}
	}
	for seq, text := range is {
		s.j.seen[seq] = text
	}
}

func (s *siege) verifyAgents(c *api.Client) {
	s.Helper()
	for p := (api.Page{Limit: 200}); ; {
		page, err := c.Agents(s.Context(), p)
		s.must(err)
		for _, a := range page.Items {
			if least := s.j.latest(a.ID); a.Version < least {
				s.Errorf("agent %s is at version %d and was at %d", a.Slug, a.Version, least)
			}
			if a.Instructions != a.Prompt || (a.Prompt != "" && a.Description != a.Prompt) {
				s.Errorf("agent %s was edited in part: %+v", a.Slug, a)
			}
			s.j.sawAgent(a) // a known version must be what it was
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			return
		}
	}
}

// recover is the end: a last start, nothing more to fear, and one healthy worker
// that finishes everything without anybody's help but answers.
func (s *siege) recover() {
	s.Helper()
	p := s.serve(hasty, "serve")
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
	s.claimsAreKept()
}

// all are the sessions that there are and those that there must be.
func (s *siege) all(c *api.Client) (ids []api.SessionID) {
	s.Helper()
	known := map[api.SessionID]bool{}
	for p := (api.Page{Limit: 200}); ; {
		page, err := c.Sessions(s.Context(), api.SessionFilter{Archived: true}, p)
		s.must(err)
		for _, one := range page.Items {
			known[one.ID] = true
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			break
		}
	}
	for id := range s.j.sessions {
		known[id] = true
	}
	for id := range known {
		ids = append(ids, id)
		s.j.mu.Lock()
		s.j.of(id)
		s.j.mu.Unlock()
	}
	return ids
}

// finishAll is a healthy worker on its own: what the dead left behind comes to
// it by itself, in the time that leases and drains last.
func (s *siege) finishAll(c *api.Client) {
	s.Helper()
	h := &healthy{siege: s, c: c, workers: map[api.AgentID]api.WorkerID{}}
	for _, slug := range s.board.agents {
		_, err := c.ResumeAgent(s.Context(), slug)
		s.must(err)
		_, err = c.EditAgent(s.Context(), slug, map[string]any{"maxConcurrent": 1000})
		s.must(err)
		r, err := c.RegisterWorker(s.Context(), slug, api.WorkerInput{Name: "healthy", InstanceID: h.instance(), ProcessID: "healthy", MaxConcurrent: 1000})
		s.must(err)
		h.workers[r.Worker.AgentID] = r.Worker.ID
		h.ids = append(h.ids, r.Worker.ID)
	}
	ctx, stop := context.WithCancel(s.Context())
	var beats, slots sync.WaitGroup
	beats.Go(func() { h.beat(ctx) })
	end := time.Now().Add(patience)
	for slot := range 4 {
		slots.Go(func() { h.work(slot, end) })
	}
	slots.Wait()
	stop()
	beats.Wait()
	s.Logf("a healthy worker finished %d sessions", h.finished.Load())
}

// healthy is a worker that does all that a worker has to.
type healthy struct {
	*siege
	c        *api.Client
	workers  map[api.AgentID]api.WorkerID
	ids      []api.WorkerID
	finished atomic.Int64
}

func (h *healthy) instance() string { return "healthy-1" }

func (h *healthy) beat(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for agent, id := range h.workers {
			if _, err := h.c.Beat(ctx, agent, id, api.Beat{InstanceID: h.instance()}); err != nil && ctx.Err() == nil {
				h.Errorf("a healthy worker's beat: %v", err)
			}
		}
	}
}

// work finishes sessions until none is left that hasn't ended.
func (h *healthy) work(slot int, end time.Time) {
	for n := 0; ; n++ {
		if h.one(fmt.Sprintf("last-%d-%d", slot, n)) {
			continue
		}
		open, err := h.c.Sessions(h.Context(), api.SessionFilter{
			Statuses: []api.Status{api.Pending, api.Queued, api.Active, api.AwaitingInput, api.Stale}, Archived: true,
		}, api.Page{Limit: 200})
		if err != nil {
			h.Errorf("list what is open: %v", err)
			return
		}
		if len(open.Items) == 0 {
			return
		}
		for _, s := range open.Items {
			if time.Now().After(end) {
				h.Errorf("session %s is stuck: it is %s and waits for %+v", s.ID, s.Status, s.WaitingFor)
			} else if s.Prompted != nil && !s.Status.Running() {
				// Another slot may have been quicker.
				_, err := h.c.AnswerPrompt(h.Context(), s.ID, api.AnswerInput{PromptID: s.Prompted.ID, Text: "go on"})
				if err != nil && api.CodeOf(err) != api.CodePromptClosed {
					h.Errorf("answer session %s: %v", s.ID, err)
				}
			}
		}
		if h.Failed() {
			return
		}
	}
}

// one claims and completes a session; false when none came in a second.
func (h *healthy) one(request string) bool {
	six := int64(6)
	claim, err := h.c.ClaimNext(h.Context(), api.ClaimNextRequest{
		WorkerIDs: h.ids, InstanceID: h.instance(), WaitSeconds: 1, RequestID: request, LeaseSeconds: &six,
	})
	if err != nil || claim == nil {
		if err != nil {
			h.Errorf("claim: %v", err)
		}
		return false
	}
	at := api.Held{Agent: claim.Session.AgentID, Worker: claim.WorkerID, Session: claim.SessionID}
	proof := api.UnderClaim{ClaimID: claim.ClaimID, InstanceID: h.instance()}
	if _, err := h.c.Complete(h.Context(), at, api.CompleteRequest{UnderClaim: proof, Result: "at last"}); err != nil {
		h.Errorf("complete session %s: %v", claim.SessionID, err)
		return false
	}
	h.finished.Add(1)
	return true
}

// claimsAreKept looks in the closed file for each claim that anybody was told of.
func (s *siege) claimsAreKept() {
	s.Helper()
	ctx := context.Background()
	store, err := db.Open(ctx, db.Options{Path: s.data().database()})
	s.must(err)
	defer func() { s.must(store.Close()) }()
	s.must(store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.Query(ctx, "SELECT id, session_id, worker_id, fence, secret FROM claims")
		if err != nil {
			return err
		}
		defer rows.Close()
		kept := map[api.ClaimKey]api.Claim{}
		for rows.Next() {
			var c api.Claim
			var secret []byte
			if err := rows.Scan(&c.ClaimID.Key, &c.SessionID, &c.WorkerID, &c.Fence, &secret); err != nil {
				return err
			}
			copy(c.ClaimID.Secret[:], secret)
			kept[c.ClaimID.Key] = c
		}
		for key, was := range s.j.claims {
			is := kept[key]
			if is.ClaimID != was.ClaimID || is.SessionID != was.SessionID || is.WorkerID != was.WorkerID || is.Fence != was.Fence {
				s.Errorf("claim %s on session %s with fence %d is not in the file", key, was.SessionID, was.Fence)
			}
		}
		return rows.Err()
	}))
	s.must(store.Read(ctx, func(tx *db.ReadTx) error {
		for v, was := range s.j.versions {
			rows, err := tx.Query(ctx, "SELECT snapshot FROM agent_versions WHERE agent_id = ?1 AND version = ?2", v.id, v.version)
			if err != nil {
				return err
			}
			var snapshot string
			for rows.Next() {
				err = rows.Scan(&snapshot)
			}
			if err := rows.Close(); err != nil {
				return err
			}
			var in api.AgentInput
			if err != nil || json.Unmarshal([]byte(snapshot), &in) != nil {
				s.Errorf("version %d of agent %s is not in the file: %v", v.version, v.id, err)
				continue
			}
			if b, _ := json.Marshal(in, json.Deterministic(true)); string(b) != was {
				s.Errorf("version %d of agent %s was %s and is %s", v.version, v.id, was, b)
			}
		}
		return nil
	}))
}

// reader follows the live stream over all lives.
type reader struct {
	j    *journal
	last int64
	seqs []int64
}

func (r *reader) live(l *life) {
	for !l.wire.isOver() {
		err := l.client.Follow(l.Context(), r.last, func(e api.Event) error {
			r.see(e)
			l.wire.sawEvent()
			return nil
		})
		if err == api.ErrReset {
			r.j.fault("the stream knows nothing of event %d, which it told", r.last)
			l.wire.end()
		}
	}
}

func (r *reader) see(e api.Event) {
	if e.Seq <= r.last {
		r.j.fault("the stream told event %d after event %d", e.Seq, r.last)
	}
	r.last = e.Seq
	r.seqs = append(r.seqs, e.Seq)
	r.j.sawEvent(e)
}

// catchUp reads the stream to the end of what there is.
func (r *reader) catchUp(s *siege, c *api.Client) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	all := s.eventsAfter(c, r.last)
	if len(all) == 0 {
		return
	}
	enough := fmt.Errorf("enough")
	if err := c.Follow(ctx, r.last, func(e api.Event) error {
		r.see(e)
		if e.Seq >= all[len(all)-1].Seq {
			return enough
		}
		return nil
	}); err != enough {
		s.Errorf("the stream ended: %v", err)
	}
}

// missedNothing compares what came on the stream with the log.
func (r *reader) missedNothing(s *siege) {
	s.Helper()
	streamed := map[int64]bool{}
	for _, seq := range r.seqs {
		streamed[seq] = true
	}
	for _, e := range s.log {
		if e.Seq <= r.last && !streamed[e.Seq] {
			s.Errorf("event %d (%s) did not come on the stream", e.Seq, e.Type)
		}
	}
}
