// Package sse writes server-sent events (HTML standard, section 9.2): those of the API and those
// that keep the dashboard's pages current. It knows nothing of what it carries.
package sse

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// WriteLimit is how long a reader may take for what is sent at once.
const WriteLimit = 10 * time.Second

// Stream writes to one reader. A reader that takes longer than [WriteLimit] is cut off; it
// reconnects with the id of the last event that it has. One goroutine owns it, the request's.
type Stream struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

// Open answers 200 with the headers of a stream, which are sent with the first text.
func Open(w http.ResponseWriter) *Stream {
	s := &Stream{w: w, conn: http.NewResponseController(w)}
	_ = s.conn.SetWriteDeadline(time.Time{}) // each Send has its own; a writer without deadlines is a test's
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return s
}

// Send writes whole lines, as the Append functions make them, and flushes them. Its error says
// that the reader is gone or too slow: the stream is over.
func (s *Stream) Send(lines []byte) error {
	late := time.AfterFunc(WriteLimit, func() {
		_ = s.conn.SetWriteDeadline(time.Unix(1, 0)) // in the past: the write below ends at once
	})
	defer late.Stop()
	if _, err := s.w.Write(lines); err != nil {
		return err
	}
	return s.conn.Flush()
}

// Beat sends a comment, so that proxies keep a silent connection and a reader that left is noticed.
func (s *Stream) Beat() error { return s.Send([]byte(":\n\n")) }

// AppendRetry adds how long a reader is to wait before it reconnects.
func AppendRetry(lines []byte, after time.Duration) []byte {
	lines = append(lines, "retry: "...)
	lines = strconv.AppendInt(lines, after.Milliseconds(), 10)
	return append(lines, "\n\n"...)
}

// AppendEvent adds one event. Kind "" stands for the standard's "message". Carriage returns in data
// are left out: they would end a line of the stream.
func AppendEvent(lines []byte, id, kind string, data []byte) []byte {
	lines = appendField(lines, "id", []byte(id))
	if kind != "" {
		lines = appendField(lines, "event", []byte(kind))
	}
	for line := range bytes.SplitSeq(bytes.ReplaceAll(data, []byte("\r"), nil), []byte("\n")) {
		lines = appendField(lines, "data", line)
	}
	return append(lines, '\n')
}

func appendField(lines []byte, name string, value []byte) []byte {
	lines = append(lines, name...)
	lines = append(lines, ": "...)
	lines = append(lines, value...)
	return append(lines, '\n')
}
