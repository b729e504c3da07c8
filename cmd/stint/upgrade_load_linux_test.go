package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stint/api"
)

// load is what is going on while the server is upgraded. The long form is for a person who asks
// for it by STINT_TEST_UPGRADE=long; STINT_TEST_OLD_BINARY and STINT_TEST_NEW_BINARY then are
// the programs, this test's own where not said.
type load struct {
	agents, rate, upgrades int
	between                time.Duration
}

func loadAsked() load {
	if os.Getenv("STINT_TEST_UPGRADE") == "long" {
		return load{agents: 20, rate: 200, upgrades: 5, between: 5 * time.Second}
	}
	return load{agents: 3, rate: 40, upgrades: 1, between: 500 * time.Millisecond}
}

// request is one of the load and what came of it.
type request struct {
	key   string // of a write; "" = a read
	id    api.SessionID
	err   error
	begun time.Time
	took  time.Duration
}

// While agents run and people ask at a steady rate, the server is replaced by another process
// that takes over its socket: nobody is refused, no acknowledged write is lost, no agent ends.
func TestUpgrade_UnderLoad(t *testing.T) {
	l := loadAsked()
	h := newHome(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	h.must(err)
	socket, err := ln.(*net.TCPListener).File()
	h.must(err)
	h.must(ln.Close()) // the file keeps it open
	url := "http://" + ln.Addr().String()
	notify, told := notices(t)
	serving := h.handed(os.Getenv("STINT_TEST_OLD_BINARY"), socket, notify)
	expect(t, told, "READY=1")
	token, err := h.data().readToken()
	h.must(err)
	c, err := api.NewClient(api.ClientConfig{URL: url, Token: token, Agent: "load"})
	h.must(err)

	h.env = append(h.env, "STINT_URL="+url)
	w := h.start(asIs, "worker", "run", "--slots", strconv.Itoa(l.agents+1), "--shared-folders")
	running := h.runAgents(c, l.agents)

	loading, stop := context.WithCancel(t.Context())
	results := make(chan request, 1000)
	go askSteadily(loading, c, l.rate, results)
	var all []request
	gathered := make(chan struct{})
	go func() {
		defer close(gathered)
		for a := range results {
			all = append(all, a)
		}
	}()
	var gone []time.Duration
	for range l.upgrades {
		time.Sleep(l.between)
		begun := time.Now()
		h.must(serving.Process.Signal(syscall.SIGTERM))
		_ = serving.Wait() // its code says that a signal ended it
		serving = h.handed(os.Getenv("STINT_TEST_NEW_BINARY"), socket, notify)
		expect(t, told, "READY=1")
		gone = append(gone, time.Since(begun).Round(time.Millisecond))
	}
	time.Sleep(l.between)
	stop()
	<-gathered

	h.nothingWasLost(c, all, gone)
	h.must(os.WriteFile(filepath.Join(h.dir, "enough"), nil, 0o600))
	for _, id := range running {
		h.ranOn(c, id)
	}
	w.stop()
}

// runAgents starts sessions that count until a file says that it is enough.
func (h *home) runAgents(c *api.Client, n int) (running []api.SessionID) {
	h.Helper()
	count := `i=0; while [ ! -e enough ]; do i=$((i+1)); echo "$i"; sleep 0.1; done`
	_, err := c.CreateAgent(h.Context(), map[string]any{
		"slug": "counter", "run": map[string]any{"command": []string{"sh", "-c", count}, "workFolder": h.dir}, "maxConcurrent": n,
	})
	h.must(err)
	_, err = c.CreateAgent(h.Context(), map[string]any{"slug": "later", "run": map[string]any{"command": []string{"true"}}})
	h.must(err)
	for range n {
		s, _, err := c.CreateSession(h.Context(), "counter", api.SessionInput{}, "")
		h.must(err)
		running = append(running, s.ID)
	}
	for _, id := range running {
		h.eventually(func() bool {
			page, err := c.Items(h.Context(), id, 0, 10)
			h.must(err)
			return len(page.Items) > 0
		})
	}
	return running
}

// eventually waits until something is so.
func (h *home) eventually(so func() bool) {
	h.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatal("it never is")
		}
	}
}

