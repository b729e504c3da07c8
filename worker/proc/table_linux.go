package proc

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// processTable reads /proc. It is not a snapshot: processes come and go while it reads, so
// callers look again until two reads agree.
func processTable() ([]entry, error) {
	dir, err := os.Open("/proc")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoTable
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	table := make([]entry, 0, len(names))
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		e, err := lookup(pid)
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) {
			return nil, err // we can't look: that says nothing about the process
		}
		if err != nil {
			continue // gone since the listing, or unreadable
		}
		table = append(table, e)
	}
	return table, nil
}

// lookup reads one process from /proc/PID/stat (proc_pid_stat(5)).
func lookup(pid int) (entry, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return entry{}, fmt.Errorf("%w: %d", errNoProcess, pid)
	}
	if err != nil {
		return entry{}, fmt.Errorf("read stat of process %d: %w", pid, err)
	}
	return parseStat(pid, data)
}

func parseStat(pid int, data []byte) (entry, error) {
	// The process chooses the name in parentheses: it may hold anything.
	end := max(bytes.LastIndexByte(data, ')'), 0)
	_, name, _ := bytes.Cut(data[:end], []byte("("))
	_, rest, ok := bytes.Cut(data[end:], []byte(") "))
	if !ok {
		return entry{}, fmt.Errorf("read stat of process %d: no name", pid)
	}
	fields := bytes.Fields(rest) // from field 3, the state
	if len(fields) < 20 || len(fields[0]) != 1 {
		return entry{}, fmt.Errorf("read stat of process %d: %d fields", pid, len(fields))
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(string(fields[field-3]), 10, 64)
		return n
	}
	state, threads := fields[0][0], number(20)
	return entry{
		ID:      ID{Pid: pid, Start: number(22)},
		parent:  int(number(4)),
		group:   int(number(5)),
		session: int(number(6)),
		// A first thread that has ended shows as a zombie while others continue.
		dead:    (state == 'Z' && threads <= 1) || state == 'X' || state == 'x',
		stopped: state == 'T' || state == 't',
		waits:   state == 'S',
		name:    shown(string(name)),
	}, nil
}

// carries reports whether the process was started with exactly this assignment in its
// environment. One whose environment may not be read doesn't count.
func carries(pid int, assignment string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return holds(env, assignment)
}

// newBrand makes a brand: a hard limit on file locks, which the kernel has ignored since
// version 2.4.25, but passes on from each process to its children through fork and exec. A
// process without privilege can lower it, but neither raise nor remove it. It is the only mark
// that survives a cleared environment, new sessions, and the end of all parents. 0 where there
// is no room for one below our own limit.
func newBrand() uint64 {
	const least = 1 << 40
	most := uint64(1) << 62
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &own); err != nil {
		return 0
	}
	if most = min(most, own.Max); most <= least {
		return 0
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return least + binary.NativeEndian.Uint64(b[:])%(most-least)
}

// wearBrand gives this process, and everything that it starts, the brand. Where the system
// knows no such limit the mark must be enough.
func wearBrand(brand uint64) {
	if brand != 0 {
		_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: brand, Max: brand})
	}
}

// branded reports whether a process carries the brand. It needs no right to look into the
// process, only the same user.
func branded(pid int, brand uint64) bool {
	if brand == 0 {
		return false
	}
	var limit unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit)
	return err == nil && limit.Max == brand
}

// strikeBranded kills whatever carries the brand, except one process, as it finds it: a chain
// of processes that fork and end is over before the whole table is read. It returns those that
// it found.
func strikeBranded(brand uint64, but int) (struck []ID) {
	if brand == 0 {
		return nil
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range slices.Backward(names) { // the youngest first
		pid, err := strconv.Atoi(name)
		if err != nil || pid == but || pid == os.Getpid() || !branded(pid, brand) {
			continue
		}
		e, err := lookup(pid)
		if err != nil || e.dead {
			continue
		}
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			if branded(pid, brand) { // the handle is for the process that we checked
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
			unix.Close(fd)
		}
		struck = append(struck, e.ID)
	}
	return struck
}

// argument returns the n-th argument of a process.
func argument(pid, n int) string {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	args := bytes.Split(line, []byte{0})
	if n >= len(args) {
		return ""
	}
	return string(args[n])
}

// bootID names this boot of the machine.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
}
