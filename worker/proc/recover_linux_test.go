package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// The worker notices that its guardian is gone and itself ends what carries the mark.
func TestGuardianKilled_WorkerSweepsByMark(t *testing.T) {
	t.Parallel()
	for _, recipe := range []string{"child", "setsid", "doublefork", "daemon", "deaf", "storm", "stopped"} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			p, w, _ := startEscape(t, t.Context(), recipe, "stay")
			if err := syscall.Kill(p.Record().Guardian.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			await(t, "the end", p.Done())
			if !w.empty(t) {
				t.Error("somebody was alive when Done was closed")
			}
			w.nobody(t, p.Record().Mark)
			if r := p.Wait(); !errors.Is(r.Cause, ErrGuardianLost) || r.Swept == 0 || len(r.Survivors) > 0 {
				t.Errorf("result %+v", r)
			}
		})
	}
}

// When the guardian is killed the agent itself goes too, whatever it did to its environment:
// the kernel does that.
func TestGuardianKilled_AgentGoesWithIt(t *testing.T) {
	t.Parallel()
	w := probes(t.TempDir())
	worker := startWorker(t, "run", agentArgv("escape", string(w), "child", "stay"))
	if err := worker.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // so it can't help
		t.Fatal(err)
	}
	agent := worker.record.Agent
	if err := syscall.Kill(worker.record.Guardian.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if e, err := lookup(agent.Pid); err != nil || e.ID != agent || e.dead {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the agent lives without its guardian")
		}
	}
	worker.kill()
	if _, err := Sweep(t.Context(), worker.record, testStages); err != nil {
		t.Fatal(err)
	}
	w.nobody(t, worker.record.Mark)
}

// A stopped guardian is as good as dead: the worker acts in its place, when asked and at the
// deadline.
func TestGuardianStopped_WorkerTakesOver(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"cancel", "deadline"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			w := probes(t.TempDir())
			out := newCollected()
			spec := testSpec(agentArgv("escape", string(w), "daemon", "stay")...)
			spec.Stages.Kill = time.Second
			ctx, cancel := context.WithCancelCause(t.Context())
			p, err := Start(ctx, spec, out.sink)
			if err != nil {
				t.Fatal(err)
			}
			await(t, "the agent", out.ready)
			if err := syscall.Kill(p.Record().Guardian.Pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			want := ErrGuardianLost
			if by == "cancel" {
				want = errCancelled
				cancel(errCancelled)
			} else if err := p.SetDeadline(BootNow().Add(1500 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			await(t, "the end", p.Done())
			w.nobody(t, p.Record().Mark)
			if r := p.Wait(); !errors.Is(r.Cause, want) || r.Stage != StageKill {
				t.Errorf("result %+v", r)
			}
			cancel(nil)
		})
	}
}

// A process that the session had another process start is known only by its mark.
func TestMark_IsFoundOutsideTheTree(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"exit", "stay"} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			w := probes(t.TempDir())
			spec := testSpec(agentArgv("escape", string(w), "child", then)...)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			elsewhere := exec.Command(self, "fake-agent", "branch", string(w), "trap")
			elsewhere.Env = []string{MarkVar + "=" + spec.Record.Mark}
			stranger := exec.Command(self, "fake-agent", "sleep", "x")
			stranger.Env = []string{MarkVar + "=" + spec.Record.Mark + "x", "X=" + MarkVar + "=" + spec.Record.Mark, SessionVar + "=ses_test"}
			for _, cmd := range []*exec.Cmd{elsewhere, stranger} {
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
			}
			go func() { _ = elsewhere.Wait() }() // if it were our zombie it would still hold no lock
			ctx, cancel := context.WithCancelCause(t.Context())
			out := newCollected()
			p, err := Start(ctx, spec, out.sink)
			if err != nil {
				t.Fatal(err)
			}
			await(t, "the agent", out.ready)
			if then == "stay" {
				cancel(errCancelled)
			}
			await(t, "the end", p.Done())
			w.nobody(t, spec.Record.Mark)
			cancel(nil)
			if e, err := lookup(stranger.Process.Pid); err != nil || e.dead {
				t.Error("a process with another mark was ended")
			}
			_ = stranger.Process.Kill()
			_ = stranger.Wait()
		})
	}
}

// After kill -9 of the worker its successor waits for the guardian's work, with the record as
// it was before the start or after it.
func TestSweep_WaitsForTheGuardianOfTheEarlierLife(t *testing.T) {
	t.Parallel()
	for _, known := range []string{"before the start", "after it"} {
		t.Run(known, func(t *testing.T) {
			t.Parallel()
			w := probes(t.TempDir())
			worker := startWorker(t, "run", agentArgv("escape", string(w), "deaf", "stay"))
			rec := worker.record
			if known == "before the start" {
				rec.Guardian, rec.Agent = ID{}, ID{}
			}
			worker.kill()
			swept, err := Sweep(t.Context(), rec, testStages)
			if err != nil || len(swept.Survivors) > 0 {
				t.Errorf("%+v, %v", swept, err)
			}
			if !w.empty(t) {
				t.Error("somebody was alive after the sweep")
			}
			if e, err := lookup(worker.record.Guardian.Pid); err == nil && e.ID == worker.record.Guardian && !e.dead {
				t.Error("the guardian is still there")
			}
			w.nobody(t, rec.Mark)
		})
	}
}

