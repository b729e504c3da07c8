package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// recipes are the escapes that an agent's child may try, with the number of processes in each.
var recipes = map[string]int{
	"child":      1,  // stays in the group
	"setgroup":   1,  // a group of its own
	"setsid":     1,  // a session of its own
	"doublefork": 1,  // its parent ends
	"nohup":      1,  // ignores the hangup, its parent ends
	"daemon":     1,  // new session twice, parent ends, no descriptors, other folder
	"pipe":       1,  // keeps the agent's output open in another session
	"trap":       1,  // ignores interrupt and TERM
	"deaf":       1,  // ignores everything that can be ignored
	"storm":      12, // two levels of three children, every other in a new session
	"exec":       1,  // the agent replaces itself by another program, its child stays
	"cleared":    1,  // no environment, so no mark; new session, parent ended
	"subreaper":  2,  // collects its own orphans, without environment
	"stopped":    1,  // can act on no signal but KILL
	"relay":      1,  // forks and ends for ever, each in a new session, without mark
}

// escape is the agent: it starts the recipe's processes, says "ready" when they are there, and
// then exits or stays.
func escape(dir, recipe, then string) {
	w := probes(dir)
	own := w.join()
	count := 1 + recipes[recipe]
	switch recipe {
	case "child", "trap", "deaf", "stopped", "exec":
		spawn(dir, attrOf(recipe), nil, recipe)
	case "setgroup":
		spawn(dir, &syscall.SysProcAttr{Setpgid: true}, nil, "plain")
	case "setsid", "pipe":
		spawn(dir, &syscall.SysProcAttr{Setsid: true}, nil, recipe)
	case "doublefork", "nohup":
		spawn(dir, nil, nil, "fork", recipe)
	case "daemon":
		spawn(dir, &syscall.SysProcAttr{Setsid: true}, nil, "fork", "daemon")
	case "cleared":
		spawn(dir, &syscall.SysProcAttr{Setsid: true}, []string{}, "fork", "plain")
	case "subreaper":
		spawn(dir, &syscall.SysProcAttr{Setsid: true}, []string{}, "subreaper")
	case "storm":
		for range 3 {
			spawn(dir, nil, nil, "storm", "1")
		}
	case "relay":
		spawn(dir, &syscall.SysProcAttr{Setsid: true}, []string{}, "relay")
	}
	if recipe == "trap" || recipe == "deaf" {
		ignore(recipe)
	}
	for {
		all, err := w.traces()
		must(err)
		if len(all) >= count {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if recipe == "exec" {
		self, err := os.Executable()
		must(err)
		must(syscall.Exec(self, []string{self, "fake-agent", "branch", dir, "successor", then}, os.Environ()))
	}
	fmt.Println("ready")
	switch then {
	case "exit":
		syscall.Exit(0)
	case "stay":
		w.live(own)
	}
}

func attrOf(recipe string) *syscall.SysProcAttr {
	if recipe == "stopped" {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return nil
}

// spawn starts a branch of the tree and doesn't wait for it. A nil env is inherited.
func spawn(dir string, attr *syscall.SysProcAttr, env []string, what ...string) {
	self, err := os.Executable()
	must(err)
	cmd := exec.Command(self, append([]string{"fake-agent", "branch", dir}, what...)...)
	cmd.SysProcAttr, cmd.Env = attr, env
	if what[0] == "pipe" {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	must(cmd.Start())
}

// branch is a process below the agent.
func branch(dir, what string, args []string) {
	w := probes(dir)
	switch what {
	case "fork": // makes the next one and ends
		env := os.Environ() // empty for a cleared one
		if args[0] == "daemon" {
			must(os.Chdir("/"))
			spawn(dir, &syscall.SysProcAttr{Setsid: true}, env, "plain")
			return
		}
		spawn(dir, nil, env, args[0])
		return
	case "relay":
		relay(w)
	case "storm":
		level, err := strconv.Atoi(args[0])
		must(err)
		for i := range 3 {
			if level > 0 {
				spawn(dir, &syscall.SysProcAttr{Setsid: i%2 == 0}, nil, "storm", strconv.Itoa(level-1))
			}
		}
	case "subreaper":
		must(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		spawn(dir, nil, []string{}, "fork", "plain")
	case "trap", "deaf", "nohup":
		ignore(what)
	case "successor":
		own := w.join()
		fmt.Println("ready")
		if args[0] == "exit" {
			syscall.Exit(0)
		}
		w.live(own)
	}
	own := w.join()
	if what == "stopped" {
		must(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	}
	w.live(own)
}

func ignore(recipe string) {
	switch recipe {
	case "nohup":
		signal.Ignore(syscall.SIGHUP)
	case "trap":
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	case "deaf":
		for sig := syscall.Signal(1); sig < 65; sig++ {
			if sig != syscall.SIGURG { // the runtime's own
				signal.Ignore(sig)
			}
		}
	}
}

// relay hands over to a shell script that restarts itself in another session and ends, for
// ever; descriptor 3, the witness lock, is passed along.
func relay(w probes) {
	script := filepath.Join(string(w), "relay.sh")
	must(os.WriteFile(script, []byte("setsid /bin/sh \"$0\" & exit\n"), 0o600))
	lock, err := os.OpenFile(w.lockFile(), os.O_RDWR, 0)
	must(err)
	must(unix.Flock(int(lock.Fd()), unix.LOCK_SH))
	w.join()
	cmd := exec.Command("/bin/sh", script)
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	must(cmd.Start())
	syscall.Exit(0)
}

// errCancelled is a cause such as a worker gives.
var errCancelled = errors.New("cancelled by a person")

// startEscape starts a recipe here and returns when all its processes are there.
func startEscape(t *testing.T, ctx context.Context, recipe, then string) (*Process, probes, *collected) {
	t.Helper()
	w := probes(t.TempDir())
	out := newCollected()
	spec := testSpec(agentArgv("escape", string(w), recipe, then)...)
	spec.Deadline = BootNow().Add(time.Hour)
	p, err := Start(ctx, spec, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-out.ready:
	case <-p.Done():
		if !out.found {
			t.Fatalf("the agent ended before it was ready: %+v\n%s", p.Wait(), out.all.String())
		}
	case <-time.After(patience):
		t.Fatal("the agent did not get ready")
	}
	return p, w, out
}

// After every kind of ending and every escape nothing is left: according to the lock that the
// processes hold, their pids and the mark.
func TestEscape_NobodyOutlivesTheSession(t *testing.T) {
	t.Parallel()
	for recipe := range recipes {
		t.Run("cancel/"+recipe, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			p, w, _ := startEscape(t, ctx, recipe, "stay")
			cancel(errCancelled)
			await(t, "the end", p.Done())
			if !w.empty(t) {
				t.Error("somebody was alive when Done was closed")
			}
			w.nobody(t, p.Record().Mark)
			r := p.Wait()
			if !errors.Is(r.Cause, errCancelled) || len(r.Survivors) > 0 || r.OutputCut {
				t.Errorf("result %+v", r)
			}
		})
		t.Run("deadline/"+recipe, func(t *testing.T) {
			t.Parallel()
			p, w, _ := startEscape(t, t.Context(), recipe, "stay")
			deadline := BootNow().Add(testStages.Total() + 50*time.Millisecond)
			if err := p.SetDeadline(deadline); err != nil {
				t.Fatal(err)
			}
			await(t, "the end", p.Done())
			if !w.empty(t) {
				t.Error("somebody was alive when Done was closed")
			}
			if last := w.nobody(t, p.Record().Mark); last >= deadline || BootNow() >= deadline {
				t.Errorf("last sign of life %v after the deadline", last.Sub(deadline))
			}
			if r := p.Wait(); !errors.Is(r.Cause, ErrDeadline) || len(r.Survivors) > 0 {
				t.Errorf("result %+v", r)
			}
		})
		t.Run("exit/"+recipe, func(t *testing.T) {
			t.Parallel()
			p, w, _ := startEscape(t, t.Context(), recipe, "exit")
			await(t, "the end", p.Done())
			if !w.empty(t) {
				t.Error("somebody was alive when Done was closed")
			}
			w.nobody(t, p.Record().Mark)
			if r := p.Wait(); !r.Success() || r.Swept == 0 || len(r.Survivors) > 0 || r.OutputCut {
				t.Errorf("result %+v", r)
			}
		})
		t.Run("workerkilled/"+recipe, func(t *testing.T) {
			t.Parallel()
			w := probes(t.TempDir())
			worker := startWorker(t, "run", agentArgv("escape", string(w), recipe, "stay"))
			worker.kill()
			w.nobody(t, worker.record.Mark)
		})
	}
}

// A stopped worker can't keep its agent alive past the deadline. contract 4.7
func TestDeadline_HoldsWhileTheWorkerIsStopped(t *testing.T) {
	t.Parallel()
	for _, recipe := range []string{"deaf", "daemon", "pipe"} {
		t.Run(recipe, func(t *testing.T) {
			t.Parallel()
			w := probes(t.TempDir())
			worker := startWorker(t, "run", agentArgv("escape", string(w), recipe, "stay"))
			deadline := BootNow().Add(testStages.Total() + 500*time.Millisecond)
			fmt.Fprintln(worker.stdin, int64(deadline))
			worker.next(t) // it is with the guardian
			if err := worker.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			last := w.nobody(t, worker.record.Mark)
			if now := BootNow(); now >= deadline || last >= deadline {
				t.Errorf("dead %v after the deadline, last sign of life %v", now.Sub(deadline), last.Sub(deadline))
			}
			if err := worker.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if r := worker.next(t); r.Cause != ErrDeadline.Error() {
				t.Errorf("the worker woke up and said %q", r.Cause)
			}
		})
	}
}

// A signal to the worker's group, as from a terminal, doesn't reach the guardian, and a signal
// to the guardian itself doesn't end it.
func TestGuardian_IsDeafToSignals(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	p, w, _ := startEscape(t, ctx, "deaf", "stay")
	guardian := p.Record().Guardian
	for _, sig := range deafTo {
		if err := syscall.Kill(guardian.Pid, sig.(syscall.Signal)); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := lookup(guardian.Pid); err != nil || e.session != guardian.Pid || e.group != guardian.Pid {
		t.Errorf("the guardian is in session %d, group %d (%v)", e.session, e.group, err)
	}
	cancel(errCancelled)
	await(t, "the end", p.Done())
	w.nobody(t, p.Record().Mark)
	if r := p.Wait(); !errors.Is(r.Cause, errCancelled) || r.Stage != StageKill || r.Interrupted.IsZero() {
		t.Errorf("the guardian did not do its work: %+v", r)
	}
}
