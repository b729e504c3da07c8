package engine_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// audience are three who see different things in one log: two in one workspace, each with
// local sessions of their own, and the first one in another workspace.
func audience(t *testing.T, w *enginetest.Fixture) (all []engine.Caller, act func(n int)) {
	t.Helper()
	anna := w.Owner
	anna.UserID, anna.Name, anna.Role = w.User("anna").UserID, "anna", api.Admin
	owner := account.Identity{UserID: w.Owner.UserID, Name: w.Owner.Name}
	ws, err := w.CreateWorkspace(t.Context(), owner, api.WorkspaceInput{Slug: "elsewhere", Name: "Elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	there, err := w.In(t.Context(), owner, ws.Slug)
	if err != nil {
		t.Fatal(err)
	}
	all = []engine.Caller{w.Owner, anna, there}
	agents := make([][]api.Agent, len(all))
	for i, c := range all {
		for j, mode := range []api.Mode{api.Local, api.Cloud} {
			in := engine.DefaultConfig().DefaultAgent()
			in.Slug, in.Mode, in.Prompt, in.Run.Command = string(rune('a'+i))+string(rune('a'+j)), mode, "do it", []string{"true"}
			a, err := w.CreateAgent(t.Context(), c, in)
			if err != nil {
				t.Fatal(err)
			}
			agents[i] = append(agents[i], a)
		}
	}
	return all, func(n int) {
		who := n % len(all)
		a := agents[who][n/len(all)%2]
		s, _, err := w.CreateSession(t.Context(), all[who], a.ID.String(), api.SessionInput{}, engine.Idempotency{})
		if err == nil {
			_, err = w.CancelSession(t.Context(), all[who], s.ID, api.CancelInput{})
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// listener is a reader that is sometimes slow, and comes back after it left.
type listener struct {
	w    *enginetest.Fixture
	c    engine.Caller
	r    *rand.Rand
	at   int64
	told []int64
}

func (l *listener) listen(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.once(ctx); err != nil {
			return err
		}
	}
	return nil
}

// once is one connection.
func (l *listener) once(ctx context.Context) error {
	s := l.w.Follow(l.c, l.at)
	defer s.Close()
	for l.r.IntN(20) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-s.Ready():
		}
		if l.r.IntN(10) == 0 {
			time.Sleep(time.Duration(l.r.IntN(60)) * time.Second) // of the bubble: it doesn't take what comes
		}
		for {
			b, err := s.Take(context.WithoutCancel(ctx), l.c)
			if err != nil {
				return err
			}
			if b == nil {
				break
			}
			for _, e := range b.Events {
				l.told, l.at = append(l.told, e.Seq), e.Seq
			}
		}
	}
	return nil
}

// pages is what somebody may see through the pages of the log.
func pages(t *testing.T, w *enginetest.Fixture, c engine.Caller, after int64) (all []int64) {
	t.Helper()
	for {
		found, err := w.Events(t.Context(), c, after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			all, after = append(all, e.Seq), e.Seq
		}
		if len(found) < 1000 {
			return all
		}
	}
}

// A single listener ends the hub whenever it leaves; of many, some are always there.
func TestFollow_EachStreamIsToldWhatItMayKnowOnceAndInOrder(t *testing.T) {
	t.Run("one", func(t *testing.T) { everybodyListens(t, 1) })
	t.Run("many", func(t *testing.T) { everybodyListens(t, 300) })
}

func everybodyListens(t *testing.T, count int) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		all, act := audience(t, w)
		ctx, stop := context.WithCancel(t.Context())
		var listening, acting sync.WaitGroup
		var listeners []*listener
		for i := range count {
			l := &listener{w: w, c: all[i%len(all)], r: rand.New(rand.NewPCG(7, uint64(i)))} //nolint:gosec // which way a test goes
			listeners = append(listeners, l)
			listening.Go(func() {
				if err := l.listen(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		var n atomic.Int64
		for who := range 3 {
			acting.Go(func() {
				pause := rand.New(rand.NewPCG(8, uint64(who))) //nolint:gosec // as above
				for range 400 {
					act(int(n.Add(1)))
					time.Sleep(time.Duration(pause.IntN(300)) * time.Millisecond)
				}
			})
		}
		acting.Wait()
		time.Sleep(2 * time.Minute) // the slowest takes the last
		synctest.Wait()
		stop()
		listening.Wait()
		for _, c := range all {
			want := pages(t, w, c, 0)
			if len(want) < 800 || len(want) > 2400 {
				t.Fatalf("%s may know of %d events", c.Name, len(want))
			}
			for i, l := range listeners {
				if l.c.UserID == c.UserID && l.c.WorkspaceID == c.WorkspaceID && !slices.Equal(l.told, want) {
					t.Fatalf("listener %d of %s got %d events, not %d: %v", i, c.Name, len(l.told), len(want), l.told)
				}
			}
		}
	})
}

// However many listen, each commit is read once; a viewer who may see nothing of it isn't
// woken.
func TestFollow_OneReadForAllStreams(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		all, act := audience(t, w)
		measure := func(streams int) int {
			ctx, stop := context.WithCancel(t.Context())
			var listening sync.WaitGroup
			var told atomic.Int64
			end, err := w.LastEvent(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range streams {
				c := all[i%len(all)]
				s := w.Follow(c, end)
				listening.Go(func() {
					defer s.Close()
					for {
						select {
						case <-ctx.Done():
							return
						case <-s.Ready():
						}
						for {
							b, err := s.Take(t.Context(), c)
							if err != nil {
								t.Error(err)
							}
							if b == nil {
								break
							}
							told.Add(int64(len(b.Events)))
						}
					}
				})
			}
			time.Sleep(10 * time.Second)
			before := w.HubReads()
			for n := range 60 {
				act(n)
				time.Sleep(5 * time.Second)
			}
			reads := w.HubReads() - before
			stop()
			listening.Wait()
			if told.Load() == 0 {
				t.Error("nobody got anything")
			}
			return reads
		}
		few, many := measure(3), measure(600)
		if few == 0 || many > few+2 {
			t.Errorf("3 streams made %d reads, 600 made %d", few, many)
		}
	})
}

// A stream that takes nothing is held in bounded memory, and then continues reading from where
// it was.
func TestFollow_ASlowStreamReadsOnByItself(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 10 })
		s := w.Follow(w.Owner, 0)
		defer s.Close()
		var told []int64
		take := func() {
			for {
				b, err := s.Take(t.Context(), w.Owner)
				if err != nil {
					t.Fatal(err)
				}
				if b == nil {
					return
				}
				for _, e := range b.Events {
					told = append(told, e.Seq)
				}
			}
		}
		take()
		for range engine.HubQueue/50 + 10 {
			for range 50 {
				w.New(a)
			}
			time.Sleep(time.Second)
		}
		if n := s.Queued(); n > engine.HubQueue {
			t.Errorf("%d events wait for a stream that takes none", n)
		}
		take()
		if want := pages(t, w, w.Owner, 0); !slices.Equal(told, want) {
			t.Errorf("got %d events, not %d", len(told), len(want))
		}
	})
}

