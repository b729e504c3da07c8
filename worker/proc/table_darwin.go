package proc

import (
	"bytes"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// Of sys/proc.h: SSTOP and SZOMB.
const (
	stateStopped = 4
	stateZombie  = 5
)

func processTable() ([]entry, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	table := make([]entry, 0, len(all))
	for i := range all {
		table = append(table, fromKinfo(&all[i]))
	}
	return table, nil
}

func lookup(pid int) (entry, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return entry{}, fmt.Errorf("%w: %d", errNoProcess, pid)
	}
	return fromKinfo(k), nil
}

func fromKinfo(k *unix.KinfoProc) entry {
	return entry{
		ID:     ID{Pid: int(k.Proc.P_pid), Start: unix.TimevalToNsec(k.Proc.P_starttime) / 1000},
		parent: int(k.Eproc.Ppid),
		group:  int(k.Eproc.Pgid),
		// The table holds an address in place of the session's number; the group and the mark
		// must be enough.
		dead:    k.Proc.P_stat == stateZombie,
		stopped: k.Proc.P_stat == stateStopped,
		name:    shown(unix.ByteSliceToString(k.Proc.P_comm[:])),
	}
}

// carries reports whether the process was started with exactly this assignment in
// its environment. The system hides the environment of its own protected programs.
func carries(pid int, assignment string) bool {
	block, err := procargs(pid)
	return err == nil && holds(block, assignment)
}

// Standing finds nothing: this system doesn't say without privilege.
func Standing(string) (who string, found bool) { return "", false }

// There is no limit here that others can read: the mark must be enough.
func newBrand() uint64               { return 0 }
func wearBrand(uint64)               {}
func branded(int, uint64) bool       { return false }
func strikeBranded(uint64, int) []ID { return nil }

// argument returns the n-th argument of a process.
func argument(pid, n int) string {
	block, err := procargs(pid)
	if err != nil {
		return ""
	}
	_, args, _ := bytes.Cut(block, []byte{0}) // the path, then NULs, then arguments
	fields := bytes.Split(bytes.TrimLeft(args, "\x00"), []byte{0})
	if n >= len(fields) {
		return ""
	}
	return string(fields[n])
}

// procargs is path, arguments and environment, each ended by NUL.
func procargs(pid int) ([]byte, error) {
	block, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(block) < 4 {
		return nil, fmt.Errorf("%w: %d", errNoProcess, pid)
	}
	return block[4:], nil // after the count of arguments
}

// bootID names this boot of the machine: the instant it began.
func bootID() string {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return strconv.FormatInt(tv.Sec, 10)
}
