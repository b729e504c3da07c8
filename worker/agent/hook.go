package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"stint/api"
)

// HookArg is the argument with which the worker's own program is started as a hook: a
// [Job.Hook] is the program's path and this word.
const HookArg = "agent-hook"

const maxHook = 1 << 20 // bytes of a tool call or of an answer

// HookMain turns the process into a hook if it was started as one, and then does not return.
// An agent program that can't call back over its own streams starts it before each tool call:
// it passes what the program sends on standard input to the worker over a socket, and prints
// the worker's answer. Without an answer it exits with 2, which refuses the call. The program
// must call it first thing in main, beside proc.GuardianMain.
func HookMain() {
	if len(os.Args) != 3 || os.Args[1] != HookArg {
		return
	}
	if err := askWorker(os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "The worker does not answer, so this is refused:", api.Plain(err))
		syscall.Exit(2)
	}
	syscall.Exit(0) // not os.Exit: the agent waits, and a build with the race detector would sleep a second first
}

func askWorker(socket string, in io.Reader, out io.Writer) error {
	call, err := io.ReadAll(io.LimitReader(in, maxHook+1))
	if err != nil {
		return err
	}
	if len(call) > maxHook {
		return errors.New("the tool call is too large")
	}
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(append(call, 0)); err != nil { // no JSON holds a NUL
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxHook))
	if err != nil {
		return err
	}
	if len(answer) == 0 {
		return errors.New("the conversation is over")
	}
	_, err = out.Write(answer)
	return err
}

// hookServer takes tool calls from hooks and hands them to the conversation.
type hookServer struct {
	dir   string
	ln    net.Listener
	calls chan hookCall
	shut  chan struct{}
	wait  sync.WaitGroup
}

// hookCall is a tool call that waits for its answer.
type hookCall struct {
	input  []byte
	answer chan []byte // buffered for one answer
}

func newHookServer(ctx context.Context) (*hookServer, error) {
	dir, err := os.MkdirTemp("", "stint-")
	if err != nil {
		return nil, fmt.Errorf("make the hook's folder: %w", err)
	}
	h := &hookServer{dir: dir, calls: make(chan hookCall), shut: make(chan struct{})}
	h.ln, err = (&net.ListenConfig{}).Listen(ctx, "unix", h.socket())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the hook: %w", err), os.RemoveAll(dir))
	}
	h.wait.Go(h.serve)
	return h, nil
}

func (h *hookServer) socket() string { return filepath.Join(h.dir, "s") }

// command is the shell command that a program runs before each tool call.
func (h *hookServer) command(hook []string) string {
	words := slices.Clone(hook)
	for i := range words {
		words[i] = ShellQuote(words[i])
	}
	return strings.Join(append(words, ShellQuote(h.socket())), " ") + " || exit 2"
}

func (h *hookServer) serve() {
	for {
		conn, err := h.ln.Accept()
		if err != nil {
			return
		}
		h.wait.Go(func() { h.take(conn) })
	}
}

func (h *hookServer) take(conn net.Conn) {
	gone := make(chan struct{})
	defer close(gone)
	h.wait.Go(func() { // it waits neither for a hook that has ended nor past the conversation's end
		select {
		case <-h.shut:
		case <-gone:
		}
		_ = conn.Close()
	})
	input, err := readCall(conn)
	if err != nil {
		return
	}
	call := hookCall{input: input, answer: make(chan []byte, 1)}
	select {
	case h.calls <- call:
	case <-h.shut:
		return
	}
	select {
	case answer := <-call.answer:
		_, _ = conn.Write(answer) // one that doesn't arrive refuses the call
	case <-h.shut:
	}
}

// readCall reads up to the NUL that ends a call.
func readCall(conn net.Conn) ([]byte, error) {
	var out []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := conn.Read(buf)
		out = append(out, buf[:n]...)
		if len(out) > 0 && out[len(out)-1] == 0 {
			return out[:len(out)-1], nil
		}
		if err != nil {
			return nil, err
		}
		if len(out) > maxHook {
			return nil, errors.New("the tool call is too large")
		}
	}
}

// close refuses the waiting calls and ends.
func (h *hookServer) close() {
	close(h.shut)
	_ = h.ln.Close()
	h.wait.Wait()
	_ = os.RemoveAll(h.dir)
}