// Worker and guardian both killed: what carries the mark is ended by the next process.
func TestSweep_EndsWhatNobodyGuards(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"killed", "stopped"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			w := probes(t.TempDir())
			worker := startWorker(t, "run", agentArgv("escape", string(w), "daemon", "stay"))
			guardian := worker.record.Guardian
			if err := syscall.Kill(guardian.Pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			worker.kill()
			if state == "killed" {
				if err := syscall.Kill(guardian.Pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if w.empty(t) {
				t.Fatal("nothing was left to sweep")
			}
			short := Stages{Interrupt: 20 * time.Millisecond, Term: 20 * time.Millisecond, Kill: 2 * time.Second}
			swept, err := Sweep(t.Context(), worker.record, short)
			if err != nil || swept.Found == 0 || len(swept.Survivors) > 0 {
				t.Errorf("%+v, %v", swept, err)
			}
			if !w.empty(t) {
				t.Error("somebody was alive after the sweep")
			}
			again, err := Sweep(t.Context(), worker.record, short)
			if err != nil || again.Found != 0 {
				t.Errorf("a second sweep found %+v, %v", again, err)
			}
			w.nobody(t, worker.record.Mark)
		})
	}
}

// A pid that now belongs to another process, and ids of another boot, mean nothing.
func TestSweep_LeavesStrangersAlone(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("sleep", "1000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill() }()
	id, err := lookupID(stranger.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	older := ID{Pid: id.Pid, Start: id.Start - 1}
	rec := NewRecord("ses_old")
	rec.Agent, rec.Guardian = older, older
	otherBoot := NewRecord("ses_older")
	otherBoot.Agent, otherBoot.Boot = id, "another"
	for _, r := range []Record{rec, otherBoot} {
		swept, err := Sweep(t.Context(), r, testStages)
		if err != nil || swept.Found != 0 {
			t.Errorf("%s: %+v, %v", r.Session, swept, err)
		}
	}
	sendTo(older, syscall.SIGTERM)
	if e, err := lookup(id.Pid); err != nil || e.ID != id || e.dead {
		t.Error("the stranger was ended")
	}
	rec.Agent = id // and with the right start it is ours
	if swept, err := Sweep(t.Context(), rec, Stages{Kill: time.Minute}); err != nil || swept.Found != 1 {
		t.Errorf("%+v, %v", swept, err)
	}
	_ = stranger.Wait()
	if status := stranger.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("it had been ended before: %v", stranger.ProcessState)
	}
	if _, err := Sweep(t.Context(), Record{Session: "ses_x"}, testStages); err == nil {
		t.Error("a record without mark was swept")
	}
}

// Orphans that end while the agent runs don't pile up as zombies.
func TestGuardian_CollectsOrphans(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := newCollected()
	p, err := Start(ctx, testSpec("/bin/sh", "-c", `for i in 1 2 3 4 5; do (true & true); done; (sleep 0.05 &); echo ready; exec sleep 1000`), out.sink)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the agent", out.ready)
	guardian := p.Record().Guardian.Pid
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		table, err := processTable()
		if err != nil {
			t.Fatal(err)
		}
		children := 0
		for _, e := range table {
			if e.parent == guardian {
				children++
			}
		}
		if children == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the guardian has %d children", children)
		}
	}
	cancel()
	await(t, "the end", p.Done())
}

func TestPick_FollowsTreeGroupAndMark(t *testing.T) {
	t.Parallel()
	agent := ID{Pid: 100, Start: 50}
	table := []entry{
		{ID: ID{1, 0}, parent: 0},
		{ID: ID{90, 40}, parent: 1, group: 90, session: 90},                  // the guardian
		{ID: agent, parent: 90, group: 100, session: 100},                    // below it
		{ID: ID{101, 51}, parent: 100, group: 101, session: 101},             // and further below
		{ID: ID{102, 52}, parent: 1, group: 100, session: 100},               // by group
		{ID: ID{103, 53}, parent: 1, group: 103, session: 103},               // by mark
		{ID: ID{104, 54}, parent: 103, group: 104, session: 104},             // below a marked one
		{ID: ID{105, 55}, parent: 1, group: 105, session: 105},               // a stranger
		{ID: ID{106, 49}, parent: 1, group: 100, session: 100},               // older than the agent
		{ID: ID{107, 56}, parent: 100, group: 100, session: 100, dead: true}, // a zombie
	}
	marked := func(e entry) bool { return e.Pid == 103 }
	for _, tt := range []struct {
		name string
		tree *tree
		want []int
	}{
		{"guardian", &tree{agent: agent, root: 90, group: true}, []int{100, 101, 102, 103, 104}},
		{"guardian, agent collected", &tree{agent: agent, root: 90}, []int{100, 101, 103, 104}},
		{"worker", &tree{agent: agent, group: true}, []int{100, 101, 102, 103, 104}},
		{"later life, other agent", &tree{agent: ID{100, 7}}, []int{103, 104}},
		{"no agent", &tree{}, []int{103, 104}},
	} {
		var got []int
		for _, id := range ids(tt.tree.pick(table, marked)) {
			got = append(got, id.Pid)
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