// askSteadily asks at a rate until ctx ends, whatever becomes of what was asked before: every
// other request is a write, every fourth comes by a new connection.
func askSteadily(ctx context.Context, c *api.Client, rate int, results chan<- request) {
	var open sync.WaitGroup
	defer close(results)
	defer open.Wait()
	fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	whole := context.WithoutCancel(ctx) // what was asked is answered
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		open.Go(func() {
			a := request{begun: time.Now()}
			switch i % 4 {
			case 0, 2:
				a.key = fmt.Sprintf("write-%d", i)
				var s api.Session
				s, _, a.err = c.CreateSession(whole, "later", api.SessionInput{NotBefore: api.Time{Time: time.Now().Add(1000 * time.Hour)}}, a.key)
				a.id = s.ID
			case 1:
				_, a.err = c.Sessions(whole, api.SessionFilter{}, api.Page{Limit: 10})
			case 3:
				a.err = askFresh(whole, fresh, c.URL()+"/healthz")
			}
			a.took = time.Since(a.begun)
			results <- a
		})
	}
}

func askFresh(ctx context.Context, by *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := by.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// nothingWasLost requires that each request was answered, and that each write is there, once.
func (h *home) nothingWasLost(c *api.Client, all []request, gone []time.Duration) {
	h.Helper()
	there := map[api.SessionID]bool{}
	for p := (api.Page{Limit: 200}); ; {
		page, err := c.Sessions(h.Context(), api.SessionFilter{Statuses: []api.Status{api.Pending}}, p)
		h.must(err)
		for _, s := range page.Items {
			there[s.ID] = true
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			break
		}
	}
	writes := 0
	for _, a := range all {
		switch {
		case a.err != nil:
			h.Errorf("a request after %v: %v", a.took, a.err)
		case a.key != "" && !there[a.id]:
			h.Errorf("the write %s was acknowledged as %s and is lost", a.key, a.id)
		case a.key != "":
			writes++
		}
	}
	if len(there) != writes {
		h.Errorf("%d sessions are there, %d writes were acknowledged", len(there), writes)
	}
	slices.SortFunc(all, func(a, b request) int { return int(a.took - b.took) })
	h.Logf("%d requests, %d of them writes; half within %v, 99 %% within %v, all within %v; ends and starts took %v",
		len(all), writes, all[len(all)/2].took, all[len(all)*99/100].took, all[len(all)-1].took, gone)
}

// ranOn requires that a session's command ran over the upgrade in one attempt, and that all that
// it printed is there.
func (h *home) ranOn(c *api.Client, id api.SessionID) {
	h.Helper()
	var s api.Session
	h.eventually(func() bool {
		var err error
		s, err = c.Session(h.Context(), id)
		h.must(err)
		return s.Status == api.Complete
	})
	if s.Attempt != 1 || s.Lapses != 0 {
		h.Errorf("session %s took %d attempts and lapsed %d times", id, s.Attempt, s.Lapses)
	}
	var text strings.Builder
	for after := int64(0); ; {
		page, err := c.Items(h.Context(), id, after, 1000)
		h.must(err)
		for _, item := range page.Items {
			if item.Stream == "stdout" {
				text.WriteString(item.Text)
			}
			after = item.Seq
		}
		if len(page.Items) == 0 || after >= page.LastSeq {
			break
		}
	}
	for i, line := range strings.Fields(text.String()) {
		if line != strconv.Itoa(i+1) {
			h.Errorf("session %s printed %s where %d comes", id, line, i+1)
			return
		}
	}
	if text.Len() == 0 {
		h.Errorf("session %s printed nothing", id)
	}
}
