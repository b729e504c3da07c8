package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"stint/api"
)

// child is a worker in its own process, which can be killed.
type child struct {
	w   *fixture
	cmd *exec.Cmd
	err chan error
}

// childConfig is passed to the child in its arguments.
type childConfig struct {
	URL, Token, StateDir, MachineFile, Name string
	KillAt                                  string // a point of the journal
	KillOn                                  int    // the how manyeth time it is reached, from 1
	Register                                bool
	Parrot                                  string   // the file of the parrot's program; empty = no parrot
	Environ, Env                            []string // as of Options; empty = this process's
}

func (w *fixture) spawn(edit func(*childConfig)) *child {
	w.Helper()
	o := w.options()
	c := childConfig{URL: o.URL, Token: o.Token, StateDir: o.StateDir, MachineFile: o.MachineFile, Name: o.Name}
	if edit != nil {
		edit(&c)
	}
	b, err := json.Marshal(c)
	w.must(err)
	self, err := os.Executable()
	w.must(err)
	out := &child{w: w, cmd: exec.Command(self, childArg, string(b)), err: make(chan error, 1)}
	out.cmd.Stderr = testLog{w.T}
	w.must(out.cmd.Start())
	go func() { out.err <- out.cmd.Wait() }()
	w.Cleanup(func() {
		_ = out.cmd.Process.Kill()
		select {
		case <-out.err:
		case <-time.After(patience):
		}
	})
	return out
}

func (c *child) signal(sig syscall.Signal) {
	c.w.Helper()
	c.w.must(c.cmd.Process.Signal(sig))
}

// wait returns the exit code, -1 when a signal ended it.
func (c *child) wait() int {
	c.w.Helper()
	select {
	case err := <-c.err:
		c.err <- err
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			c.w.Fatal(err)
		}
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		c.w.Fatal("the worker process does not end")
		return 0
	}
}

func childMain(config string) {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(90)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var mu sync.Mutex
	passed := 0
	var adapters map[api.AgentType]adapter
	if c.Parrot != "" {
		adapters = map[api.AgentType]adapter{api.TypeClaudeCode: {parrot{os.Args[0], c.Parrot}, os.Args[0]}}
	}
	code, err := Run(ctx, Options{
		adapters: adapters, environ: c.Environ, Env: c.Env,
		URL: c.URL, Token: c.Token, StateDir: c.StateDir, MachineFile: c.MachineFile, Name: c.Name, Register: c.Register,
		Stages: testStages(), Clocks: testClocks(), Version: "test",
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
		at: func(point string) {
			mu.Lock()
			defer mu.Unlock()
			if point != c.KillAt {
				return
			}
			if passed++; passed == c.KillOn {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // the kill can come at any moment
			}
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
