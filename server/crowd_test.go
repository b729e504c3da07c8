package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
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
	var lines, lost atomic.Int64
	gate := make(chan struct{}, 64) // of connections that are being opened
	errs := make(chan error, l.Connections+l.Polls)
	hold := func(path, accept string) {
		opened.Add(1)
		go func() {
			gate <- struct{}{}
			once := sync.OnceFunc(func() { <-gate; opened.Done() })
			defer once()
			for ctx.Err() == nil {
				err := l.read(ctx, path, accept, once, &lines)
				switch {
				case ctx.Err() != nil:
				case errors.Is(err, io.EOF):
					lost.Add(1) // a poll ends by itself, a stream doesn't
				default:
					errs <- fmt.Errorf("%s: %w", path, err)
					return
				}
			}
		}()
	}
	for range l.Connections {
		hold(servertest.Base+"/events", "text/event-stream")
	}
	for i := range l.Polls {
		w := l.Workers[i%len(l.Workers)]
		hold(servertest.Base+"/agents/"+l.Agent+"/workers/"+w+"/sessions?wait=60&instanceId="+instance, "application/json")
	}
	opened.Wait()
	fmt.Println("open")
	begun := time.Now()
	_, _ = io.Copy(io.Discard, os.Stdin)
	m.Requests, m.Lost, m.Seconds = lines.Load(), lost.Load(), time.Since(begun).Seconds()
	select {
	case err := <-errs:
		return m, err
	default:
		return m, nil
	}
}

// read makes one request on a separate connection, in little memory, and counts the events in
// its answer.
func (l load) read(ctx context.Context, path, accept string, opened func(), lines *atomic.Int64) error {
	host := strings.TrimPrefix(l.URL, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nAuthorization: Bearer %s\r\nAccept: %s\r\n\r\n", path, host, l.Token, accept)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 512)
	if accept == "application/json" {
		time.Sleep(pollPace) // it is answered when its time is over: wait until it is likely held
		opened()
	}
	for first := true; ; first = false {
		line, _, err := in.ReadLine()
		switch {
		case err != nil:
			return err
		case first && !strings.HasPrefix(string(line), "HTTP/1.1 2"):
			return fmt.Errorf("answered %s", line)
		case first:
			opened()
		case strings.HasPrefix(string(line), "id: "):
			lines.Add(1)
		}
	}
}
