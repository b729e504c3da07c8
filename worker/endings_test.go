package worker

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/worker/proc"
	"stint/worker/workertest"
)

// stamping starts an agent that writes time stamps and waits until it runs.
func (w *fixture) stamping(slug, play string) (a api.Agent, id api.SessionID, file string) {
	w.Helper()
	return w.stampingWith(nil, slug, play)
}

func (w *fixture) stampingWith(edit func(*api.AgentInput), slug, play string) (a api.Agent, id api.SessionID, file string) {
	w.Helper()
	file = filepath.Join(w.TempDir(), "stamps")
	a = w.agentWith(slug, edit, workertest.Agent(w, play, file)...)
	id = w.trigger(a, "")
	w.eventually("the agent runs", func() bool { return len(workertest.Lives(w, file)) > 0 })
	return a, id, file
}

// quiet fails the test if an agent writes stamps from now on.
func (w *fixture) quiet(file string) {
	w.Helper()
	now := proc.BootNow()
	lives := workertest.Lives(w, file)
	w.untilDead(lives...)
	after := workertest.Lives(w, file)
	if len(after) != len(lives) || after[len(after)-1].Last > now {
		w.Error("the agent still ran")
	}
}

// untilDead waits until none of these agents' processes is left.
func (w *fixture) untilDead(lives ...workertest.AgentRun) {
	w.Helper()
	for _, l := range lives {
		w.eventually("the agent is gone", func() bool { return errors.Is(syscall.Kill(l.Pid, 0), syscall.ESRCH) })
	}
}

func TestEnd_CancelEndsTheCommandAndReportsItDrained(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	a, id, file := w.stamping("victim", "deaf")
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
	w.quiet(file)
	if s := w.untilStatus(id, api.Cancelled); s.Result != "" {
		t.Errorf("a cancelled session has the result %q", s.Result)
	}
}

// What a command prints while it is being cancelled is dropped without a warning.
func TestEnd_CancelOfAPrintingCommandIsQuiet(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var warned bytes.Buffer
	o := w.options()
	o.Log = slog.New(slog.NewTextHandler(&warned, &slog.HandlerOptions{Level: slog.LevelWarn}))
	g := w.start(o)
	a := w.agent("chatty", "sh", "-c", `trap '' INT; while :; do echo on and on; sleep 0.01; done`)
	id := w.trigger(a, "")
	w.eventually("it prints", func() bool { return w.text(id, "stdout") != "" })
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
	if g.end(); warned.Len() > 0 {
		t.Errorf("it warned:\n%s", &warned)
	}
}

func TestEnd_StopLetsTheCommandEndAndCompletes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agent("gentle", "sh", "-c", `trap 'echo bye; exit 7' INT; echo ready; while :; do sleep 0.05; done`)
	w.start(w.options())
	id := w.trigger(a, "")
	w.eventually("it runs", func() bool { return w.text(id, "stdout") != "" })
	for range 3 { // however often it is pressed
		_, err := w.client.StopSession(t.Context(), id)
		w.must(err)
	}
	s := w.untilStatus(id, api.Complete)
	if s.Outcome != outcomeStopped || w.text(id, "stdout") != "ready\nbye\n" {
		t.Errorf("outcome %q, output %q", s.Outcome, w.text(id, "stdout"))
	}
}

func TestEnd_CommandThatHearsNoSignalIsKilled(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start(w.options())
	_, id, file := w.stamping("stubborn", "deaf")
	_, err := w.client.StopSession(t.Context(), id)
	w.must(err)
	w.untilStatus(id, api.Complete)
	w.quiet(file)
	var words string
	for _, it := range w.items(id) {
		if it.Kind == api.ItemStatus {
			words += it.Text
		}
	}
	for _, step := range []string{"interrupted", "asked to terminate", "killed"} {
		if !strings.Contains(words, step) {
			t.Errorf("the session's status lines don't say %q: %s", step, words)
		}
	}
}

