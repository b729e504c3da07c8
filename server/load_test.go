package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/server/servertest"
)

// loadVariable carries a load to the client process, which is this test binary started once
// more: a client in the server's own process would share its scheduler and its collector.
const loadVariable = "STINT_TEST_LOAD"

// load is what a client process does: the same calls on many connections, for a while.
type load struct {
	URL         string
	Token       string
	Kind        string   // empty, lifecycle, latency or crowd
	Connections int      // of a crowd: live streams
	Polls       int      // of a crowd
	Claims      bool     // its polls ask for a claim
	Used        bool     // its connections have had an answer before
	Waits       []string // of a crowd: the paths of the workers whose polls are held, in turn
	Workers     []string
	Agent       string
	Millis      int
	Rounds      int // of latency
}

// measured is the result that it prints.
type measured struct {
	Requests int64
	Seconds  float64
	Client   float64 // CPU seconds of the client process
	Server   float64 // … and of this one meanwhile
	Micros   []int64 // of latency, sorted
	Lost     int64   // of a crowd: connections that ended
	Reached  []int64 // of a crowd: the milliseconds after which all streams had an event, sorted
}

func (m measured) perSecond() float64 { return float64(m.Requests) / m.Seconds }

// cost is the CPU microseconds of a request, on both sides.
func (m measured) cost() float64 { return (m.Client + m.Server) * 1e6 / float64(m.Requests) }

// cpuSeconds is what this process has used so far.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// run starts a client process and waits for what it measured.
func (l load) run(tb testing.TB) measured {
	tb.Helper()
	spec, err := json.Marshal(l)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), loadVariable+"="+string(spec))
	cmd.Stderr = os.Stderr
	before := cpuSeconds()
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("the client failed: %v", err)
	}
	var m measured
	if err := json.Unmarshal(out, &m); err != nil {
		tb.Fatalf("the client said %q: %v", out, err)
	}
	m.Server = cpuSeconds() - before
	return m
}

// runLoad is the client process.
func runLoad(spec string) int {
	var l load
	err := json.Unmarshal([]byte(spec), &l)
	if err == nil {
		var m measured
		if m, err = l.do(); err == nil {
			err = json.MarshalWrite(os.Stdout, m)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (l load) do() (measured, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.Connections + 8, MaxConnsPerHost: l.Connections + 8}}
	switch l.Kind {
	case "latency":
		return l.latency(client)
	case "crowd":
		return l.crowd()
	}
	var requests atomic.Int64
	errs := make(chan error, l.Connections)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(l.Millis)*time.Millisecond)
	defer cancel()
	begun, used := time.Now(), cpuSeconds()
	var wg sync.WaitGroup
	for i := range l.Connections {
		wg.Go(func() {
			c := &conn{client: client, load: l, count: &requests}
			for ctx.Err() == nil {
				var err error
				if l.Kind == "empty" {
					err = c.call("/", []byte(`{}`), nil)
				} else {
					err = c.lifecycle(l.Workers[i%len(l.Workers)])
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	select {
	case err := <-errs:
		return measured{}, err
	default:
	}
	return measured{Requests: requests.Load(), Seconds: took.Seconds(), Client: cpuSeconds() - used}, nil
}

// conn is one connection's worth of calls.
type conn struct {
	client *http.Client
	load   load
	count  *atomic.Int64
	buf    bytes.Buffer
}

func (c *conn) call(path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(context.Background(), "POST", c.load.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.load.Token)
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	c.buf.Reset()
	if _, err := c.buf.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 || resp.StatusCode == http.StatusNoContent {
		return fmt.Errorf("POST %s answered %d: %s", path, resp.StatusCode, c.buf.Bytes())
	}
	c.count.Add(1)
	if out == nil {
		return nil
	}
	return json.Unmarshal(c.buf.Bytes(), out)
}

type claimed struct {
	ClaimID   string `json:"claimId"`
	SessionID string `json:"sessionId"`
}

// lifecycle is a whole session: four requests, each a durable write.
func (c *conn) lifecycle(worker string) error {
	if err := c.call(servertest.Base+"/agents/"+c.load.Agent+"/sessions", []byte(`{"prompt":"Say hello."}`), nil); err != nil {
		return err
	}
	var got claimed
	if err := c.call(servertest.Base+"/claim-next", fmt.Appendf(nil, `{"workerIds":[%q],"instanceId":%q}`, worker, instance), &got); err != nil {
		return err
	}
	return c.finish(worker, got)
}

func (c *conn) finish(worker string, got claimed) error {
	at := servertest.Base + "/agents/" + c.load.Agent + "/workers/" + worker + "/sessions/" + got.SessionID
	proof := fmt.Sprintf(`{"claimId":%q,"instanceId":%q`, got.ClaimID, instance)
	if err := c.call(at+"/activities", []byte(proof+`,"type":"progress","text":"half way"}`), nil); err != nil {
		return err
	}
	return c.call(at+"/complete", []byte(proof+`,"result":"hello"}`), nil)
}

// latency measures from the moment before a session is posted to the moment at which the
// worker that was waiting for one holds the claim.
func (l load) latency(client *http.Client) (measured, error) {
	var n atomic.Int64
	waiter, poster := &conn{client: client, load: l, count: &n}, &conn{client: client, load: l, count: &n}
	var m measured
	for range l.Rounds {
		var got claimed
		held := make(chan error, 1)
		var at time.Time
		go func() {
			err := waiter.call(servertest.Base+"/claim-next", fmt.Appendf(nil, `{"workerIds":[%q],"instanceId":%q,"wait":30}`, l.Workers[0], instance), &got)
			at = time.Now()
			held <- err
		}()
		time.Sleep(5 * time.Millisecond) // until the request is surely held: the measurement begins after it
		begun := time.Now()
		err := poster.call(servertest.Base+"/agents/"+l.Agent+"/sessions", []byte(`{"prompt":"Say hello."}`), nil)
		if err := errors.Join(err, <-held); err != nil {
			return m, err
		}
		m.Micros = append(m.Micros, at.Sub(begun).Microseconds())
		if err := waiter.finish(l.Workers[0], got); err != nil {
			return m, err
		}
	}
	slices.Sort(m.Micros)
	return m, nil
}

// emptyServer answers {} to everything: what net/http itself costs.
func emptyServer(tb testing.TB) string {
	tb.Helper()
	return serveHandler(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	}))
}
