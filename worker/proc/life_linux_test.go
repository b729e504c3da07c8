package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestExit_CodeAndSignalAreTold(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 1, 3, 255} {
		r, _ := run(t, t.Context(), testSpec(agentArgv("exit", strconv.Itoa(code))...))
		if r.ExitCode != code || r.Signal != 0 || r.Cause != nil || r.Stage != StageNone || r.Success() != (code == 0) {
			t.Errorf("exit %d: %+v", code, r)
		}
	}
	r, _ := run(t, t.Context(), testSpec(agentArgv("signal", "9")...))
	if r.ExitCode != -1 || r.Signal != syscall.SIGKILL || r.Cause != nil || r.Success() {
		t.Errorf("killed by itself: %+v", r)
	}
}

// Each stage is reached exactly when the one before was not enough, and its time is
// told. BL-032's kind: no KILL before the grace is over.
func TestStages_EndAtTheFirstThatWorks(t *testing.T) {
	t.Parallel()
	const long = 10 * time.Minute
	tests := []struct {
		name   string
		argv   []string
		stages Stages
		want   Result
		got    string
	}{
		{
			"interrupt", agentArgv("polite"), Stages{long, long, long},
			Result{ExitCode: 7, Stage: StageInterrupt}, "got SIGINT",
		},
		{
			"term", agentArgv("polite", "SIGINT"), Stages{time.Millisecond, long, long},
			Result{ExitCode: 7, Stage: StageTerm}, "got SIGTERM",
		},
		{
			"kill", agentArgv("polite", "SIGINT", "SIGTERM"), Stages{time.Millisecond, time.Millisecond, long},
			Result{ExitCode: -1, Signal: syscall.SIGKILL, Stage: StageKill}, "",
		},
		{
			"no grace at all", agentArgv("polite"), Stages{Kill: long},
			Result{ExitCode: -1, Signal: syscall.SIGKILL, Stage: StageKill}, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			out := newCollected()
			spec := testSpec(tt.argv...)
			spec.Stages = tt.stages
			p, err := Start(ctx, spec, out.sink)
			if err != nil {
				t.Fatal(err)
			}
			await(t, "the agent", out.ready)
			cancel(errCancelled)
			await(t, "the end", p.Done())
			r := p.Wait()
			if !errors.Is(r.Cause, errCancelled) {
				t.Errorf("cause %v", r.Cause)
			}
			if r.ExitCode != tt.want.ExitCode || r.Signal != tt.want.Signal || r.Stage != tt.want.Stage || r.Swept != 0 {
				t.Errorf("result %+v", r)
			}
			if !strings.Contains(out.all.String(), tt.got) {
				t.Errorf("output %q lacks %q", out.all.String(), tt.got)
			}
			signals := []time.Time{r.Asked, r.Interrupted, r.Terminated, r.Killed}
			if tt.stages.Interrupt == 0 {
				signals = []time.Time{r.Asked, r.Killed}
			}
			for i, at := range signals {
				if due := i <= int(tt.want.Stage) || len(signals) == 2; due == at.IsZero() {
					t.Errorf("time %d of %+v", i, r)
				}
				if i > 0 && !at.IsZero() && at.Before(signals[i-1]) {
					t.Errorf("times out of order: %+v", r)
				}
			}
			if r.Exited.Before(r.Asked) {
				t.Errorf("exited before it was asked: %+v", r)
			}
		})
	}
}

// A worker that a script put in the background ignores interrupts; its agents don't.
func TestStages_InterruptArrivesThoughTheWorkerIgnoresIt(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A shell can't trap what it was started to ignore.
	argv := []string{"/bin/sh", "-c", `trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done`}
	w := &worker{cmd: exec.Command("/bin/sh", append([]string{"-c", `trap "" INT HUP QUIT; exec "$@"`, "sh", self, "fake-worker", "patient"}, argv...)...)}
	w.start(t)
	w.next(t)
	// A deadline that is a little too near for all stages still begins with the interrupt.
	fmt.Fprintln(w.stdin, int64(BootNow().Add(patientStages.Total()-time.Second)))
	w.next(t)
	if r := w.next(t); r.Stage != StageInterrupt {
		t.Errorf("it ended at stage %v", r.Stage)
	}
}

