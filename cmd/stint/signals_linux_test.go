package main

import (
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/worker/workertest"
)

// The first TERM lets what is running end; the second ends the program at once, and the
// guardian makes sure that nothing of it is left.
func TestSignals_ASecondTermEndsAtOnce(t *testing.T) {
	h := newHome(t)
	p := h.serve(asIs, "up")
	c := p.client(nil)
	file := filepath.Join(h.dir, "stamps")
	_, err := c.CreateAgent(t.Context(), map[string]any{
		"slug": "deaf", "run": map[string]any{"command": workertest.Agent(t, "deaf", file), "workFolder": t.TempDir()},
	})
	h.must(err)
	_, _, err = c.CreateSession(t.Context(), "deaf", api.SessionInput{}, "")
	h.must(err)
	h.until("the agent runs", func() bool { return len(workertest.Lives(t, file)) > 0 })
	addr := strings.TrimPrefix(p.ready(), "http://")
	h.must(p.cmd.Process.Signal(syscall.SIGTERM))
	select { // the agent ignores signals, so the first TERM has to wait for it
	case <-p.ended:
		t.Fatalf("the first TERM ended it with %v", p.err)
	case <-time.After(300 * time.Millisecond):
	}
	begun := time.Now()
	h.must(p.cmd.Process.Signal(syscall.SIGTERM))
	p.wait()
	var ended *exec.ExitError
	if took := time.Since(begun); took > time.Second || !errors.As(p.err, &ended) || ended.ExitCode() != int(exitInterrupted) {
		t.Errorf("the second TERM ended it after %v with %v", took, p.err)
	}
	if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		_ = conn.Close()
		t.Error("somebody still listens")
	}
	h.until("the agent is gone", func() bool { return errors.Is(syscall.Kill(workertest.Lives(t, file)[0].Pid, 0), syscall.ESRCH) })
}
