package proc

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// entry is one process as the system's table shows it.
type entry struct {
	ID
	parent  int
	group   int
	session int
	// dead: it no longer runs and only waits to be collected.
	dead bool
	// stopped: by a signal or by a tracer.
	stopped bool
	// waits: nothing keeps it from running, it has nothing to do. Never on macOS, which
	// doesn't say.
	waits bool
	// name is what the process calls itself, safe to show.
	name string
}

// shown is a process's name without anything that a terminal or a page would act on.
func shown(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
}

// tree finds the processes of one session. It decides nothing but membership.
type tree struct {
	mark  string
	brand uint64
	agent ID
	// guardian carries the brand but is not a member.
	guardian ID
	// root is the process below which everything belongs to the session: the guardian for
	// itself, 0 for a worker that looks from outside.
	root int
	// group: the agent's process group and session may be trusted. The caller knows that the
	// number can't have been reused in between.
	group bool
	// seen are all members so far. A process that is ending loses its environment, and with it
	// the mark, before it releases its files: it is still waited for.
	seen map[ID]struct{}
}

func newTree(rec Record) *tree {
	return &tree{mark: rec.Mark, brand: rec.Brand, agent: rec.Agent, guardian: rec.Guardian, seen: map[ID]struct{}{}}
}

// members returns the living processes of the session. The agent itself is among them while it
// is alive. An error says that this isn't known, not that there are none.
func (h *tree) members() ([]entry, error) {
	table, err := wholeTable()
	if err != nil {
		return nil, err
	}
	found := h.pick(table, func(e entry) bool { return branded(e.Pid, h.brand) || carries(e.Pid, MarkVar+"="+h.mark) })
	for _, e := range found {
		h.seen[e.ID] = struct{}{}
	}
	return found, nil
}

// wholeTable is the system's table, or an error where it shows less than it should: a table
// without the process that reads it, like an empty /proc, doesn't show the others either.
func wholeTable() ([]entry, error) {
	table, err := processTable()
	if err != nil {
		return nil, fmt.Errorf("read the table of processes: %w", err)
	}
	self := os.Getpid()
	if !slices.ContainsFunc(table, func(e entry) bool { return e.Pid == self }) {
		return nil, fmt.Errorf("read the table of processes: %w", errNoTable)
	}
	return table, nil
}

// pick chooses the members from a table. marked is called only for living processes that don't
// belong for another reason.
func (h *tree) pick(table []entry, marked func(entry) bool) []entry {
	self := os.Getpid()
	children := make(map[int][]int, len(table)) // parent -> indexes
	for i, e := range table {
		children[e.parent] = append(children[e.parent], i)
	}
	taken := make([]bool, len(table))
	var take func(pid int)
	take = func(pid int) { // everything below pid; a table read bit by bit may contain a loop
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
		if taken[i] || e.Pid == self || e.Pid <= 1 || e.Pid == h.root || e.ID == h.guardian {
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
func (h *tree) known(e entry) bool {
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

// sendTo sends sig to exactly that process, or to none. The handle that os.FindProcess takes
// pins the process on Linux, so the comparison stays true.
func sendTo(id ID, sig syscall.Signal) {
	p, err := os.FindProcess(id.Pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }()
	if now, err := lookupID(id.Pid); err != nil || now != id {
		return
	}
	// It is gone, or not ours to end: the next read of the table shows which.
	_ = p.Signal(sig)
}

// strike kills what carries the brand. If there is something to find it looks several times
// before the whole table is read, which takes long enough for a chain of processes that fork
// and end to get away.
func (h *tree) strike() {
	for look := 0; look == 0 || look < 20 && len(h.seen) > 0; look++ {
		for _, id := range strikeBranded(h.brand, h.guardian.Pid) {
			h.seen[id] = struct{}{}
		}
	}
}

// kill sends KILL until nothing is left, for at most limit, and returns what was left. An
// error says that this isn't known.
func (h *tree) kill(limit time.Duration) (left []ID, err error) {
	end := BootNow().Add(limit)
	for quiet := 0; quiet < 2; {
		h.strike()
		members, err := h.members()
		if err == nil && len(members) == 0 {
			quiet++ // one read can miss a process that forks while we read
			continue
		}
		quiet = 0
		if BootNow() >= end {
			return ids(members), err
		}
		for _, e := range members {
			sendTo(e.ID, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil, nil
}

// unknown stands for what may have survived where there is no way to tell: what was seen of
// the session, else its agent.
func (h *tree) unknown() []ID {
	if len(h.seen) == 0 {
		return []ID{h.agent}
	}
	return slices.SortedFunc(maps.Keys(h.seen), func(a, b ID) int { return a.Pid - b.Pid })
}

func ids(entries []entry) []ID {
	all := make([]ID, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.ID)
	}
	slices.SortFunc(all, func(a, b ID) int { return a.Pid - b.Pid })
	return all
}

var (
	errNoProcess = errors.New("no such process")
	errNoTable   = errors.New("the system shows no processes")
)

// lookupID returns the process that has this pid now.
func lookupID(pid int) (ID, error) {
	e, err := lookup(pid)
	if err != nil {
		return ID{}, err
	}
	return e.ID, nil
}
