package proc

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
)

// collect takes the ended agent's status and frees its number.
func (g *guardian) collect() {
	if g.collected || !g.gone {
		return
	}
	var status syscall.WaitStatus
	if wait(g.tree.agent.Pid, 0, &status) == g.tree.agent.Pid {
		g.status = status
	}
	g.collected = true
	g.tree.group = false
}

// collectAll collects every ended child and reports whether any child is left. On Linux the
// answer is exact: every process below us descends from a child of ours. The agent must have
// been collected.
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

// settled reports whether nothing of the session is left. The agent is collected only once its
// group is seen to be empty, so that until then the group can be signalled.
func (g *guardian) settled() bool {
	if !g.gone {
		return false
	}
	members, err := g.tree.members()
	if err != nil {
		if limits() != g.limits {
			g.report(report{Hampered: true}) // the worker sees more
		}
		// All that is left is to count children, which is exact only once the group was
		// killed.
		return g.collected && !g.collectAll()
	}
	if len(members) > 0 {
		return false
	}
	g.collect()
	if g.collectAll() {
		return false // it forked while we read the table
	}
	// Before it ended it may have had something started elsewhere.
	members, err = g.tree.members()
	return err == nil && len(members) == 0
}

// collectOrphans collects ended processes that became ours while the agent runs.
func (g *guardian) collectOrphans(now BootTime) {
	if g.reapAt == 0 || now < g.reapAt {
		return
	}
	g.reapAt, g.lastReap = 0, now
	table, err := processTable()
	if err != nil {
		g.reapAt = now.Add(reapEvery)
		return
	}
	for _, e := range table {
		if e.dead && e.parent == os.Getpid() && e.Pid != g.tree.agent.Pid {
			wait(e.Pid, syscall.WNOHANG, nil)
		}
	}
}

// wait is wait4, repeated after an interruption: a pid, 0 if none has ended, or -1 if there is
// no such child.
func wait(pid, options int, status *syscall.WaitStatus) int {
	for {
		got, err := syscall.Wait4(pid, status, options, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		return got
	}
}

// lastWord is what the guardian reports at the end.
func (g *guardian) lastWord() *ended {
	e := g.end
	if !g.collected && g.gone {
		g.collect()
	}
	return &ended{
		Why: e.why, Exited: g.gone, Status: g.status, Stage: e.atExit,
		Asked: e.asked, Interrupted: e.interrupted, Terminated: e.terminated, Killed: e.killed, ExitedAt: e.exited,
		Swept: len(e.swept), Left: namesOf(e.swept), Survivors: e.survivors,
	}
}

// namesOf returns the names, each once, sorted, and no more than one line holds.
func namesOf(swept map[ID]string) []string {
	all := slices.Compact(slices.Sorted(maps.Values(swept)))
	return all[:min(len(all), 8)]
}
