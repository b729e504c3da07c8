package proc

import (
	"os"
	"syscall"
)

func selfPath() (string, error) { return os.Executable() }

// settleIn makes this process a guardian. There is no subreaper here: orphans go to
// the system's first process and are found by group and mark.
func settleIn() error {
	for fd := 3; fd < 1024; fd++ {
		syscall.CloseOnExec(fd) // no harm in one that isn't open
	}
	return nil
}

// agentAttr: a session of its own, so no terminal.
func agentAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// exited reports whether our child has ended.
func exited(pid int) bool {
	e, err := lookup(pid)
	if err != nil {
		return true
	}
	return e.dead
}

func adopted() []int { return nil }
