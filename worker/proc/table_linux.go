package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processTable reads /proc. It is no snapshot: processes come and go while it reads,
// so callers look again until two looks agree.
func processTable() ([]entry, error) {
	dir, err := os.Open("/proc")
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
		if err != nil {
			continue // gone since the listing
		}
		table = append(table, e)
	}
	return table, nil
}

// lookup reads one process from /proc/PID/stat (proc_pid_stat(5)).
func lookup(pid int) (entry, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return entry{}, fmt.Errorf("%w: %d", errNoProcess, pid)
	}
	return parseStat(pid, data)
}

func parseStat(pid int, data []byte) (entry, error) {
	// The name in parentheses is the process's own choice: it may hold anything.
	_, rest, ok := bytes.Cut(data[max(bytes.LastIndexByte(data, ')'), 0):], []byte(") "))
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
		// A first thread that has ended shows as a zombie while others go on.
		dead: (state == 'Z' && threads <= 1) || state == 'X' || state == 'x',
	}, nil
}

// carries reports whether the process was started with exactly this assignment in
// its environment. One whose environment may not be read doesn't.
func carries(pid int, assignment string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return holds(env, assignment)
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
