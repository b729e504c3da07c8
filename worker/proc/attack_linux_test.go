package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// attacks are what an agent may do to the guardian above it, which runs as the same user. Each
// takes the guardian's id; one that is refused, as it is for anybody who may not trace the
// guardian, ends the agent instead.
var attacks = map[string]func(guardian int){
	"kill":       func(g int) { hit(g, syscall.SIGKILL) },
	"kill group": func(g int) { hit(-g, syscall.SIGKILL) },
	"stop":       func(g int) { hit(g, syscall.SIGSTOP) },
	"stop group": func(g int) { hit(-g, syscall.SIGSTOP) },
	"stop, then kill": func(g int) {
		hit(g, syscall.SIGSTOP)
		time.Sleep(50 * time.Millisecond)
		hit(g, syscall.SIGKILL)
	},
	"crash": func(g int) { hit(g, syscall.SIGSEGV) },
	"every signal": func(g int) {
		for sig := syscall.Signal(1); sig <= 64; sig++ {
			hit(g, sig)
		}
	},
	"trace": func(g int) {
		runtime.LockOSThread()
		refused(syscall.PtraceAttach(g)) // it is stopped as long as this thread exists
	},
	"outlive, then kill": func(g int) {
		// The kernel is asked not to end this process with its parent.
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0, 0)
		hit(g, syscall.SIGKILL)
	},
	"no processor": func(g int) { limit(g, unix.RLIMIT_CPU, 0) },
	"no memory":    func(g int) { limit(g, unix.RLIMIT_AS, 4096) },
	"no files":     func(g int) { limit(g, unix.RLIMIT_NOFILE, 0) },
	"no files, then leave": func(g int) {
		limit(g, unix.RLIMIT_NOFILE, 0)
		syscall.Exit(0)
	},
	"orders opened": func(g int) {
		_, err := os.Open(filepath.Join("/proc", strconv.Itoa(g), "fd", strconv.Itoa(fdOrders)))
		refused(err)
	},
	"orders taken away": func(g int) { take(g, fdOrders) },
	"reports garbled": func(g int) {
		_, _ = borrow(g, fdReports).Write([]byte("no report at all"))
	},
	"reports kept open, then kill": func(g int) {
		stayOpen = append(stayOpen, borrow(g, fdReports))
		hit(g, syscall.SIGKILL)
	},
}

var stayOpen []*os.File

func refused(err error) {
	if err != nil {
		syscall.Exit(0)
	}
}

func hit(pid int, sig syscall.Signal) { _ = syscall.Kill(pid, sig) }

// halt stops a process and returns once it has stopped: a thread that runs at this moment goes
// on for a while.
func halt(t *testing.T, pid int) {
	t.Helper()
	hit(pid, syscall.SIGSTOP)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if e, err := lookup(pid); err == nil && e.stopped {
			return
		}
	}
	t.Fatal("it doesn't stop")
}

func limit(pid, which int, most uint64) {
	_ = unix.Prlimit(pid, which, &unix.Rlimit{Cur: most, Max: most}, nil)
}

// borrow shares a descriptor of another process, which takes the right to trace it.
func borrow(pid, fd int) *os.File {
	p, err := unix.PidfdOpen(pid, 0)
	refused(err)
	got, err := unix.PidfdGetfd(p, fd, 0)
	refused(err)
	return os.NewFile(uintptr(got), "borrowed")
}

// take reads what was meant for the guardian, for ever. Many do so, since the guardian reads
// as well: what it gets keeps it working.
func take(g, fd int) {
	shared := borrow(g, fd)
	for range 64 {
		go func() {
			for b := make([]byte, 1024); ; {
				if _, err := shared.Read(b); err != nil {
					return
				}
			}
		}()
	}
}

// attack is an agent that has children trying to escape and turns on its guardian.
func attack(dir, recipe, name string) {
	guardian := os.Getppid()
	escape(dir, recipe, "go on")
	attacks[name](guardian)
	probes(dir).live(probes(dir).join())
}

// startAttack starts one and returns when its processes exist. It returns no process when the
// guardian was gone before the agent was known to have started.
func startAttack(t *testing.T, recipe, name string) (*Process, probes) {
	t.Helper()
	w := probes(t.TempDir())
	out := newCollected()
	spec := testSpec(agentArgv("attack", string(w), recipe, name)...)
	spec.Deadline = BootNow().Add(time.Hour)
	p, err := Start(t.Context(), spec, out.sink)
	if errors.Is(err, ErrGuardianLost) {
		w.nobody(t, spec.Record.Mark)
		return nil, w
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-out.ready:
	case <-p.Done():
		if !out.found {
			t.Fatalf("the agent ended at once: %+v, output %s", p.Wait(), &out.all)
		}
	}
	return p, w
}

// attackBound is how long it may take at most to end everything once a guardian has been
// attacked, on a machine that leaves it no time at all: its silence is waited for, it is
// checked a second time, and KILL takes its time.
const attackBound = livenessEvery + pingEvery + starvedPatience + secondLook + 5*time.Second + killPatience

