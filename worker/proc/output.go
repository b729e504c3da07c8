package proc

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"time"
	"unicode/utf8"
)

// Stream names one of the agent's two outputs.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Chunk is a piece of one stream. The pieces of a stream, put together, are exactly what the
// agent wrote. A piece ends at the end of a line where it can; if it doesn't, the next piece
// of its stream continues it: the line is longer than MaxChunk, or the agent has paused within
// it. A UTF-8 character is never split.
type Chunk struct {
	Stream Stream
	// Data belongs to the receiver, is never empty and at most MaxChunk long.
	Data []byte
}

// Sink takes the output, one chunk at a time and in the order of arrival (exact within a
// stream). While it works nothing is read, so a slow sink slows the agent and memory stays
// bounded. It must return in the end: Wait waits for it. What arrives after the deadline is
// handed over only when the agent is gone (contract 4.7).
type Sink func(Chunk)

// MaxChunk is the length at which a line is cut. Memory is bounded by two such buffers and one
// chunk per process.
const MaxChunk = 32 << 10

const (
	// lineWait is how long a piece of a line waits for the rest of it, so that a progress
	// display is live and words written one by one stay together.
	lineWait = 100 * time.Millisecond
	// drainWait bounds one wait for output once the tree is gone, and drainBytes all of it:
	// whatever still writes then isn't ours. No pipe holds more.
	drainWait  = 2 * time.Second
	drainBytes = 4 << 20
)

// output reads both streams.
type output struct {
	sink    Sink
	turn    sync.Mutex // held while the sink works
	overdue func() bool
	over    chan struct{} // closed when the tree is gone
	readers sync.WaitGroup
	streams [2]*stream
}

func newOutput(stdout, stderr *os.File, sink Sink, overdue func() bool) *output {
	o := &output{sink: sink, overdue: overdue, over: make(chan struct{})}
	o.streams[0] = &stream{name: Stdout, pipe: stdout}
	o.streams[1] = &stream{name: Stderr, pipe: stderr}
	return o
}

func (o *output) start() {
	for _, s := range o.streams {
		o.readers.Go(func() { s.read(o.deliver) })
	}
}

// finish takes what is still in the pipes and ends the readers; cut reports whether one was
// given up before its end.
func (o *output) finish() (cut bool) {
	close(o.over)
	for _, s := range o.streams {
		s.drain()
	}
	o.readers.Wait()
	for _, s := range o.streams {
		cut = cut || s.cut
	}
	o.close()
	return cut
}

func (o *output) close() {
	for _, s := range o.streams {
		s.pipe.Close()
	}
}

// deliver hands a chunk to the sink. On waking from sleep past the deadline the agent comes
// first: it is ended, then its output is taken.
func (o *output) deliver(c Chunk) {
	if o.overdue() {
		<-o.over
	}
	o.turn.Lock()
	defer o.turn.Unlock()
	o.sink(c)
}

// stream is one output. Its reader owns buf, since, drained and cut.
type stream struct {
	name Stream
	pipe *os.File

	buf     []byte
	since   time.Time // when the oldest byte in buf came
	drained int
	cut     bool

	mu       sync.Mutex // makes checking draining and setting a read deadline one step
	draining bool
}

// drain notifies the reader that no process of the tree is left.
func (s *stream) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	_ = s.pipe.SetReadDeadline(time.Now()) // wakes it; a closed one needs no waking
}

// arm sets how long the next read may wait, and reports whether we are draining.
func (s *stream) arm() (draining bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var until time.Time
	switch {
	case s.draining:
		until = time.Now().Add(drainWait)
	case len(s.buf) > 0:
		until = s.since.Add(lineWait)
	}
	_ = s.pipe.SetReadDeadline(until) // if the pipe is closed the read says so
	return s.draining
}

// read hands on all output until the stream ends.
func (s *stream) read(deliver func(Chunk)) {
	s.buf = make([]byte, 0, MaxChunk)
	for {
		draining := s.arm()
		n, err := s.pipe.Read(s.buf[len(s.buf):cap(s.buf)])
		if n > 0 && len(s.buf) == 0 {
			s.since = time.Now()
		}
		s.buf = s.buf[:len(s.buf)+n]
		waited := errors.Is(err, os.ErrDeadlineExceeded)
		if draining {
			s.drained += n
			s.cut = waited || s.drained > drainBytes
		}
		switch {
		case err != nil && !waited, s.cut:
			s.pass(len(s.buf), deliver)
			return
		case waited && !draining:
			s.pass(WholeRunes(s.buf), deliver)
			s.since = time.Now() // a split character keeps waiting
		case len(s.buf) == cap(s.buf):
			s.pass(fullCut(s.buf), deliver)
		default:
			s.pass(bytes.LastIndexByte(s.buf, '\n')+1, deliver)
		}
	}
}

// pass hands on the first n bytes.
func (s *stream) pass(n int, deliver func(Chunk)) {
	if n == 0 {
		return
	}
	deliver(Chunk{Stream: s.name, Data: bytes.Clone(s.buf[:n])})
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	s.since = time.Now()
}

// fullCut is where to cut a full buffer: after its last line, or at the last whole character
// of a line that is longer.
func fullCut(b []byte) int {
	if n := bytes.LastIndexByte(b, '\n') + 1; n > 0 {
		return n
	}
	return WholeRunes(b)
}

// WholeRunes is the length of b without the beginning of a character at its end. Invalid UTF-8
// isn't held back.
func WholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		i := len(b) - back
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}
