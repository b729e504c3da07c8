package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/worker/workertest"
)

// memory reads how much of a process is in memory now, and at most ever was, in bytes.
func (p *program) memory() (now, most int64) {
	p.home.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	p.home.must(err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kb << 10
		case "VmHWM":
			most = kb << 10
		}
	}
	if now == 0 || most == 0 {
		p.home.Fatalf("no memory in %q", text)
	}
	return now, most
}

// fill makes a data directory with n sessions that have run, four writes and an item each, as
// a coordinator makes them.
func (h *home) fill(n int) {
	h.Helper()
	ctx := context.Background()
	h.must(h.data().prepare(false))
	store, err := db.Open(ctx, db.Options{Path: h.data().database(), Unsafe: db.Unsafe{Synchronous: "OFF"}})
	h.must(err)
	defer func() { h.must(store.Close()) }()
	e := engine.New(store, engine.DefaultConfig())
	people := account.New(store, account.DefaultConfig())
	token, _, err := people.EnsureOwner(ctx)
	h.must(err)
	h.must(h.data().writeToken(token))
	who, err := people.Owner(ctx)
	h.must(err)
	c, err := people.In(ctx, who, account.DefaultWorkspace)
	h.must(err)
	in := engine.DefaultConfig().DefaultAgent()
	in.Slug, in.Run = "busy", api.Run{Command: []string{"true"}, WorkFolder: h.dir}
	a, err := e.CreateAgent(ctx, c, in)
	h.must(err)
	w, err := e.RegisterWorker(ctx, c, a.Slug, api.WorkerInput{Name: "filler", InstanceID: "1", ProcessID: "1"})
	h.must(err)
	for i := range n {
		_, _, err := e.CreateSession(ctx, c, a.Slug, api.SessionInput{Prompt: new(fmt.Sprint("session ", i))}, engine.Idempotency{})
		h.must(err)
		claim, err := e.ClaimNext(ctx, c, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{w.Worker.ID}, InstanceID: "1", RequestID: fmt.Sprint(i)})
		h.must(err)
		proof := api.UnderClaim{ClaimID: claim.ClaimID, InstanceID: "1"}
		_, err = e.AddItems(ctx, c, w.Worker.ID, claim.SessionID, api.ItemsRequest{
			UnderClaim: proof, Items: []api.ItemInput{{ClientID: "1", Kind: api.ItemText, Stream: "stdout", Text: "hello\n"}},
		})
		h.must(err)
		_, err = e.Complete(ctx, c, w.Worker.ID, claim.SessionID, api.CompleteRequest{UnderClaim: proof, Result: "hello"})
		h.must(err)
	}
	_, err = e.Beat(ctx, c, w.Worker.ID, api.Beat{InstanceID: "1", Goodbye: true})
	h.must(err)
}

// BenchmarkStart measures from exec to the line that says that the program is ready.
// STINT_TEST_BINARY names a built program to measure in place of this test binary, which has
// more in it.
func BenchmarkStart(b *testing.B) {
	full := newHome(b)
	full.fill(10_000)
	for _, verb := range []string{"serve", "up"} {
		b.Run(verb+"/first", func(b *testing.B) { starts(b, verb, func() *home { return newHome(b) }) })
		b.Run(verb+"/again", func(b *testing.B) {
			starts(b, verb, func() *home { return &home{TB: b, dir: full.dir, env: full.env} })
		})
	}
}

// starts reports how long a start takes, in time and in CPU time; on a busy machine only the
// latter says much.
func starts(b *testing.B, verb string, at func() *home) {
	var n, all, worst, cpu time.Duration
	for b.Loop() {
		b.StopTimer()
		h := at()
		b.StartTimer()
		p := h.serve(asIs, verb)
		took := time.Since(p.begun)
		b.StopTimer()
		n, all, worst, cpu = n+1, all+took, max(worst, took), cpu+p.processorTime()
		p.stop()
		b.StartTimer()
	}
	b.ReportMetric(float64((all/n).Microseconds())/1000, "ms/start")
	b.ReportMetric(float64((cpu/n).Microseconds())/1000, "cpu-ms/start")
	b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
}

// processorTime is how long all threads of a process have run.
func (p *program) processorTime() (sum time.Duration) {
	p.home.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	p.home.must(err)
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // a thread that just ended
		}
		var ran int64
		_, err = fmt.Sscan(string(text), &ran)
		p.home.must(err)
		sum += time.Duration(ran)
	}
	return sum
}

