package server

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/web/sse"
)

// sink is a client that reads what it is sent, or doesn't.
type sink struct {
	header http.Header
	mu     sync.Mutex // guards text and status
	text   bytes.Buffer
	status int
	stuck  chan struct{} // while open, writes wait; nil = never
	cut    sync.Once
}

func (w *sink) Header() http.Header { return w.header }

func (w *sink) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

func (w *sink) Write(b []byte) (int, error) {
	if w.stuck != nil {
		<-w.stuck
		return 0, os.ErrDeadlineExceeded
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *sink) FlushError() error { return nil }

func (w *sink) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() && w.stuck != nil {
		w.cut.Do(func() { close(w.stuck) })
	}
	return nil
}

func (w *sink) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// bubble is a server on a real store in virtual time.
type bubble struct {
	*Server
	token string
}

func inBubble(t *testing.T, test func(t *testing.T, b bubble)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stint.db") // outside, where its removal may wait
	enginetest.Lay(t, path)
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		store, err := db.Open(context.Background(), db.Options{Path: path, Log: log, Unsafe: db.Unsafe{Synchronous: "OFF"}})
		if err != nil {
			t.Fatal(err)
		}
		cfg := engine.DefaultConfig()
		cfg.Log = log
		e := engine.New(store, cfg)
		people := account.New(store, account.DefaultConfig())
		token, _, err := people.EnsureOwner(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		test(t, bubble{New(Options{Engine: e, Accounts: people, Addr: "127.0.0.1:7717", Log: log}), token})
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// get starts a request and returns the answer, and a func that ends it.
func (b bubble) get(path, accept string, w *sink) (done <-chan struct{}, leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:7717"+path, http.NoBody)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	r.Header.Set("Accept", accept)
	w.header = http.Header{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.ServeHTTP(w, r)
	}()
	return ended, cancel
}

const eventsPath = "/api/v1/workspaces/default/events"

func TestStream_SilenceIsCommentedOn(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		w := &sink{}
		done, leave := b.get(eventsPath, "text/event-stream", w)
		for i := range 5 {
			time.Sleep(15*time.Second + time.Millisecond)
			synctest.Wait()
			if n := strings.Count(w.String(), ":\n\n"); n != i+1 {
				t.Fatalf("%d comments after %d silences: %q", n, i+1, w.String())
			}
		}
		leave()
		<-done
		synctest.Wait()
		if n := b.Holding(); n != 0 {
			t.Errorf("the places of %d readers are still taken", n)
		}
	})
}

func TestStream_ReaderThatTakesNothingIsCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		w := &sink{stuck: make(chan struct{})}
		begun := time.Now()
		done, leave := b.get(eventsPath, "text/event-stream", w)
		defer leave()
		<-done
		if took := time.Since(begun); took != sse.WriteLimit {
			t.Errorf("cut off after %v, not %v", took, sse.WriteLimit)
		}
	})
}

func TestStream_EndsWithinSecondsOfTheRights(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		w := &sink{}
		done, leave := b.get(eventsPath, "text/event-stream", w)
		defer leave()
		time.Sleep(time.Hour)
		begun := time.Now()
		if err := b.accounts.SignOut(context.Background(), b.token); err != nil {
			t.Fatal(err)
		}
		<-done
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the stream lived on for %v", took)
		}
	})
}

func TestRights_ARevokedTokenEndsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		ask := func() int {
			w := &sink{}
			done, leave := b.get("/api/v1/whoami", "application/json", w)
			defer leave()
			<-done
			return w.status
		}
		if status := ask(); status != 200 {
			t.Fatalf("before: %d", status)
		}
		if len(b.rights.grants) != 1 {
			t.Errorf("%d tokens are kept, not the one that was looked up", len(b.rights.grants))
		}
		if err := b.accounts.SignOut(context.Background(), b.token); err != nil {
			t.Fatal(err)
		}
		if status := ask(); status != 401 {
			t.Errorf("after it: %d", status)
		}
		time.Sleep(rightsCacheFor + time.Millisecond)
		synctest.Wait()
		if len(b.rights.grants) != 0 {
			t.Error("a bad token is kept")
		}
	})
}

func TestClosing_EndsEveryKindOfHeldRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		in := engine.DefaultConfig().DefaultAgent()
		in.Slug, in.Run.Command = "tidy", []string{"true"}
		ctx := context.Background()
		who, err := b.accounts.Owner(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c, err := b.accounts.In(ctx, who, "default")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.engine.CreateAgent(ctx, c, in); err != nil {
			t.Fatal(err)
		}
		w, err := b.engine.RegisterWorker(ctx, c, "tidy", api.WorkerInput{Name: "w", InstanceID: "i", Types: []api.AgentType{"command"}, MaxConcurrent: 1})
		if err != nil {
			t.Fatal(err)
		}
		stream, poll := &sink{}, &sink{}
		first, leave1 := b.get(eventsPath, "text/event-stream", stream)
		defer leave1()
		second, leave2 := b.get("/api/v1/workspaces/default/agents/tidy/workers/"+w.Worker.ID.String()+"/sessions?wait=60&instanceId=i", "application/json", poll)
		defer leave2()
		time.Sleep(time.Second)
		begun := time.Now()
		b.close()
		<-first
		<-second
		if took := time.Since(begun); took != 0 {
			t.Errorf("they were held for %v more", took)
		}
		if poll.status != 200 || !strings.Contains(poll.String(), `"items":[]`) {
			t.Errorf("the poll was answered %d %s", poll.status, poll.String())
		}
		// Later requests are no longer held, but answered.
		late := &sink{}
		third, leave3 := b.get(eventsPath, "text/event-stream", late)
		defer leave3()
		<-third
		if late.status != 200 {
			t.Errorf("a late stream was answered %d", late.status)
		}
		ready := &sink{}
		fourth, leave4 := b.get("/readyz", "", ready)
		defer leave4()
		<-fourth
		if ready.status != 503 {
			t.Errorf("/readyz answered %d", ready.status)
		}
	})
}
