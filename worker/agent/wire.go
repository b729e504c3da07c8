package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxLine bounds one line of a protocol, in bytes. Longer ones end the conversation.
const maxLine = 10 << 20

var errLineTooLong = fmt.Errorf("the program said a line of more than %d MiB", maxLine>>20)

// wire carries the lines of a conversation. Neither end ever waits for the other:
// what is sent is queued, so that a program which waits for us to listen can't hold
// us up while we talk. Its two goroutines end when the streams do, at the latest
// when the caller has ended the process; after close they hand over nothing.
type wire struct {
	lines chan []byte // closed at the end of the program's output
	shut  chan struct{}

	mu     sync.Mutex
	queue  [][]byte      // guarded by mu
	more   chan struct{} // the queue has something
	ended  error         // why lines was closed, nil = the end of the stream; guarded by mu
	broken chan struct{} // closed when the program doesn't read any more
}

func newWire(p Pipes) *wire {
	w := &wire{lines: make(chan []byte), shut: make(chan struct{}), more: make(chan struct{}, 1), broken: make(chan struct{})}
	go w.listen(p.Out)
	go w.talk(p.In)
	return w
}

// close says that nobody listens any more. It closes neither stream.
func (w *wire) close() { close(w.shut) }

// err is why the lines ended, after they did.
func (w *wire) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

func (w *wire) listen(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	if err := w.pass(r); err != nil && !errors.Is(err, io.EOF) {
		w.mu.Lock()
		w.ended = err
		w.mu.Unlock()
	}
	close(w.lines)
	_, _ = io.Copy(io.Discard, r) // a program that is being ended may have much to say
}

// pass hands lines over until they end or nobody listens.
func (w *wire) pass(r *bufio.Reader) error {
	for {
		line, err := readLine(r)
		if len(line) > 0 {
			select {
			case w.lines <- line:
			case <-w.shut:
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line without its end. It is the caller's.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > maxLine+1 {
			return nil, errLineTooLong
		}
		line = append(line, piece...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return trimEnd(line), err
		default:
			return trimEnd(line), nil
		}
	}
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}

// send queues a message as one line.
func (w *wire) send(message any) error {
	line, err := json.Marshal(message, jsontext.AllowInvalidUTF8(true)) // bytes that are no text become U+FFFD
	if err != nil {
		return fmt.Errorf("encode a message for the program: %w", err)
	}
	w.mu.Lock()
	w.queue = append(w.queue, append(line, '\n'))
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
	return nil
}

func (w *wire) talk(in io.Writer) {
	for {
		select {
		case <-w.more:
		case <-w.shut:
			return
		}
		for {
			w.mu.Lock()
			if len(w.queue) == 0 {
				w.mu.Unlock()
				break
			}
			line := w.queue[0]
			w.queue = w.queue[1:]
			w.mu.Unlock()
			if _, err := in.Write(line); err != nil {
				close(w.broken)
				return
			}
		}
	}
}