// BenchmarkIdle measures the memory of an idle `up`, with ten thousand sessions in its file:
// just after the start, and after a person has looked at the dashboard.
func BenchmarkIdle(b *testing.B) {
	h := newHome(b)
	h.fill(10_000)
	for b.Loop() {
		p := h.serve(asIs, "up")
		c := p.client(nil)
		h.until("its worker is there", func() bool {
			list, err := c.Workers(b.Context(), api.Page{})
			h.must(err)
			for _, w := range list.Items {
				if w.State == api.Online {
					return true
				}
			}
			return false
		})
		time.Sleep(2 * time.Second) // it is idle now, and so for a while
		fresh, _ := p.memory()
		for _, page := range []string{"/", "/sessions", "/agents", "/agents/busy", "/workers"} {
			h.page(p, page)
		}
		time.Sleep(2 * time.Second)
		used, most := p.memory()
		b.ReportMetric(float64(fresh)/(1<<20), "MB-fresh")
		b.ReportMetric(float64(used)/(1<<20), "MB-used")
		b.ReportMetric(float64(most)/(1<<20), "MB-most")
		p.stop()
	}
}

// page asks for a page of the dashboard as the owner and returns its size.
func (h *home) page(p *program, path string) int {
	h.Helper()
	token, err := h.data().readToken()
	h.must(err)
	req, err := http.NewRequestWithContext(h.Context(), http.MethodGet, p.ready()+path, nil)
	h.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	h.must(err)
	body, err := io.ReadAll(resp.Body)
	h.must(err)
	h.must(resp.Body.Close())
	if resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("</html>")) {
		h.Fatalf("GET %s answers %d: %.200s", path, resp.StatusCode, body)
	}
	return len(body)
}

// TestOutput_FiftyMegabytesComeBackWhole runs a command that prints 50 MB and reads them back
// page by page after a restart. The memory of server and worker, one process here, stays
// small, and so does the session's page.
func TestOutput_FiftyMegabytesComeBackWhole(t *testing.T) {
	const size, most, page = 50_000_000, 150 << 20, 1 << 20
	h := newHome(t)
	p := h.serve(asIs, "up")
	c := p.client(nil)
	_, err := c.CreateAgent(t.Context(), map[string]any{
		"slug": "loud", "run": map[string]any{"command": workertest.Agent(t, "flood", fmt.Sprint(size)), "workFolder": t.TempDir()},
	})
	h.must(err)
	s, _, err := c.CreateSession(t.Context(), "loud", api.SessionInput{}, "")
	h.must(err)
	begun := time.Now()
	var slowest time.Duration
	for end := begun.Add(3 * patience); !s.Status.Terminal(); time.Sleep(50 * time.Millisecond) {
		asked := time.Now()
		if n := h.page(p, "/sessions/"+s.ID.String()); n > page {
			t.Fatalf("the session's page has %d bytes", n)
		}
		slowest = max(slowest, time.Since(asked))
		s, err = c.Session(t.Context(), s.ID)
		h.must(err)
		if time.Now().After(end) {
			t.Fatalf("the session is %s after %v", s.Status, time.Since(begun))
		}
	}
	took := time.Since(begun)
	if s.Status != api.Complete || s.Lapses != 0 || s.Fence != 1 {
		t.Fatalf("the session ended %s (%+v) with %d lapses and fence %d", s.Status, s.Error, s.Lapses, s.Fence)
	}
	_, peak := p.memory()
	p.stop()

	p = h.serve(asIs, "up")
	c = p.client(nil)
	got, want := sha256.New(), sha256.New()
	workertest.Flood(want, size)
	var n, pages int
	for after := int64(0); ; pages++ {
		part, err := c.Items(t.Context(), s.ID, after, 0)
		h.must(err)
		if len(part.Items) == 0 {
			break
		}
		for _, it := range part.Items {
			if after++; it.Seq != after {
				t.Fatalf("item %d has number %d", after, it.Seq)
			}
			if it.Kind == api.ItemText {
				n += len(it.Text)
				_, _ = io.WriteString(got, it.Text)
			}
		}
	}
	if n != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Errorf("%d bytes came back, %d were printed; same: %v", n, size, bytes.Equal(got.Sum(nil), want.Sum(nil)))
	}
	_, reading := p.memory()
	if !raced && max(peak, reading) > most {
		t.Errorf("it took %d MB of memory to run, and %d MB to read back", peak>>20, reading>>20)
	}
	t.Logf("%d MB in %v, read back in %d pages; memory at most %d MB and %d MB; the page took at most %v",
		size/1_000_000, took.Round(time.Millisecond), pages, peak>>20, reading>>20, slowest.Round(time.Millisecond))
	p.stop()
}
