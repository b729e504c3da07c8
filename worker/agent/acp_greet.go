package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Met is what a program that speaks ACP says of itself.
type Met struct {
	Name, Version string
	Resumes       bool // it can go on with earlier conversations
}

// Greet starts a program and has it introduce itself by the Agent Client Protocol. argv is what to
// start, env its exact environment.
func Greet(ctx context.Context, argv, env []string) (Met, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return Met{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Met{}, err
	}
	if err := cmd.Start(); err != nil {
		return Met{}, err
	}
	met, err := introduced(in, out)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // it holds no conversation that it could lose
	_ = in.Close()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	return met, err
}

func introduced(in io.Writer, out io.Reader) (Met, error) {
	hello, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": acpHello()})
	if err != nil {
		return Met{}, fmt.Errorf("encode a greeting: %w", err)
	}
	// A program that has ended already is told of by what it said, as one that ends a moment later.
	if _, err := in.Write(append(hello, '\n')); err != nil && !errors.Is(err, syscall.EPIPE) {
		return Met{}, err
	}
	for r := bufio.NewReader(out); ; {
		line, err := readLine(r)
		var m rpcMessage
		if json.Unmarshal(line.text, &m, lenient) == nil && m.Method == "" && string(m.ID) == "1" {
			return m.met()
		}
		if errors.Is(err, io.EOF) {
			return Met{}, errors.New("it ended without an answer")
		}
		if err != nil {
			return Met{}, err
		}
	}
}

// met reads the answer to a greeting.
func (m rpcMessage) met() (Met, error) {
	var a acpAgent
	switch {
	case m.Error != nil:
		return Met{}, errors.New("it refuses: " + clip(m.Error.words(), 300))
	case json.Unmarshal(m.Result, &a, lenient) != nil:
		return Met{}, errors.New("its answer can't be read")
	case !a.speaks():
		return Met{}, fmt.Errorf("it speaks version %s, the worker version %d", clip(or(string(jsontext.Value(a.Version)), "unknown"), 50), acpVersion)
	}
	return Met{Name: a.Info.Name, Version: clip(a.Info.Version, 50), Resumes: a.Can.Load || a.resumes()}, nil
}
