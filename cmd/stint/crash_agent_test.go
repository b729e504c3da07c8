package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stint/api"
	"stint/worker/proc"
)

const probeArg = "witness-agent"

// The ways in which a witness behaves.
const (
	polite   = "polite"   // ends at the first signal
	deaf     = "deaf"     // ignores interrupt and TERM
	escaping = "escaping" // leaves a child in another process session that ignores signals and keeps working
	stray    = "stray"    // is that child
)

// probeMain turns the process into an agent that records what it does, if a command of
// witnesses started it, and then doesn't return.
//
// Its arguments are its way, a folder and how often it stamps. In the folder it appends to a
// file named by its session, one write a line: what, fence, pid, boot time. It holds a lock in
// the folder as long as it runs, and so does whatever it starts: an exclusive lock is granted
// only when all of them are dead.
func probeMain() {
	if len(os.Args) != 5 || os.Args[1] != probeArg {
		return
	}
	way, dir := os.Args[2], os.Args[3]
	limit, err := strconv.Atoi(os.Args[4])
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(90)
		}
	}
	check(err)
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	check(err)
	check(unix.Flock(int(lock.Fd()), unix.LOCK_SH))
	file, err := os.OpenFile(filepath.Join(dir, os.Getenv("STINT_SESSION")), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(err)
	fence := os.Getenv("STINT_FENCE")
	stamp := func(what string) {
		_, err := fmt.Fprintf(file, "%s %s %d %d\n", what, fence, os.Getpid(), proc.BootNow())
		check(err)
	}
	if way == deaf || way == stray {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	}
	stamp("start")
	if way == escaping {
		child := exec.Command(os.Args[0], probeArg, stray, dir, strconv.Itoa(10*limit))
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		check(child.Start())
	}
	fmt.Println("begun", fence)
	for range min(limit, 3000) {
		time.Sleep(10 * time.Millisecond)
		stamp("tick")
	}
	if way != stray {
		stamp("end")
		fmt.Println("done", fence)
	}
	os.Exit(0)
}

// probes is the folder of agents that record what they do.
type probes struct {
	*home
	dir string
}

func (w probes) command(way string, stamps int) []string {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	return []string{self, probeArg, way, w.dir, strconv.Itoa(stamps)}
}

// agentRun is what the processes of one claim on a session did.
type agentRun struct {
	fence       int64
	start, last proc.BootTime
	ended       int // how many ended by themselves
}

// spans reads the record of a session, by fence.
func (w probes) spans(id api.SessionID) []agentRun {
	w.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, id.String()))
	if os.IsNotExist(err) {
		return nil
	}
	w.must(err)
	by := map[int64]*agentRun{}
	for line := range bytes.Lines(b[:bytes.LastIndexByte(b, '\n')+1]) { // one may just be being written
		var what string
		var fence, at int64
		var pid int
		_, err := fmt.Sscan(string(line), &what, &fence, &pid, &at)
		w.must(err)
		s := by[fence]
		if s == nil {
			s = &agentRun{fence: fence, start: proc.BootTime(at)}
			by[fence] = s
		}
		s.last = max(s.last, proc.BootTime(at))
		if what == "end" {
			s.ended++
		}
	}
	var out []agentRun
	for _, s := range by {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b agentRun) int { return cmp.Compare(a.fence, b.fence) })
	return out
}

// last is the last sign of life of any agent.
func (w probes) last(ids []api.SessionID) (at proc.BootTime) {
	w.Helper()
	for _, id := range ids {
		for _, s := range w.spans(id) {
			at = max(at, s.last)
		}
	}
	return at
}

// nobody waits until no agent is running.
func (w probes) nobody() {
	w.Helper()
	lock, err := os.OpenFile(filepath.Join(w.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	w.must(err)
	defer func() { _ = lock.Close() }()
	w.until("no agent is alive", func() bool { return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil })
}

// until waits for something that no event announces.
func (h *home) until(what string, ok func() bool) {
	h.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("never: %s", what)
		}
	}
}

// apart fails the test when two claims on a session were executed at once.
func (w probes) apart(id api.SessionID) {
	w.Helper()
	all := w.spans(id)
	for i := 1; i < len(all); i++ {
		if all[i].start <= all[i-1].last {
			w.Errorf("session %s ran twice at once: fence %d until %d, fence %d from %d", id, all[i-1].fence, all[i-1].last, all[i].fence, all[i].start)
		}
	}
}

// printed is everything that a session printed.
func printed(t testing.TB, c *api.Client, id api.SessionID) string {
	t.Helper()
	v, err := readView(t.Context(), c, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, it := range v.items {
		if it.Kind == api.ItemText {
			b.WriteString(it.Text)
		}
	}
	return b.String()
}
