package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// selfPath is our own binary: the very file that runs, even after it was replaced.
func selfPath() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link, nil
	}
	return os.Executable()
}

// settleIn makes this process a guardian.
func settleIn() error {
	// Processes whose parent ends become our children, whatever group and session they are in.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	// Our memory holds the agent's environment and our descriptors lead to the worker: the
	// agent, as the same user, must not open them in /proc.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close /proc to others: %w", err)
	}
	return closeOnExec()
}

// closeOnExec keeps every descriptor from the agent except the three that it is given,
// whatever the worker itself was started with.
func closeOnExec() error {
	err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	names, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return fmt.Errorf("list our descriptors: %w", err)
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// agentAttr gives the agent its own process session, so no terminal; and if the guardian is
// killed, the agent is killed at once too. The signal comes when the thread ends that started
// the agent, which is why the guardian stays on one thread.
func agentAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// limitSet are the soft and hard limits of a process.
type limitSet [16]unix.Rlimit

// limits are our own. Any process of the same user may lower them.
func limits() (all limitSet) {
	for i := range all {
		_ = unix.Getrlimit(i, &all[i]) // one that the kernel doesn't know stays zero
	}
	return all
}

// exited reports whether our child has ended, without collecting it: until then its number
// stays taken, and with it that of its group.
func exited(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// adopted lists children of our first thread, to which the kernel assigns orphans. It is fast
// where the whole table is slow, and empty on kernels without it.
func adopted() []int {
	pid := strconv.Itoa(os.Getpid())
	line, err := os.ReadFile("/proc/self/task/" + pid + "/children")
	if err != nil {
		return nil
	}
	var pids []int
	for _, f := range strings.Fields(string(line)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}