// A stopped agent is woken for its signal, so that it can end well.
func TestStages_StoppedAgentActsOnTheInterrupt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	out := newCollected()
	spec := testSpec(agentArgv("polite")...)
	spec.Stages = patientStages
	p, err := Start(ctx, spec, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the agent", out.ready)
	if err := syscall.Kill(p.Record().Agent.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	cancel(errCancelled)
	await(t, "the end", p.Done())
	if r := p.Wait(); r.Stage != StageInterrupt || r.ExitCode != 7 {
		t.Errorf("%+v", r)
	}
}

func TestStdin_LargePromptArrivesAndEnds(t *testing.T) {
	t.Parallel()
	prompt := bytes.Repeat([]byte("0123456789abcde\n"), 300<<10/16)
	spec := testSpec("cat")
	spec.Stdin = bytes.NewReader(prompt)
	r, out := run(t, t.Context(), spec)
	if !r.Success() || out != string(prompt) {
		t.Errorf("%+v, %d bytes of %d came back", r, len(out), len(prompt))
	}
	spec = testSpec("cat") // no input: it ends at once
	if r, out := run(t, t.Context(), spec); !r.Success() || out != "" {
		t.Errorf("%+v, output %q", r, out)
	}
}

// An agent that doesn't read holds nobody, also when the rest of the prompt would
// never come.
func TestStdin_UnreadHoldsNobody(t *testing.T) {
	t.Parallel()
	spec := testSpec("true")
	spec.Stdin = bytes.NewReader(make([]byte, 4<<20))
	if r, _ := run(t, t.Context(), spec); !r.Success() {
		t.Errorf("%+v", r)
	}
	read, write := io.Pipe()
	spec = testSpec("true")
	spec.Stdin = read
	if r, _ := run(t, t.Context(), spec); !r.Success() {
		t.Errorf("%+v", r)
	}
	if _, err := write.Write([]byte("more")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the input was not closed: %v", err)
	}
}

// An agent that closes its input tells so to whoever writes to it.
func TestStdin_ClosedByTheAgentEndsTheWriter(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	out := newCollected()
	spec := testSpec("/bin/sh", "-c", "exec <&-; echo ready; exec sleep 1000")
	spec.Stdin = read
	p, err := Start(ctx, spec, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the agent", out.ready)
	told := make(chan struct{})
	go func() {
		defer close(told)
		if _, err := write.Write(make([]byte, 1<<20)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the writer was told %v", err)
		}
	}()
	await(t, "the end of the input", told)
	cancel()
	await(t, "the end", p.Done())
}

// An agent that talks both ways gets each line as it is written.
func TestStdin_ConversationWorks(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	lines := make(chan string, 10)
	spec := testSpec("/bin/sh", "-c", `while read -r l; do echo "got $l"; done; echo bye >&2`)
	spec.Stdin = read
	p, err := Start(t.Context(), spec, func(c Chunk) { lines <- string(c.Stream) + " " + string(c.Data) })
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two"} {
		fmt.Fprintln(write, word)
		if got := <-lines; got != "stdout got "+word+"\n" {
			t.Errorf("answer %q", got)
		}
	}
	write.Close()
	if got := <-lines; got != "stderr bye\n" {
		t.Errorf("last line %q", got)
	}
	await(t, "the end", p.Done())
	if r := p.Wait(); !r.Success() {
		t.Errorf("%+v", r)
	}
}

// proof T19: environment, descriptors, terminal and core limit are what the list says,
// whatever the worker has open.
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
		// JSON shows what is no UTF-8 as U+FFFD, one for each byte.
		Env: []string{"PATH=/bin", "ODD=caf\ufffd \ufffd", SessionVar + "=ses_test", MarkVar + "=" + spec.Record.Mark},
		Dir: spec.Dir, FDs: []int{0, 1, 2}, Blocking: true, Leader: true, Ignored: "0000000000000000",
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

// A script that was written a moment ago may still be open in a child that somebody is
// just starting; that passes.
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

// A renewed deadline holds, and one that comes after the ending has begun doesn't.
func TestSetDeadline_MovesBothWays(t *testing.T) {
	t.Parallel()
	out := newCollected()
	spec := testSpec(agentArgv("polite")...)
	spec.Deadline = BootNow().Add(time.Hour)
	p, err := Start(t.Context(), spec, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the agent", out.ready)
	near := BootNow().Add(spec.Stages.Total() + 2*time.Second)
	if err := p.SetDeadline(near); err != nil {
		t.Fatal(err)
	}
	if err := p.SetDeadline(near.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	alarm, err := NewAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer alarm.Close()
	alarm.Set(near.Add(-spec.Stages.Total() + 100*time.Millisecond))
	select {
	case <-p.Done():
		t.Fatalf("it ended though the deadline had moved: %+v", p.Wait())
	case <-alarm.C:
	}
	if err := p.SetDeadline(BootNow().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	await(t, "the end", p.Done())
	if r := p.Wait(); !errors.Is(r.Cause, ErrDeadline) {
		t.Errorf("%+v", r)
	}
}

// Leftovers of an agent that ended by itself don't cost the interrupt's grace, and
// never more than TERM's.
func TestExit_LeftoversGetTermAtOnce(t *testing.T) {
	t.Parallel()
	spec := testSpec("/bin/sh", "-c", `(trap 'echo swept; exit' TERM; echo ready; while :; do sleep 0.01; done) & sleep 0.1`)
	spec.Stages = patientStages
	r, out := run(t, t.Context(), spec)
	if !r.Success() || r.Swept == 0 || r.Interrupted != (time.Time{}) || r.Terminated.IsZero() || !strings.Contains(out, "swept") {
		t.Errorf("%+v, output %q", r, out)
	}
}

// BenchmarkStart is the whole life of an agent that does nothing.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p, err := Start(b.Context(), testSpec("true"), func(Chunk) {})
		if err != nil {
			b.Fatal(err)
		}
		if r := p.Wait(); !r.Success() {
			b.Fatalf("%+v", r)
		}
	}
}

// BenchmarkLook is one look for the processes of a session.
func BenchmarkLook(b *testing.B) {
	h := newHunt("nobody", ID{})
	for b.Loop() {
		h.members()
	}
}
