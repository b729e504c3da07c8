package proc

import (
	"errors"
	"os"
	"syscall"
)

// collect takes the ended agent's status and frees its number.
func (g *guardian) collect() {
	if g.collected || !g.gone {
		return
	}
	var status syscall.WaitStatus
	if wait(g.hunt.agent.Pid, 0, &status) == g.hunt.agent.Pid {
		g.status = status
	}
	g.collected = true
	g.hunt.group = false
}

// collectAll collects every ended child and reports whether any child is left.
// On Linux the answer is exact: whatever lives below us hangs on a child of ours.
// The agent must have been collected.
func (g *guardian) collectAll() (left bool) {
	for {
		pid := wait(-1, syscall.WNOHANG, nil)
		if pid < 0 {
			return false
		}
		if pid == 0 {
			return true
		}
	}
}

// settled reports whether nothing of the session is left. The agent is collected only
// when its group is seen empty, so that until then the group can be signalled.
func (g *guardian) settled() bool {
	if !g.gone || len(g.hunt.members()) > 0 {
		return false
	}
	g.collect()
	if g.collectAll() {
		return false // it forked while we read the table
	}
	// Before it ended it may have had something started elsewhere.
	return len(g.hunt.members()) == 0
}

// collectOrphans collects ended processes that came to us while the agent runs.
func (g *guardian) collectOrphans(now BootTime) {
	if g.reapAt == 0 || now < g.reapAt {
		return
	}
	g.reapAt, g.lastReap = 0, now
	table, err := processTable()
	if err != nil {
		return
	}
	for _, e := range table {
		if e.dead && e.parent == os.Getpid() && e.Pid != g.hunt.agent.Pid {
			wait(e.Pid, syscall.WNOHANG, nil)
		}
	}
}

// wait is wait4 that goes on after an interruption: a pid, 0 if none has ended, or -1
// if there is no such child.
func wait(pid, options int, status *syscall.WaitStatus) int {
	for {
		got, err := syscall.Wait4(pid, status, options, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		return got
	}
}

// lastWord is what the worker is told at the end.
func (g *guardian) lastWord() *ended {
	e := g.end
	if !g.collected && g.gone {
		g.collect()
	}
	return &ended{
		Why: e.why, Exited: g.gone, Status: g.status, Stage: e.atExit,
		Asked: e.asked, Interrupted: e.interrupted, Terminated: e.terminated, Killed: e.killed, ExitedAt: e.exited,
		Swept: len(e.swept), Survivors: e.survivors,
	}
}
