package proc

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

// entry is one process as the system's table shows it.
type entry struct {
	ID
	parent  int
	group   int
	session int
	// dead: nothing of it runs any more, it only waits to be collected.
	dead bool
}

// hunt finds the processes of one session. It decides nothing but membership.
type hunt struct {
	mark  string
	agent ID
	// root is the process below which everything belongs to the session: the guardian
	// for itself, 0 for a worker that looks from outside.
	root int
	// group: the agent's process group and session may be trusted. The caller knows
	// that the number can't have gone to somebody else in between.
	group bool
	// seen are all members so far. A process that is ending loses its environment, and
	// with it the mark, before it lets go of its files: it is waited for all the same.
	seen map[ID]struct{}
}

func newHunt(mark string, agent ID) *hunt {
	return &hunt{mark: mark, agent: agent, seen: map[ID]struct{}{}}
}

// members returns the living processes of the session. The agent itself is among them
// while it lives.
func (h *hunt) members() []entry {
	table, err := processTable()
	if err != nil {
		return nil // no /proc here: the group and the count of children have to do
	}
	found := h.pick(table, func(e entry) bool { return carries(e.Pid, MarkVar+"="+h.mark) })
	for _, e := range found {
		h.seen[e.ID] = struct{}{}
	}
	return found
}

// pick chooses the members from a table. marked is asked only about living processes
// that don't belong for another reason.
func (h *hunt) pick(table []entry, marked func(entry) bool) []entry {
	self := os.Getpid()
	children := make(map[int][]int, len(table)) // parent -> indexes
	for i, e := range table {
		children[e.parent] = append(children[e.parent], i)
	}
	taken := make([]bool, len(table))
	var take func(pid int)
	take = func(pid int) { // everything below pid; a table read bit by bit may hold a loop
		for _, i := range children[pid] {
			if !taken[i] {
				taken[i] = true
				take(table[i].Pid)
			}
		}
	}
	if h.root != 0 {
		take(h.root)
	}
	for i, e := range table {
		if taken[i] || e.Pid == self || e.Pid <= 1 || e.Pid == h.root {
			continue
		}
		if h.known(e) || (!e.dead && marked(e)) {
			taken[i] = true
			take(e.Pid)
		}
	}
	var found []entry
	for i, e := range table {
		if taken[i] && !e.dead && e.Pid != self && e.Pid != h.root && e.Pid > 1 {
			found = append(found, e)
		}
	}
	return found
}

// known reports whether e belongs by its number: it was a member before, it is the
// agent, or it is in the agent's group.
func (h *hunt) known(e entry) bool {
	if _, ok := h.seen[e.ID]; ok {
		return true
	}
	if h.agent.Pid == 0 || h.agent.Start == 0 {
		return false
	}
	if e.ID == h.agent {
		return true
	}
	return h.group && e.Start >= h.agent.Start && (e.group == h.agent.Pid || e.session == h.agent.Pid)
}

// sendTo sends sig to exactly that process, or to nobody. The handle that
// os.FindProcess takes pins the process on Linux, so the comparison can't be outrun.
func sendTo(id ID, sig syscall.Signal) {
	p, err := os.FindProcess(id.Pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }()
	if now, err := lookupID(id.Pid); err != nil || now != id {
		return
	}
	// It is gone, or not ours to end: the next look at the table tells which.
	_ = p.Signal(sig)
}

// kill sends KILL until nothing is left, for at most limit, and says what was left.
func (h *hunt) kill(limit time.Duration) (left []ID) {
	end := BootNow().Add(limit)
	for quiet := 0; quiet < 2; {
		members := h.members()
		if len(members) == 0 {
			quiet++ // one look can miss a process that forks while we read
			continue
		}
		quiet = 0
		if BootNow() >= end {
			return ids(members)
		}
		for _, e := range members {
			sendTo(e.ID, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

func ids(entries []entry) []ID {
	all := make([]ID, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.ID)
	}
	slices.SortFunc(all, func(a, b ID) int { return a.Pid - b.Pid })
	return all
}

var errNoProcess = errors.New("no such process")

// lookupID returns the process that has this pid now.
func lookupID(pid int) (ID, error) {
	e, err := lookup(pid)
	if err != nil {
		return ID{}, err
	}
	return e.ID, nil
}
