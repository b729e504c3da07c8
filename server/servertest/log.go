package servertest

import (
	"bytes"
	"sync"
)

// Log keeps what the coordinator logged.
type Log struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write is part of io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String returns everything that was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
