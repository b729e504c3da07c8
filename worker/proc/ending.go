package proc

import (
	"syscall"
	"time"
)

const (
	// reapEvery bounds how often orphans are collected while the agent runs: each time costs a
	// walk through the table.
	reapEvery = 250 * time.Millisecond
	// lookFirst and lookSlowest are how soon an ending looks again whether everything is gone.
	lookFirst   = 10 * time.Millisecond
	lookSlowest = 200 * time.Millisecond
	// leftShare of the interrupt's grace is how long processes that outlive their agent have
	// to end by themselves: of 10 seconds a quarter of one.
	leftShare = 40
	// killAgain is the pause between two rounds of KILL.
	killAgain = 2 * time.Millisecond
	// orphanRounds bounds one burst against processes that fork and end faster than
	// the table can be read.
	orphanRounds = 100
)

// ending is one staged ending in progress. contract 10.7
type ending struct {
	why    why
	term   BootTime // when TERM is due
	kill   BootTime // when KILL is due
	latest BootTime // when KILL is due in any case; 0 is never
	giveUp BootTime // when what is left is reported as surviving; set with KILL
	lookAt BootTime // when to look next
	pause  time.Duration

	stage     Stage         // the strongest signal sent
	atExit    Stage         // the stage when the agent had ended
	swept     map[ID]string // what outlived the agent, with its name
	survivors []ID

	asked, interrupted, terminated, killed, exited time.Time
}

// planEnding fixes the instants of an ending. The deadline bounds them: KILL comes
// early enough before it to take effect.
func planEnding(w why, now, deadline BootTime, s Stages) *ending {
	e := &ending{why: w, term: now.Add(s.Interrupt), lookAt: now, pause: lookFirst, swept: map[ID]string{}}
	if w == whyExited {
		// What is left lost its agent; background jobs of a shell ignore interrupts. What was
		// about to end by itself, such as the reader of a pipe, doesn't count as left behind.
		e.term = now.Add(s.Interrupt / leftShare)
	}
	if deadline != 0 {
		e.latest = deadline.Add(-s.Kill)
		room, graces := e.latest.Sub(now), s.Interrupt+s.Term
		if w != whyExited && 0 < room && room < graces {
			// Too little time for both graces: each gets its share, so that TERM is not
			// skipped.
			e.term = now.Add(time.Duration(float64(room) * float64(s.Interrupt) / float64(graces)))
		}
		e.term = min(e.term, e.latest)
	}
	e.kill = e.bound(e.term.Add(s.Term))
	return e
}

func (e *ending) bound(kill BootTime) BootTime {
	if e.latest != 0 {
		return min(kill, e.latest)
	}
	return kill
}

// due is the stage that the ending should be in. A machine that was late or asleep skips a
// grace only at the deadline.
func (e *ending) due(now BootTime) Stage {
	switch {
	case e.latest != 0 && now >= e.latest:
		return StageKill
	case e.stage < StageTerm && e.term < e.kill && now >= e.term:
		return StageTerm
	case now >= e.kill:
		return StageKill
	case e.why == whyExited && now < e.term:
		return e.stage // it may end by itself
	case now < e.term:
		return StageInterrupt
	}
	return e.stage
}

func (g *guardian) begin(w why, now BootTime) {
	g.end = planEnding(w, now, g.deadline, g.stages)
	if w != whyExited {
		g.end.asked = time.Now()
	}
}

// step does what is due and reports whether nothing of the session is left, or nothing that
// can be ended.
func (g *guardian) step(now BootTime) bool {
	if g.end == nil {
		switch {
		case g.gone:
			g.begin(whyExited, now)
		case g.workerGone:
			g.begin(whyWorkerGone, now)
		case g.deadline != 0 && now >= g.deadline.Add(-g.stages.Total()):
			g.begin(whyDeadline, now)
		default:
			g.collectOrphans(now)
			return false
		}
	}
	e := g.end
	if g.gone && e.exited.IsZero() {
		g.noteExit(now)
	}
	if g.settled() {
		return true
	}
	switch e.due(now) {
	case StageKill:
		g.strike(now)
		if now >= e.giveUp {
			e.survivors = g.survivors()
			return true
		}
	case StageTerm:
		g.terminate(now)
	case StageInterrupt:
		g.interrupt()
	}
	e.plan(now)
	return false
}