// What waits for a stream whose caller changed is not for the new one.
func TestFollow_QueuedEventsObeyTheRightsOfTheTaker(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		all, act := audience(t, w)
		s := w.Follow(all[0], 0)
		defer s.Close()
		var told []int64
		for n := range 30 {
			act(n)
			time.Sleep(time.Second)
			if n == 0 {
				if _, err := s.Take(t.Context(), all[0]); err != nil {
					t.Fatal(err)
				}
			}
		}
		start := s.At()
		for {
			b, err := s.Take(t.Context(), all[1])
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				break
			}
			for _, e := range b.Events {
				told = append(told, e.Seq)
			}
		}
		if want := pages(t, w, all[1], start); !slices.Equal(told, want) {
			t.Errorf("got %v, not %v", told, want)
		}
	})
}

func TestFollow_WhoSeesNothingOfItIsNotWoken(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.Fixture) {
		all, act := audience(t, w)
		s := w.Follow(all[1], 0)
		defer s.Close()
		take := func() (told int) {
			time.Sleep(time.Second)
			<-s.Ready()
			for {
				b, err := s.Take(t.Context(), all[1])
				if err != nil {
					t.Fatal(err)
				}
				if b == nil {
					return told
				}
				told += len(b.Events)
			}
		}
		take()
		reads := w.HubReads()
		act(0) // a local session of another's
		time.Sleep(time.Second)
		select {
		case <-s.Ready():
			t.Error("it was woken for what it may not know")
		default:
		}
		act(1)
		if take() == 0 {
			t.Error("it got nothing of what it may see")
		}
		if n := w.HubReads() - reads; n > 4 {
			t.Errorf("%d reads were made for two acts", n)
		}
	})
}
