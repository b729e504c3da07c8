package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// probes is a folder in which each process of a tree leaves its trace: a file named by its pid
// with its start and last sign of life, and a shared lock on one file, held by it and whatever
// inherits its descriptors. The lock is a census that needs neither mark nor table: an
// exclusive lock is granted when the last one is dead.
type probes string

func (w probes) lockFile() string { return filepath.Join(string(w), "lock") }

// join makes the calling process a witness. The lock is kept for ever and inherited.
func (w probes) join() *os.File {
	lock, err := os.OpenFile(w.lockFile(), os.O_RDWR|os.O_CREATE, 0o600)
	must(err)
	must(unix.Flock(int(lock.Fd()), unix.LOCK_SH))
	trace, err := os.OpenFile(filepath.Join(string(w), strconv.Itoa(os.Getpid())), os.O_RDWR|os.O_CREATE, 0o600)
	must(err)
	w.stamp(trace)
	return trace
}

func (w probes) stamp(trace *os.File) {
	id, err := lookupID(os.Getpid())
	must(err)
	_, err = trace.WriteAt([]byte(fmt.Sprintf("%020d %020d\n", id.Start, BootNow())), 0)
	must(err)
}

// live writes stamps until it is killed.
func (w probes) live(trace *os.File) {
	for {
		w.stamp(trace)
		time.Sleep(20 * time.Millisecond)
	}
}

type trace struct {
	ID
	last BootTime
}

// traces reads the complete ones.
func (w probes) traces() ([]trace, error) {
	names, err := os.ReadDir(string(w))
	if err != nil {
		return nil, err
	}
	var all []trace
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(string(w), n.Name()))
		if err != nil {
			return nil, err
		}
		t := trace{ID: ID{Pid: pid}}
		if _, err := fmt.Sscanf(string(data), "%d %d\n", &t.Start, &t.last); err == nil {
			all = append(all, t)
		}
	}
	return all, nil
}

// nobody waits until nothing holds the lock and nothing is found by pid or mark, and returns
// the last sign of life of all.
func (w probes) nobody(t *testing.T, mark string) BootTime {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		all, err := w.traces()
		if err != nil {
			t.Fatal(err)
		}
		var left []ID
		var last BootTime
		for _, tr := range all {
			last = max(last, tr.last)
			if e, err := lookup(tr.Pid); err == nil && e.ID == tr.ID && !e.dead {
				left = append(left, tr.ID)
			}
		}
		marked, err := newTree(Record{Mark: mark}).members()
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, ids(marked)...)
		locked := !w.empty(t)
		if len(left) == 0 && !locked {
			return last
		}
		if time.Now().After(end) {
			t.Fatalf("alive: %v, lock held: %v", left, locked)
		}
	}
}

// empty reports at once whether nothing holds the lock.
func (w probes) empty(t *testing.T) bool {
	t.Helper()
	lock, err := os.Open(w.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