func TestEnd_ShutdownGivesTheSessionBackInTime(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	c := w.spawn(nil)
	a, id, file := w.stamping("shift", "deaf")
	began := time.Now()
	c.signal(syscall.SIGTERM)
	w.untilStatus(id, api.Queued)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the session was back after %v", took)
	}
	w.quiet(file)
	if code := c.wait(); code != ExitOK {
		t.Errorf("exit code %d", code)
	}
	workers, err := w.client.AgentWorkers(t.Context(), a.Slug, api.Page{})
	w.must(err)
	if workers.Items[0].State != api.Offline {
		t.Errorf("after its goodbye the worker is %s", workers.Items[0].State)
	}
	if s := w.untilStatus(id, api.Queued); s.Lapses != 0 {
		t.Errorf("the shutdown counted as %d lapses", s.Lapses)
	}
}

func TestEnd_ShutdownWaitsForASlowCoordinator(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	g := w.start(w.options())
	_, id, _ := w.stamping("slow", "stamp")
	w.proxy.Rule(func(call string, _ int) workertest.Fault {
		if call == "POST release" {
			return workertest.Fault{Delay: 3 * time.Second}
		}
		return workertest.Fault{}
	})
	if code := g.end(); code != ExitOK {
		t.Errorf("exit code %d: %v", code, g.err)
	}
	w.untilStatus(id, api.Queued)
}

func TestEnd_ShutdownWithNobodyThereLeavesTheReportForTheNextStart(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Goodbye = 300 * time.Millisecond
	g := w.start(o)
	a, id, file := w.stamping("later", "stamp")
	w.proxy.Cut()
	began := time.Now()
	g.end()
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the shutdown took %v", took)
	}
	w.quiet(file)
	w.proxy.Mend()
	w.start(w.options())
	w.eventually("it runs again", func() bool { return len(workertest.Lives(t, file)) == 2 })
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
	workertest.Apart(t, workertest.Lives(t, file))
}

func TestEnd_DeletedRecordEndsAWorkerThatIsNotToRegister(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *fixture, o Options) (*guest, string){
		"idle": func(w *fixture, o Options) (*guest, string) {
			w.agent("mine", "true")
			return w.start(o), ""
		},
		"busy": func(w *fixture, o Options) (*guest, string) {
			file := filepath.Join(w.TempDir(), "stamps")
			w.trigger(w.agent("mine", workertest.Agent(w, "stamp", file)...), "")
			g := w.start(o)
			w.eventually("the agent runs", func() bool { return len(workertest.Lives(w, file)) > 0 })
			return g, file
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			o := w.options()
			o.Agents = []string{"mine"}
			g, file := prepare(w, o)
			worker := w.onlyWorker("mine", 0)
			w.must(w.client.DeleteWorker(t.Context(), worker.AgentID, worker.ID))
			if code := g.wait(); code != ExitNoRecord || !errors.Is(g.err, ErrNoRecord) {
				t.Errorf("exit code %d, %v", code, g.err)
			}
			if file != "" {
				w.quiet(file)
			}
			// It stays away until it is asked to register.
			again := w.start(o)
			if code := again.wait(); code != ExitNoRecord {
				t.Errorf("exit code of the second start %d, %v", code, again.err)
			}
			o.Register = true
			w.start(o)
			w.onlyWorker("mine", worker.ID)
		})
	}
}

// onlyWorker waits until an agent has exactly one worker record, a different one from not.
func (w *fixture) onlyWorker(agent string, not api.WorkerID) (out api.Worker) {
	w.Helper()
	w.eventually("the worker is registered", func() bool {
		list, err := w.client.AgentWorkers(w.Context(), agent, api.Page{})
		w.must(err)
		if len(list.Items) == 1 {
			out = list.Items[0]
		}
		return len(list.Items) == 1 && out.ID != not
	})
	return out
}

func TestEnd_DeletedRecordOfOneLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	one, two := w.agent("one", "true"), w.agent("two", "true")
	o := w.options()
	o.Agents = []string{"one", "two"}
	w.start(o)
	w.untilStatus(w.trigger(one, ""), api.Complete)
	list, err := w.client.AgentWorkers(t.Context(), "one", api.Page{})
	w.must(err)
	w.must(w.client.DeleteWorker(t.Context(), one.ID, list.Items[0].ID))
	w.untilStatus(w.trigger(two, ""), api.Complete)
	w.eventually("the deleted one stays away", func() bool {
		list, err := w.client.AgentWorkers(t.Context(), "one", api.Page{})
		w.must(err)
		return len(list.Items) == 0
	})
}

