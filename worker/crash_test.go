package worker

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/worker/workertest"
)

// killPoints are the steps of a session between which the worker may be killed, and whether
// the command's result is safe by then, so that it must not run again.
func killPoints() []struct {
	point string
	on    int
	safe  bool
} {
	return []struct {
		point string
		on    int
		safe  bool
	}{
		{"register", 1, false}, // nothing is known about the record yet
		{"registered", 1, false},
		{"claim", 1, false},
		{"claimed", 1, false}, // granted, not journaled
		{"journaled", 1, false},
		{"start", 1, false},
		{"started", 1, false}, // runs, its ids not journaled
		{"recorded", 1, false},
		{"output stored", 1, false},
		{"sent item", 1, false},
		{"beat", 3, false},
		{"exited", 1, false},
		{"conclude", 1, false},
		{"concluded", 1, true}, // the result is on disk
		{"send complete", 1, true},
		{"sent complete", 1, true}, // accepted, but not noted
		{"drop", 1, true},
		{"dropped", 1, true},
	}
}

func TestCrash_AtEveryStepTheNextLifeFinishesTheSession(t *testing.T) {
	t.Parallel()
	for _, k := range killPoints() {
		t.Run(strings.ReplaceAll(k.point, " ", "-"), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			stamps := filepath.Join(t.TempDir(), "stamps")
			a := w.agent("steady", workertest.Agent(t, "stamp", stamps, "60")...)
			id := w.trigger(a, "")
			first := w.spawn(func(c *childConfig) { c.KillAt, c.KillOn = k.point, k.on })
			if code := first.wait(); code != -1 {
				t.Fatalf("the worker was to be killed at %q and ended with %d", k.point, code)
			}
			registered := w.proxy.Count("POST workers")
			second := w.spawn(nil)
			w.eventually("the next life is there", func() bool { return w.proxy.Count("POST workers") > registered })
			s := w.untilStatus(id, api.Complete)
			w.untilDrained(a)
			lives := workertest.Lives(t, stamps)
			workertest.Apart(t, lives)
			if k.safe && len(lives) != 1 {
				t.Errorf("it ran %d times though its result was safe", len(lives))
			}
			if n := len(lives); n == 0 || n > 2 || !lives[n-1].Ended {
				t.Errorf("lives %+v", lives)
			}
			if s.Lapses > 0 {
				t.Errorf("%d lapses: the next life was too late", s.Lapses)
			}
			if got := w.text(id, "stdout"); !strings.HasSuffix(got, "stamping\ndone\n") {
				t.Errorf("output %q", got)
			}
			w.eventually("nothing is left to report", func() bool { return w.inState() == [2]int{} })
			second.signal(syscall.SIGTERM)
			if code := second.wait(); code != ExitOK {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestCrash_KilledWorkersCommandEndsAndRunsAgainOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	first := w.spawn(nil)
	a, id, file := w.stamping("orphan", "deaf")
	first.signal(syscall.SIGKILL)
	first.wait()
	began := time.Now()
	w.spawn(nil)
	w.eventually("it runs again", func() bool { return len(workertest.Lives(t, file)) == 2 })
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it ran again after %v", took)
	}
	workertest.Apart(t, workertest.Lives(t, file))
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
	w.quiet(file)
}

func TestCrash_KilledWorkerWithoutASuccessorLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	first := w.spawn(nil)
	_, id, file := w.stampingWith(brief, "alone", "deaf")
	first.signal(syscall.SIGKILL)
	first.wait()
	w.untilDead(workertest.Lives(t, file)...)
	w.untilStatus(id, api.Stale)
}

func TestCrash_StoppedWorkerCannotKeepItsCommandAlive(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	first := w.spawn(nil)
	a, id, file := w.stampingWith(brief, "frozen", "deaf")
	first.signal(syscall.SIGSTOP)
	second := w.options()
	second.StateDir, second.Name = filepath.Join(w.dir, "second"), "w2"
	g := w.start(second)
	w.eventually("the session runs elsewhere", func() bool { return len(workertest.Lives(t, file)) >= 2 })
	first.signal(syscall.SIGCONT)
	workertest.Apart(t, workertest.Lives(t, file))
	// The worker that woke up reports nothing of what it lost, and goes on serving.
	g.end()
	w.eventually("the one that woke takes the session", func() bool { return len(workertest.Lives(t, file)) >= 3 })
	workertest.Apart(t, workertest.Lives(t, file))
	_, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	w.untilDrained(a)
}

func TestCrash_CommandThatKillsItsWorkerFailsInTheEnd(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	// The guardian's parent is the worker.
	a := w.agentWith("poison", func(in *api.AgentInput) { in.MaxLapses = 100 },
		"sh", "-c", `guardian=$PPID; worker=$(awk '{print $4}' /proc/$guardian/stat); kill -9 $worker; sleep 600`)
	id := w.trigger(a, "")
	for lives := 1; ; lives++ {
		c := w.spawn(nil)
		ended := make(chan int, 1)
		go func() { ended <- c.wait() }()
		over := false
		w.eventually("the worker is killed or the session over", func() bool {
			s, err := w.client.Session(t.Context(), id)
			w.must(err)
			over = s.Status.Terminal()
			return over || len(ended) > 0
		})
		if over {
			break
		}
		if lives > maxCrashes+1 {
			t.Fatalf("%d workers were killed", lives)
		}
	}
	s := w.untilStatus(id, api.Failed)
	if s.Error == nil || s.Error.Code != CodeCrashed || !strings.Contains(s.Error.Message, fmt.Sprint(maxCrashes)) {
		t.Errorf("ended with %+v", s.Error)
	}
}
