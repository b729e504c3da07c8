package proc

import (
	"os"
	"syscall"
)

func selfPath() (string, error) { return os.Executable() }

// settleIn makes this process a guardian. There is no subreaper here: orphans go to the
// system's first process and are found by group and mark.
func settleIn() error {
	for fd := 3; fd < 1024; fd++ {
		syscall.CloseOnExec(fd) // harmless for one that isn't open
	}
	return nil
}

// agentAttr gives the agent its own process session, so no terminal.
func agentAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// exited reports whether our child has ended.
func exited(pid int) bool {
	e, err := lookup(pid)
	if err != nil {
		return true
	}
	return e.dead
}

// limitSet is empty: only a process itself can change its limits here.
type limitSet struct{}

func limits() limitSet { return limitSet{} }

func adopted() []int { return nil }