// plan sets the next look: soon after a signal, then less and less often.
func (e *ending) plan(now BootTime) {
	if e.stage == StageKill {
		e.lookAt = now.Add(killAgain)
		return
	}
	e.lookAt = now.Add(e.pause)
	e.pause = min(e.pause*2, lookSlowest)
	next := e.kill
	if e.stage < StageTerm {
		next = e.term
	}
	e.lookAt = min(e.lookAt, next)
}

// noteExit moves what is left to TERM: no agent is there to act on an interrupt.
func (g *guardian) noteExit(now BootTime) {
	e := g.end
	e.exited, e.atExit = time.Now(), e.stage
	if e.stage < StageTerm && e.why != whyExited {
		e.term = min(e.term, now)
		e.kill = e.bound(e.term.Add(g.stages.Term))
		e.pause = lookFirst
	}
}

// interrupt is Ctrl-C: it goes to the agent's group, and the agent passes it on to the tools
// that it runs in separate process sessions.
func (g *guardian) interrupt() {
	e := g.end
	if e.stage >= StageInterrupt {
		return
	}
	e.stage, e.interrupted = StageInterrupt, time.Now()
	g.signalGroup(syscall.SIGINT)
	g.signalGroup(syscall.SIGCONT) // a stopped process can't act on it
}

// terminate goes to everything.
func (g *guardian) terminate(now BootTime) {
	e := g.end
	if e.stage >= StageTerm {
		return
	}
	e.stage, e.terminated = StageTerm, time.Now()
	e.kill = e.bound(now.Add(g.stages.Term))
	members := g.outside()
	g.signalGroup(syscall.SIGTERM)
	for _, m := range members {
		sendTo(m.ID, syscall.SIGTERM)
	}
	g.signalGroup(syscall.SIGCONT)
	for _, m := range members {
		sendTo(m.ID, syscall.SIGCONT)
	}
}

// strike is one round of KILL. The group goes first, since the kernel lets none of its
// processes escape that by forking; then what has left the group, one by one.
func (g *guardian) strike(now BootTime) {
	e := g.end
	if e.stage < StageKill {
		e.stage, e.killed, e.giveUp = StageKill, time.Now(), now.Add(g.stages.Kill)
		g.report(report{Killing: true})
	}
	g.signalGroup(syscall.SIGKILL)
	for _, m := range g.outside() {
		sendTo(m.ID, syscall.SIGKILL)
	}
	if !g.gone {
		return
	}
	// Once its group is certainly gone the agent may be collected, and then every other child:
	// a chain of processes that fork and end is caught at its end, which is always our child.
	g.collect()
	if !g.collectAll() {
		return
	}
	for range orphanRounds {
		pids := adopted()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // our child: nobody else frees its number
			if o, err := lookup(pid); err == nil {
				e.swept[o.ID] = o.name
			}
		}
		if !g.collectAll() {
			return
		}
	}
}

// survivors are those that KILL hasn't ended. The number of children shows whether there are
// any that can't be seen.
func (g *guardian) survivors() []ID {
	members, err := g.tree.members()
	if err != nil && (!g.collected || g.collectAll()) {
		return g.tree.unknown()
	}
	return ids(members)
}

// outside returns the members that a signal to the agent's group doesn't reach, and counts
// those that outlived the agent.
func (g *guardian) outside() []entry {
	var out []entry
	members, _ := g.tree.members() // where there is no table the group and the children are reached
	for _, m := range members {
		if m.ID == g.tree.agent {
			continue
		}
		if g.gone {
			g.end.swept[m.ID] = m.name
		}
		if g.collected || m.group != g.tree.agent.Pid {
			out = append(out, m)
		}
	}
	return out
}

// signalGroup reaches the agent's group. Once the agent is collected its number may belong to
// somebody else.
func (g *guardian) signalGroup(sig syscall.Signal) {
	if !g.collected {
		_ = syscall.Kill(-g.tree.agent.Pid, sig) // the group may be empty
	}
}
