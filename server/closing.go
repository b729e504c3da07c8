package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// boundBody makes the request's body end soon after shutdown begins, so that a client that
// never ends it can't delay a clean stop.
func (s *Server) boundBody(x *exchange) {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return
	}
	conn := http.NewResponseController(x.ResponseWriter)
	x.r.Body = &arriving{ReadCloser: x.r.Body, conn: conn, unhook: context.AfterFunc(s.closing, func() {
		// A writer without deadlines is a test's.
		_ = conn.SetReadDeadline(time.Now().Add(s.bodyLeft)) //nolint:forbidigo // a deadline of the machine's own network
	})}
}

// arriving is a body that is read until its end, or until the shutdown's deadline.
type arriving struct {
	io.ReadCloser
	conn   *http.ResponseController
	unhook func() bool // false: the deadline was set, or the hook is already gone
}

func (b *arriving) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && !b.unhook() {
		_ = b.conn.SetReadDeadline(time.Time{}) // it is complete: its handling isn't cut off
	}
	return n, err
}

func (b *arriving) Close() error {
	b.unhook()
	return b.ReadCloser.Close()
}

// openConns are the connections: those on which no request has come yet, which a browser opens
// in advance and a shutdown would wait for, and those in use.
type openConns struct{ fresh, busy sync.Map }

func (o *openConns) note(c net.Conn, state http.ConnState) {
	o.fresh.Delete(c)
	o.busy.Delete(c)
	switch state {
	case http.StateNew:
		o.fresh.Store(c, nil)
	case http.StateActive:
		o.busy.Store(c, nil)
	}
}

// freshGrace is what a connection that has just been made gets at shutdown to bring its first
// request. Its client would see a reset otherwise, though the next process answers a moment
// later.
const (
	freshGrace = 300 * time.Millisecond
	freshLook  = 10 * time.Millisecond
)

// settle waits until each connection has brought a request, for a moment at most, and closes
// the others.
func (o *openConns) settle() {
	look := time.NewTicker(freshLook)
	defer look.Stop()
	for range freshGrace / freshLook {
		none := true
		o.fresh.Range(func(any, any) bool { none = false; return false })
		<-look.C // once more after the last: what was just read has begun to be answered then
		if none {
			return
		}
	}
	o.closeFresh()
}

// closeFresh closes the connections on which no request has come.
func (o *openConns) closeFresh() {
	o.fresh.Range(func(c, _ any) bool {
		if conn, ok := c.(io.Closer); ok {
			_ = conn.Close()
		}
		return true
	})
}

func (o *openConns) countBusy() (n int) {
	o.busy.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// stop lets requests in progress finish within s.drain and cuts off the others: a client that
// reads nothing, or never ends what it sends, doesn't make the server's stop a failure.
func (s *Server) stop(ctx context.Context, hs *http.Server, conns *openConns) error {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drain)
	defer cancel()
	err := hs.Shutdown(grace)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.log.Warn("requests were cut off: their clients neither ended them nor took the answer", "requests", conns.countBusy(), "waited", s.drain)
	return hs.Close()
}