func TestEnd_SecondProcessOnTheDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agent("first", "true")
	w.start(w.options())
	w.untilStatus(w.trigger(a, ""), api.Complete)
	code, err := Run(t.Context(), w.options())
	if code != ExitConflict || !errors.Is(err, ErrAlreadyRunning) || !strings.Contains(err.Error(), "WORKER_ALREADY_RUNNING") {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestEnd_StateIsPrivate(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a := w.agent("priv", "true")
	o := w.options()
	w.must(os.MkdirAll(o.StateDir, 0o755))
	w.start(o)
	w.untilStatus(w.trigger(a, ""), api.Complete)
	w.must(filepath.Walk(o.StateDir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	}))
}

func TestEnd_AnotherAccountNeedsLeave(t *testing.T) {
	t.Parallel()
	w, other := newFixture(t), newFixture(t)
	g := w.start(w.options())
	w.untilStatus(w.trigger(w.agent("here", "true"), ""), api.Complete)
	g.end()
	o := other.options()
	o.StateDir = w.options().StateDir
	code, err := Run(t.Context(), o)
	if code != ExitNoRecord || !errors.Is(err, ErrAccountChanged) {
		t.Errorf("exit code %d, %v", code, err)
	}
	o.Register = true
	other.start(o)
	other.untilStatus(other.trigger(other.agent("there", "true"), ""), api.Complete)
}

func TestEnd_BadTokenIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Token = "wrong"
	if code, err := Run(t.Context(), o); code != ExitNotSigned || api.CodeOf(err) != api.CodeUnauthenticated {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestEnd_UnknownAgentIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	o := w.options()
	o.Agents = []string{"nobody"}
	if code, err := Run(t.Context(), o); code != ExitNoRecord || api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestClaimContext_SleepPastTheLeaseEndsBeforeAnyOutputIsTaken(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	slept := new(sleeper)
	o := w.options()
	o.boot = slept.now
	w.start(o)
	// The real clock's timer doesn't notice this sleep: the check before each renewal does.
	a, id, file := w.stampingWith(func(in *api.AgentInput) { in.LeaseSeconds = 30 }, "sleepy", "stamp")
	w.proxy.Rule(func(call string, _ int) workertest.Fault { // on waking, the network isn't back yet
		return workertest.Fault{Drop: call == "POST renew" || call == "POST heartbeat"}
	})
	slept.sleep(time.Hour)
	w.untilDead(workertest.Lives(t, file)...)
	w.proxy.Rule(nil)
	w.eventually("it runs again", func() bool { return len(workertest.Lives(t, file)) == 2 })
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
	workertest.Apart(t, workertest.Lives(t, file))
}

// sleeper is a boot-time clock that can be moved on, as if by sleep.
type sleeper struct{ by atomic.Int64 }

func (s *sleeper) now() proc.BootTime    { return proc.BootNow().Add(time.Duration(s.by.Load())) }
func (s *sleeper) sleep(d time.Duration) { s.by.Add(int64(d)) }

// An agent runs as the same user as the process that guards it. contract 10.7
func TestEnd_CommandThatTurnsOnItsGuardianFailsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, signal := range []string{"KILL", "STOP"} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.start(w.options())
			// What it leaves behind has no mark, no parent and its own process session.
			id := w.trigger(w.agent("traitor", "sh", "-c", `env -i setsid sh -c 'sleep 1001 & echo $! >escaped'
				until [ -s escaped ]; do sleep 0.01; done; echo "left $(cat escaped)"; kill -`+signal+` $PPID; sleep 1000`), "")
			s := w.untilStatus(id, api.Failed)
			if s.Error == nil || s.Error.Code != CodeCrashed || !strings.Contains(s.Error.Message, "guards") {
				t.Errorf("it ended with %+v", s.Error)
			}
			var pid int
			if _, err := fmt.Sscanf(w.text(id, "stdout"), "left %d", &pid); err != nil {
				t.Fatalf("it printed %q: %v", w.text(id, "stdout"), err)
			}
			w.eventually("what it left is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		})
	}
}
