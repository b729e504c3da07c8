package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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

// Each stage is reached exactly when the one before was not enough, and its time is reported:
// no KILL before the grace is over. BL-032
func TestStages_EndAtTheFirstThatWorks(t *testing.T) {
	t.Parallel()
	const long = 10 * time.Minute
	const notLate = 300 * time.Millisecond // a busy machine that is later than this skips a stage, as it should
	tests := []struct {
		name   string
		argv   []string
		stages Stages
		want   Result
		got    string
	}{
		{
			name: "interrupt", argv: agentArgv("polite"),
			stages: Stages{long, long, long},
			want:   Result{ExitCode: 7, Stage: StageInterrupt}, got: "got SIGINT",
		},
		{
			name: "term", argv: agentArgv("polite", "SIGINT"),
			stages: Stages{notLate, long, long},
			want:   Result{ExitCode: 7, Stage: StageTerm}, got: "got SIGTERM",
		},
		{
			name: "kill", argv: agentArgv("polite", "SIGINT", "SIGTERM"),
			stages: Stages{notLate, notLate, long},
			want:   Result{ExitCode: -1, Signal: syscall.SIGKILL, Stage: StageKill}, got: "",
		},
		{
			name: "no grace at all", argv: agentArgv("polite"),
			stages: Stages{Kill: long},
			want:   Result{ExitCode: -1, Signal: syscall.SIGKILL, Stage: StageKill}, got: "",
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
	// A deadline that is slightly too near for all stages still begins with the interrupt.
	fmt.Fprintln(w.stdin, int64(BootNow().Add(patientStages.Total()-time.Second)))
	w.next(t)
	if r := w.next(t); r.Stage != StageInterrupt {
		t.Errorf("it ended at stage %v", r.Stage)
	}
}

// A stopped agent is continued for its signal, so that it can end well.
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

// An agent that doesn't read blocks nothing, even when the rest of the prompt would never
// come.
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

// An agent that closes its input ends the writer.
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
			t.Errorf("the writer got %v", err)
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

// A renewed deadline counts, and one that comes after the ending has begun doesn't.
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

// Leftovers of an agent that ended by itself don't use up the interrupt's grace, and never
// more than TERM's.
func TestExit_LeftoversGetTermAndNoInterrupt(t *testing.T) {
	t.Parallel()
	spec := testSpec("/bin/sh", "-c", `(trap 'echo swept; exit' TERM; echo ready; while :; do sleep 0.01; done) & sleep 0.1`)
	spec.Stages = Stages{Interrupt: 4 * time.Second, Term: 10 * time.Minute, Kill: time.Minute}
	r, out := run(t, t.Context(), spec)
	if !r.Success() || r.Swept == 0 || r.Interrupted != (time.Time{}) || r.Terminated.IsZero() || !strings.Contains(out, "swept") {
		t.Errorf("%+v, output %q", r, out)
	}
}

// The reader of a pipe that ends after its writer isn't left behind: nothing ends it, and all
// of its output arrives.
func TestExit_WhatEndsByItselfIsNotLeft(t *testing.T) {
	t.Parallel()
	spec := testSpec("/bin/sh", "-c", `mkfifo "$0"; (cat "$0" >/dev/null; sleep 0.2; echo last) & exec 3>"$0"`, filepath.Join(t.TempDir(), "pipe"))
	spec.Stages = Stages{Interrupt: 40 * time.Minute, Term: time.Minute, Kill: time.Minute}
	r, out := run(t, t.Context(), spec)
	if !r.Success() || r.Swept != 0 || !r.Terminated.IsZero() || !strings.Contains(out, "last") {
		t.Errorf("%+v, output %q", r, out)
	}
}

// BenchmarkStart is the whole run of an agent that does nothing.
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
	h := newTree(NewRecord("nobody"))
	for b.Loop() {
		if _, err := h.members(); err != nil {
			b.Fatal(err)
		}
	}
}
