package proc

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stint/api"
)

// Worker and guardian are one binary, so they speak gob: it keeps arguments and environment
// byte for byte, even where they are not UTF-8.

// order goes from the worker to the guardian. Exactly one part is set.
type order struct {
	Launch *launch
	// Move says that Deadline is the new one (it may be zero).
	Move     bool
	Deadline BootTime
	// End asks for a staged ending.
	End bool
	// Ping asks for a sign of life.
	Ping bool
}

// launch is the first order. It travels by the socket, never by arguments.
type launch struct {
	Path     string
	Argv     []string
	Dir      string
	Env      []string
	Mark     string
	Brand    uint64
	Stages   Stages
	Deadline BootTime
}

// report goes from the guardian to the worker. Exactly one part is set.
type report struct {
	Started *ID
	Failed  *failure
	// Alive answers a Ping; or Hampered, from a guardian that was deprived of files, memory or
	// time, so that it can't be relied on.
	Alive, Hampered bool
	// Killing: KILL is being sent from now on.
	Killing bool
	Ended   *ended
}

// failure is an error that crosses the socket and keeps its errno.
type failure struct {
	Op       string
	Errno    syscall.Errno // 0 when it had none
	Says     string        // in its place
	Deadline bool
}

func (f *failure) Error() string {
	if f.Deadline {
		return f.Op + ": " + ErrDeadline.Error()
	}
	if f.Errno == 0 {
		return f.Op + ": " + f.Says
	}
	return f.Op + ": " + f.Errno.Error()
}

func (f *failure) Unwrap() error {
	if f.Deadline {
		return ErrDeadline
	}
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

func failed(op string, err error) *failure {
	f := &failure{Op: op}
	if !errors.As(err, &f.Errno) {
		f.Says = api.Plain(err)
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

// ended is the guardian's last report.
type ended struct {
	Why    why
	Exited bool // the agent's end was seen, Status holds
	Status syscall.WaitStatus
	Stage  Stage

	Asked, Interrupted, Terminated, Killed, ExitedAt time.Time

	Swept     int
	Left      []string
	Survivors []ID
}

// socketPair returns two connected ends, of which one is read and one written. Unlike a pipe's
// they can't be opened anew in /proc, not even by the superuser, so nobody reads or writes what
// was meant for another.
func socketPair() (r, w *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		if err := syscall.SetNonblock(fd, true); err != nil { // so that a deadline ends a write
			syscall.Close(fds[0])
			syscall.Close(fds[1])
			return nil, nil, os.NewSyscallError("setnonblock", err)
		}
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// orders is the worker's end of the socket for orders.
type orders struct {
	mu     sync.Mutex
	socket *os.File
	enc    *gob.Encoder
}

func newOrders(socket *os.File) *orders {
	return &orders{socket: socket, enc: gob.NewEncoder(socket)}
}

// send is bounded: a guardian that doesn't read can't block the worker. The worker's own watch
// covers what the guardian then doesn't learn.
func (o *orders) send(m order) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.socket.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	return o.enc.Encode(m)
}

// close shows the guardian that the worker is gone.
func (o *orders) close() { o.socket.Close() }

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