// attackRounds are the pairs of attack and escape that are tried: each of both at least once,
// all of them when STINT_TEST_ATTACKS is "all".
func attackRounds() [][2]string {
	all := os.Getenv("STINT_TEST_ATTACKS") == "all"
	ways := slices.DeleteFunc(names(recipes), func(way string) bool { return way == "exec" }) // it ends the attacker
	var out [][2]string
	for i, attack := range names(attacks) {
		for j, way := range ways {
			if all || j == i%len(ways) || attack == "kill" {
				out = append(out, [2]string{attack, way})
			}
		}
	}
	return out
}

func names[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Whatever an agent does to its guardian, its session ends, and nothing of it is left, even
// with no deadline near and nobody asking. contract 10.7
func TestGuardianAttacked_NothingOfTheSessionIsLeft(t *testing.T) {
	t.Parallel()
	for _, round := range attackRounds() {
		name, recipe := round[0], round[1]
		t.Run(name+"/"+recipe, func(t *testing.T) {
			t.Parallel()
			p, w := startAttack(t, recipe, name)
			if p == nil {
				return
			}
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			select {
			case <-p.Done():
			case <-ctx.Done():
				syscall.Kill(p.Record().Guardian.Pid, syscall.SIGKILL)
				t.Fatal("the session goes on")
			}
			if !w.empty(t) {
				t.Error("somebody was alive when Done was closed")
			}
			w.nobody(t, p.Record().Mark)
			took := time.Since(begun)
			t.Logf("nobody was left %v after the attack", took.Round(time.Millisecond))
			if took > attackBound {
				t.Errorf("that is longer than %v, which it takes at most", attackBound)
			}
			r := p.Wait()
			if len(r.Survivors) > 0 || !r.Success() && !errors.Is(r.Cause, ErrGuardianLost) {
				t.Errorf("result %+v", r)
			}
			if r.Success() && r.Swept == 0 {
				t.Error("the agent went and what it had left was not counted")
			}
		})
	}
}

// An agent that ends its guardian and its worker at once is found by the worker's next
// process, whatever it did to its environment.
func TestGuardianAndWorkerKilled_NextLifeFindsAll(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for _, recipe := range []string{"child", "daemon", "cleared", "subreaper", "relay", "deaf"} { // a stopped one is hung up
			t.Run(recipe+"/"+unix.SignalName(sig), func(t *testing.T) {
				t.Parallel()
				w := probes(t.TempDir())
				worker := startWorker(t, "run", agentArgv("escape", string(w), recipe, "stay"))
				halt(t, worker.cmd.Process.Pid) // neither can act
				hit(worker.record.Guardian.Pid, sig)
				worker.kill()
				swept, err := Sweep(t.Context(), worker.record, testStages)
				if err != nil {
					t.Fatal(err)
				}
				w.nobody(t, worker.record.Mark)
				if swept.Found == 0 {
					t.Error("nothing was found")
				}
			})
		}
	}
}

// A sweep that can't see whether processes are left doesn't say that none is.
func TestSweep_SaysThatItCouldNotLook(t *testing.T) {
	t.Parallel()
	for _, blind := range []string{"no files", "few files"} {
		t.Run(blind, func(t *testing.T) {
			t.Parallel()
			w := probes(t.TempDir())
			worker := startWorker(t, "run", agentArgv("escape", string(w), "daemon", "stay"))
			halt(t, worker.cmd.Process.Pid)
			hit(worker.record.Guardian.Pid, syscall.SIGKILL)
			worker.kill()
			record, err := json.Marshal(worker.record)
			must(err)
			self, err := os.Executable()
			must(err)
			said, err := exec.CommandContext(t.Context(), self, "fake-worker", "sweep", blind, string(record)).CombinedOutput()
			if err != nil || !strings.Contains(string(said), "too many open files") {
				t.Errorf("a worker that can open no files says %q (%v)", said, err)
			}
			if _, err := Sweep(t.Context(), worker.record, testStages); err != nil {
				t.Fatal(err)
			}
			w.nobody(t, worker.record.Mark)
		})
	}
}

// sweepBlind sweeps as a worker that may open no files, or one at a time.
func sweepBlind(how, record string) {
	var rec Record
	must(json.Unmarshal([]byte(record), &rec))
	boot, err := os.Open("/proc/self/fd") // from now on the runtime's poller exists
	must(err)
	most := uint64(boot.Fd()) // the lowest free number
	boot.Close()
	if how == "few files" {
		most++ // enough for the table itself, and for no process in it
	}
	rec.Boot = bootID()
	limit(os.Getpid(), unix.RLIMIT_NOFILE, most)
	stages := testStages
	stages.Kill = 100 * time.Millisecond
	_, err = Sweep(context.Background(), rec, stages)
	fmt.Print(err)
}
