package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// The environment, descriptors, terminal and core limit are what the list says, whatever the
// worker has open.
func TestStart_AgentSeesOnlyWhatItWasGiven(t *testing.T) {
	t.Parallel()
	leak, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	spec := testSpec(agentArgv("census")...)
	spec.Dir = t.TempDir()
	spec.Env = []string{"PATH=/bin", "ODD=caf\xe9 \xff", SessionVar + "=forged", MarkVar + "=forged"}
	r, out := run(t, t.Context(), spec)
	var got seen
	if err := json.Unmarshal([]byte(out), &got); err != nil || !r.Success() {
		t.Fatalf("%v, %+v: %s", err, r, out)
	}
	want := seen{
		// JSON shows invalid UTF-8 as U+FFFD, one for each byte.
		Env: []string{"PATH=/bin", "ODD=caf\ufffd \ufffd", SessionVar + "=ses_test", MarkVar + "=" + spec.Record.Mark},
		Dir: spec.Dir, FDs: []int{0, 1, 2}, Blocking: true, Leader: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the agent sees (-want +got):\n%s", diff)
	}
}

// Nothing of the launch is in the guardian's arguments or environment, which ps shows.
func TestGuardian_ShowsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spec := testSpec(agentArgv("polite")...)
	spec.Env = append(spec.Env, "SECRET=swordfish")
	spec.Stdin = strings.NewReader("swordfish")
	out := newCollected()
	p, err := Start(ctx, spec, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the agent", out.ready)
	dir := fmt.Sprintf("/proc/%d/", p.Record().Guardian.Pid)
	line, err := os.ReadFile(dir + "cmdline")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join([]string{guardianName, "ses_test", spec.Record.Mark, ""}, "\x00"); string(line) != want {
		t.Errorf("arguments %q", line)
	}
	if env, err := os.ReadFile(dir + "environ"); err == nil && string(env) != "GOMAXPROCS=1\x00" {
		t.Errorf("environment %q", env)
	}
	cancel()
	await(t, "the end", p.Done())
}

func TestStart_RefusalsAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errCancelled)
	tests := []struct {
		name string
		ctx  context.Context
		edit func(*Spec)
		want error
	}{
		{"no such name", nil, func(s *Spec) { s.Argv = []string{"no-such-program-anywhere"} }, exec.ErrNotFound},
		{"no such path", nil, func(s *Spec) { s.Argv = []string{"./missing"} }, fs.ErrNotExist},
		{"not executable", nil, func(s *Spec) { s.Argv = []string{write("plain", "#!/bin/sh\n", 0o600)} }, fs.ErrPermission},
		{"a folder", nil, func(s *Spec) { s.Argv = []string{dir} }, fs.ErrPermission},
		{"not a program", nil, func(s *Spec) { s.Argv = []string{write("text", "hello", 0o700)} }, syscall.ENOEXEC},
		{"no interpreter", nil, func(s *Spec) { s.Argv = []string{write("script", "#!/no/such/shell\n", 0o700)} }, fs.ErrNotExist},
		{"no folder", nil, func(s *Spec) { s.Dir = filepath.Join(dir, "gone") }, fs.ErrNotExist},
		{"folder is a file", nil, func(s *Spec) { s.Dir = write("file", "", 0o600) }, syscall.ENOTDIR},
		{"deadline too near", nil, func(s *Spec) { s.Deadline = BootNow().Add(s.Stages.Total() - time.Millisecond) }, ErrDeadline},
		{"already cancelled", cancelled, func(*Spec) {}, errCancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := testSpec("true")
			spec.Dir = dir
			tt.edit(&spec)
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			p, err := Start(ctx, spec, func(Chunk) {})
			if !errors.Is(err, tt.want) || p != nil {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
	for name, edit := range map[string]func(*Spec){
		"no command":      func(s *Spec) { s.Argv = nil },
		"no record":       func(s *Spec) { s.Record = Record{} },
		"relative folder": func(s *Spec) { s.Dir = "here" },
		"negative stage":  func(s *Spec) { s.Stages.Term = -1 },
	} {
		spec := testSpec("true")
		edit(&spec)
		if _, err := Start(t.Context(), spec, func(Chunk) {}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A script that was just written may still be open in a child that something is starting; that
// passes.
func TestStart_WaitsForAFreshExecutable(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fresh")
	if err := os.WriteFile(path, self, 0o700); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { writer.Close() })
	if r, _ := run(t, t.Context(), testSpec(path)); !r.Success() {
		t.Errorf("%+v", r)
	}
}
