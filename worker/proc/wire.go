package proc

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Worker and guardian are one binary, so they speak gob: it keeps arguments and
// environment byte for byte, also where they are no UTF-8.

// order goes from the worker to the guardian. Exactly one part is set.
type order struct {
	Launch *launch
	// Move says that Deadline is the new one (it may be zero).
	Move     bool
	Deadline BootTime
	// End asks for a staged ending.
	End bool
}

// launch is the first order. It travels by pipe, never by arguments.
type launch struct {
	Path     string
	Argv     []string
	Dir      string
	Env      []string
	Mark     string
	Stages   Stages
	Deadline BootTime
}

// report goes from the guardian to the worker. Exactly one part is set.
type report struct {
	Started *ID
	Failed  *failure
	// Killing: KILL is being sent from now on.
	Killing bool
	Ended   *ended
}

// failure is an error that crosses the pipe and keeps its errno.
type failure struct {
	Op       string
	Errno    syscall.Errno
	Deadline bool
}

func (f *failure) Error() string {
	if f.Deadline {
		return f.Op + ": " + ErrDeadline.Error()
	}
	return f.Op + ": " + f.Errno.Error()
}

func (f *failure) Unwrap() error {
	if f.Deadline {
		return ErrDeadline
	}
	return f.Errno
}

func failed(op string, err error) *failure {
	f := &failure{Op: op}
	if !errors.As(err, &f.Errno) {
		f.Op = fmt.Sprintf("%s (%v)", op, err)
		f.Errno = syscall.EIO
	}
	return f
}

// why says what began an ending.
type why int

const (
	whyExited why = iota + 1
	whyAsked
	whyDeadline
	whyWorkerGone
)

// ended is the guardian's last word.
type ended struct {
	Why    why
	Exited bool // the agent's end was seen, Status holds
	Status syscall.WaitStatus
	Stage  Stage

	Asked, Interrupted, Terminated, Killed, ExitedAt time.Time

	Swept     int
	Survivors []ID
}

// orders is the worker's end of the order pipe.
type orders struct {
	mu   sync.Mutex
	pipe *os.File
	enc  *gob.Encoder
}

func newOrders(pipe *os.File) *orders {
	return &orders{pipe: pipe, enc: gob.NewEncoder(pipe)}
}

// send is bounded: a guardian that doesn't read can't hold the worker. What it then
// doesn't learn is covered by the worker's own watch.
func (o *orders) send(m order) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.pipe.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	return o.enc.Encode(m)
}

// close tells the guardian that the worker is gone.
func (o *orders) close() { o.pipe.Close() }

// receive decodes values from r until it ends, and then closes both.
func receive[T any](r io.ReadCloser) <-chan T {
	c := make(chan T, 8)
	go func() {
		defer close(c)
		defer r.Close()
		dec := gob.NewDecoder(r)
		for {
			var v T
			if err := dec.Decode(&v); err != nil {
				return
			}
			c <- v
		}
	}()
	return c
}
