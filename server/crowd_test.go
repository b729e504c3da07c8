package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stint/server/servertest"
)

// pollPace spreads the first requests of a crowd's polls: 64 of them at a time.
const pollPace = 200 * time.Millisecond

// crowd is a client process that holds live streams and polls until its input
// ends. It writes a line when all of them are open.
func (l load) crowd() (measured, error) {
	debug.SetGCPercent(1000) // its own garbage must not be what is measured
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var m measured
	var opened sync.WaitGroup
	var lost atomic.Int64
	heard := &heard{all: l.Connections}
	gate := make(chan struct{}, 64) // of connections that are being opened
	errs := make(chan error, l.Connections+l.Polls)
	hold := func(what waits) {
		opened.Add(1)
		go func() {
			gate <- struct{}{}
			once := sync.OnceFunc(func() { <-gate; opened.Done() })
			defer once()
			for ctx.Err() == nil {
				err := l.read(ctx, what, once, heard)
				switch {
				case ctx.Err() != nil:
				case errors.Is(err, io.EOF):
					lost.Add(1) // a poll ends by itself, a stream doesn't
				default:
					errs <- fmt.Errorf("%s: %w", what.path, err)
					return
				}
			}
		}()
	}
	for range l.Connections {
		hold(waits{path: servertest.Base + "/events", accept: "text/event-stream"})
	}
	for i := range l.Polls {
		at := l.Waits[i%len(l.Waits)]
		if l.Claims {
			_, id, _ := strings.Cut(at, "/workers/")
			hold(waits{path: servertest.Base + "/claim-next", body: fmt.Sprintf(`{"workerIds":[%q],"instanceId":%q,"wait":60}`, id, instance)})
			continue
		}
		hold(waits{path: servertest.Base + at + "/sessions?wait=60&instanceId=" + instance})
	}
	opened.Wait()
	fmt.Println("open")
	begun := time.Now()
	_, _ = io.Copy(io.Discard, os.Stdin)
	m.Requests, m.Lost, m.Seconds = heard.lines.Load(), lost.Load(), time.Since(begun).Seconds()
	m.Reached = heard.reached()
	select {
	case err := <-errs:
		return m, err
	default:
		return m, nil
	}
}

// waits is a request that is held.
type waits struct{ path, accept, body string }

// text is the request on a connection that isn't used any more after it.
func (w waits) text(host, token string) string {
	method := "GET"
	if w.body != "" {
		method = "POST"
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nAuthorization: Bearer %s\r\nAccept: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, w.path, host, token, w.accept, len(w.body), w.body)
}

// read makes one request on a separate connection, in little memory, and counts the events in
// its answer.
func (l load) read(ctx context.Context, what waits, opened func(), heard *heard) error {
	host := strings.TrimPrefix(l.URL, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 512)
	if l.Used {
		if err := l.use(conn, in, host); err != nil {
			return err
		}
	}
	if _, err = io.WriteString(conn, what.text(host, l.Token)); err != nil {
		return err
	}
	if what.accept == "" {
		time.Sleep(pollPace) // it is answered when its time is over: wait until it is likely held
		opened()
	}
	sampled := false
	for first := true; ; first = false {
		line, _, err := in.ReadLine()
		switch {
		case err != nil:
			return err
		case first && !strings.HasPrefix(string(line), "HTTP/1.1 2"):
			return fmt.Errorf("answered %s", line)
		case first:
			opened()
		case bytes.HasPrefix(line, []byte("id: ")):
			sampled = heard.line(line)
		case sampled && bytes.HasPrefix(line, []byte("data: ")):
			heard.event(line)
			sampled = false
		}
	}
}

// use makes a plain request on a connection, as every worker has before it waits.
func (l load) use(conn net.Conn, in *bufio.Reader, host string) error {
	_, err := fmt.Fprintf(conn, "GET %s/agents HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", servertest.Base, host, l.Token)
	if err != nil {
		return err
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// heard is what the streams of a crowd were told.
type heard struct {
	all   int // streams
	lines atomic.Int64
	mu    sync.Mutex // guards what follows
	each  map[string]*arrivals
}

// arrivals are those of one event.
type arrivals struct {
	streams int
	took    time.Duration // until the latest
}

// line counts an event and says whether it is one of those that are looked at: a sixteenth.
func (h *heard) line(id []byte) bool {
	h.lines.Add(1)
	n, err := strconv.ParseInt(string(id[len("id: "):]), 10, 64)
	return err == nil && n%16 == 0
}

func (h *heard) event(data []byte) {
	_, at, _ := strings.Cut(string(data), `"at":"`)
	at, _, _ = strings.Cut(at, `"`)
	made, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return
	}
	seq, _, _ := strings.Cut(string(data), ",")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.each == nil {
		h.each = map[string]*arrivals{}
	}
	if h.each[seq] == nil {
		h.each[seq] = &arrivals{}
	}
	h.each[seq].streams++
	h.each[seq].took = time.Since(made)
}

// reached lists how long each event took that every stream has.
func (h *heard) reached() (all []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.each {
		if a.streams == h.all {
			all = append(all, a.took.Milliseconds())
		}
	}
	slices.Sort(all)
	return all
}
