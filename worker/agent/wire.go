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

// maxLine bounds how much of one line of a protocol is held, in bytes. In a longer one the
// long texts are cut; one that is still too long is skipped.
const maxLine = 10 << 20

// heard is one line of a program, without its end.
type heard struct {
	text []byte // the receiver's
	cut  int64  // bytes of long texts that were left out of it
	lost bool   // too long however much is cut: there is no text
}

// wire carries the lines of a conversation. Neither end ever waits for the other: what is sent
// is queued, so that a program which waits for us to read can't block us while we write. Its
// two goroutines end when the streams do, at the latest when the caller has ended the process;
// after close they hand over nothing.
type wire struct {
	lines chan heard // closed at the end of the program's output
	shut  chan struct{}

	mu     sync.Mutex
	queue  [][]byte      // guarded by mu
	more   chan struct{} // the queue has something
	ended  error         // why lines was closed, nil = the end of the stream; guarded by mu
	broken chan struct{} // closed when the program no longer reads
}

func newWire(p Pipes) *wire {
	w := &wire{lines: make(chan heard), shut: make(chan struct{}), more: make(chan struct{}, 1), broken: make(chan struct{})}
	go w.listen(p.Out)
	go w.talk(p.In)
	return w
}

// close says that nothing is read any more. It closes neither stream.
func (w *wire) close() { close(w.shut) }

// err is why the lines ended, once they did.
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

// pass hands lines over until they end or nothing reads them any more.
func (w *wire) pass(r *bufio.Reader) error {
	for {
		l, err := readLine(r)
		if len(l.text) > 0 || l.lost {
			select {
			case w.lines <- l:
			case <-w.shut:
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line without its end.
func readLine(r *bufio.Reader) (heard, error) {
	var text []byte
	var shorter *cutter // once it is too long
	for {
		piece, err := r.ReadSlice('\n')
		switch {
		case shorter != nil:
			shorter.write(piece)
		case len(text)+len(piece) <= maxLine+1:
			text = append(text, piece...)
		default:
			shorter = &cutter{}
			shorter.write(text)
			shorter.write(piece)
			text = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		switch {
		case shorter == nil:
			return heard{text: trimEnd(text)}, err
		case shorter.full():
			return heard{lost: true}, err
		}
		return heard{text: trimEnd(shorter.out), cut: shorter.cut}, err
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
	line, err := json.Marshal(message, jsontext.AllowInvalidUTF8(true)) // invalid UTF-8 becomes U+FFFD
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
