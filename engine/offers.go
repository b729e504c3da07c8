package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// offer notes that a session of the agent may have become claimable, or that a place of the
// agent's is free.
func (e *Engine) offer(agent api.AgentID) { e.noteOffer(offer{agent: agent}) }

func (e *Engine) noteOffer(o offer) {
	for _, known := range e.waiters.noted {
		if known == o {
			return
		}
	}
	e.waiters.noted = append(e.waiters.noted, o)
}

// offerFreed is offer after a claim's end: its worker has a place again, and
// others' workers its folder.
func (e *Engine) offerFreed(c *claimRow) {
	e.noteOffer(offer{agent: c.AgentID, freed: c.WorkerID, folder: c.FolderKey})
	if c.FolderKey == "" {
		return
	}
	q := &e.waiters
	q.mu.Lock()
	defer q.mu.Unlock()
	for agent, list := range q.of {
		if agent == c.AgentID {
			continue
		}
		uses := func(s *waiter) bool {
			return slices.ContainsFunc(s.workers, func(p waitingWorker) bool { return p.agent == agent && p.uses(c.FolderKey) })
		}
		if slices.ContainsFunc(list, uses) {
			e.noteOffer(offer{agent: agent, folder: c.FolderKey})
		}
	}
}

// uses reports whether a worker runs in a folder, or in one above or below it.
func (p *waitingWorker) uses(folder string) bool {
	return p.folder != "" && folder != "" &&
		(p.folder == folder || strings.HasPrefix(p.folder, folder+"/") || strings.HasPrefix(folder, p.folder+"/"))
}

// wakeWorker makes the held requests of a worker look again after the commit: what it may do,
// or what it has to be sent, has changed.
func (e *Engine) wakeWorker(tx *db.Tx, id api.WorkerID) {
	tx.AfterCommit(func() { e.waiters.nudge(func(q *waiters) []*waiter { return q.by[id] }) })
}

// wakeAll makes every held request for sessions of the agent look again, as when the agent is
// deleted.
func (e *Engine) wakeAll(tx *db.Tx, agent api.AgentID) {
	tx.AfterCommit(func() { e.waiters.nudge(func(q *waiters) []*waiter { return q.of[agent] }) })
}

// nudge makes some waiters look again; which ones is decided under the lock.
func (q *waiters) nudge(which func(*waiters) []*waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.offers++
	for _, s := range which(q) {
		s.nudge()
	}
}

// match finds a waiter for each offer of the current closure, by the state that it leaves, and
// has it woken after the commit.
func (e *Engine) match(tx *db.Tx) {
	q := &e.waiters
	for _, o := range q.noted {
		m := matching{e: e, tx: tx, offer: o}
		found, err := m.find()
		if err != nil {
			// The waiter that looks instead gets the error.
			e.log.Error("could not find out whom a session is for", "agent", o.agent.String(), "error", err)
			found = m.first()
		}
		tx.AfterCommit(func() { m.settle(found) })
	}
	q.noted = nil
}

// mostAwaited bounds how many processes are looked for that sessions wait to be resumed by.
const mostAwaited = 10 * batch

// mostLanes bounds how many lanes are read to leave out the waiters that fit none of them.
const mostLanes = 64

// matching looks for the waiter of one offer. What it costs must not grow with how many wait:
// it reads what there is to take, leaves out by that those who can't take it, and remembers of
// those who are full that they are, until that changes.
type matching struct {
	e     *Engine
	tx    *db.Tx
	offer offer

	agent agentRow
	runs  [1]string       // its type
	idle  bool            // nothing of the agent can be claimed, whoever asks
	joins uint64          // the count of joins at the time of the closure
	lanes []needs         // of sessions that any process may take
	many  bool            // there are more lanes than those
	busy  map[string]bool // folders in which something runs
	full  []*waitingWorker
}

// waiterAt is a waiter by one of its workers.
type waiterAt struct {
	waiter *waiter
	at     *waitingWorker // of which full alone changes
}

// waited reports whether anybody waits for sessions of the agent.
func (m *matching) waited() bool {
	q := &m.e.waiters
	q.mu.Lock()
	defer q.mu.Unlock()
	m.joins = q.joins
	return len(q.of[m.offer.agent]) > 0
}

// look lists who waits for sessions of the agent and is wanted, those that claim first.
func (m *matching) look(want func(*waitingWorker) bool) (out []waiterAt) {
	q := &m.e.waiters
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, purpose := range []purpose{toClaim, toList} {
		for _, s := range q.of[m.offer.agent] {
			if s.purpose != purpose || s == m.offer.except {
				continue
			}
			for i := range s.workers {
				if p := &s.workers[i]; p.agent == m.offer.agent && (!p.full || m.frees(p)) && want(p) {
					out = append(out, waiterAt{s, p})
				}
			}
		}
	}
	return out
}

// frees reports whether what the offer is about gives a worker a place or its folder.
func (m *matching) frees(p *waitingWorker) bool {
	return p.worker == m.offer.freed || p.uses(m.offer.folder)
}

// find returns the first waiter that may claim a session of the agent now; nil when there is
// none.
func (m *matching) find() (*waiter, error) {
	if !m.waited() {
		return nil, nil
	}
	_, err := m.tx.AnyWaiting(m.tx.Context(), m.offer.agent)
	if db.None(err) {
		m.idle = true
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look whether anything waits: %w", err)
	}
	if m.agent, err = agentEvenDeleted(m.tx.Context(), m.tx, m.offer.agent); err != nil {
		return nil, fmt.Errorf("read agent %s: %w", m.offer.agent, err)
	}
	plainest := facts{a: &m.agent, s: &sessionRow{Status: api.Queued}}
	if plainest.claimGate(db.Micros(m.tx.Now), false) != nil {
		m.idle = true
		return nil, nil // what holds back a session without requirements holds back every one
	}
	if err := m.readLanes(); err != nil {
		return nil, fmt.Errorf("read what agent %s has to do: %w", m.offer.agent, err)
	}
	looked := map[string]bool{} // kinds of workers that have nothing to claim
	for _, s := range m.look(m.fits) {
		if looked[s.at.kind] {
			continue
		}
		found, able, err := m.try(s)
		if err != nil || found {
			return s.waiter, err
		}
		looked[s.at.kind] = able
	}
	return m.findResuming()
}

// readLanes finds in which lanes there is a session for a worker of any process.
func (m *matching) readLanes() error {
	m.runs[0] = string(m.agent.Type)
	from := laneStart(&m.agent, &workerRow{}, "", db.Micros(m.tx.Now))
	for range mostLanes {
		row, err := m.tx.NextLane(m.tx.Context(), from)
		if db.None(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.lanes = append(m.lanes, needsOf(row.Lane)); row.NextLane == "" {
			return nil
		}
		from.Lane = row.NextLane
	}
	m.many = true
	return nil
}

// fits reports whether a worker may take sessions of one of the lanes.
func (m *matching) fits(p *waitingWorker) bool {
	return p.types.Has(m.runs[:]) && (m.many || slices.ContainsFunc(m.lanes, func(n needs) bool { return n.metBy(p.owner, p.labels) }))
}

// findResuming looks for a waiter of a worker process for which a session waits.
func (m *matching) findResuming() (*waiter, error) {
	processes, err := m.tx.AwaitedProcesses(m.tx.Context(), queries.AwaitedProcessesParams{AgentID: m.offer.agent, Now: db.Micros(m.tx.Now), N: mostAwaited})
	if err != nil {
		return nil, fmt.Errorf("look for which processes sessions wait: %w", err)
	}
	if len(processes) == 0 {
		return nil, nil
	}
	awaited := map[string]bool{}
	for _, id := range processes {
		awaited[id] = true
	}
	for _, s := range m.look(func(p *waitingWorker) bool { return awaited[p.process] }) {
		if found, _, err := m.try(s); err != nil || found {
			return s.waiter, err
		}
	}
	return nil, nil
}

// try looks whether a waiter's worker may claim a session now, and whether it
// could if there were one.
func (m *matching) try(s waiterAt) (found, able bool, err error) {
	if m.busy[s.at.folder] {
		m.full = append(m.full, s.at)
		return false, false, nil
	}
	row, err := m.tx.WorkerAndLoad(m.tx.Context(), s.at.worker)
	if db.None(err) {
		return false, false, nil // it was deleted, and its request will say so
	}
	if err != nil {
		return false, false, fmt.Errorf("read worker %s: %w", s.at.worker, err)
	}
	w := &row.Worker
	wf := workerFacts{w: w, running: row.Running, inFolder: row.InFolder, heldSince: s.waiter.since, staleAfter: db.Span(m.e.cfg.StaleAfter)}
	plainest := facts{a: &m.agent, s: &sessionRow{Status: api.Queued, Mode: w.Mode, OwnerUserID: w.OwnerUserID}}
	if g := plainest.workerGate(&wf, db.Micros(m.tx.Now), false); g != nil {
		switch g.Code {
		case gateFolderBusy:
			if m.busy == nil {
				m.busy = map[string]bool{}
			}
			m.busy[plainFolder(w)] = true
			m.full = append(m.full, s.at)
		case gateWorkerFull, gateWorkerPaused, gateWorkerStopped, gateWorkerOffline:
			m.full = append(m.full, s.at)
		}
		return false, false, nil
	}
	next, err := bestFor(m.tx.Context(), m.tx, db.Micros(m.tx.Now), &wf)
	return next.w != nil, true, err
}

// first is any waiter, for the case that nothing could be found out.
func (m *matching) first() *waiter {
	for _, s := range m.look(func(*waitingWorker) bool { return true }) {
		return s.waiter
	}
	return nil
}

// settle wakes after the commit the waiter that was found, and notes which workers can take
// nothing until they change.
func (m *matching) settle(found *waiter) {
	q := &m.e.waiters
	q.mu.Lock()
	defer q.mu.Unlock()
	q.offers++
	list := q.of[m.offer.agent]
	m.open(q.by[m.offer.freed])
	if m.offer.folder != "" {
		m.open(list)
	}
	for _, p := range m.full {
		p.full = true // by the state that the offer left
	}
	switch {
	case found != nil && !found.gone:
		q.call(found, m.offer.agent)
	case found != nil && len(list) > 0:
		q.call(list[0], m.offer.agent)
	case found == nil && !m.idle:
		// One that joined since may have looked before this change.
		for _, s := range list {
			if s.joined > m.joins {
				s.nudge()
			}
		}
	}
}

// open notes that workers which could take nothing may be able to again.
func (m *matching) open(list []*waiter) {
	for _, s := range list {
		for i := range s.workers {
			if p := &s.workers[i]; m.frees(p) {
				p.full = false
			}
		}
	}
}

// offerAgain lets others look for what a waiter was woken for and did not use.
func (e *Engine) offerAgain(ctx context.Context, s *waiter, agents []api.AgentID) {
	if len(agents) == 0 {
		return
	}
	err := e.write(context.WithoutCancel(ctx), func(*db.Tx) error {
		for _, agent := range agents {
			e.noteOffer(offer{agent: agent, except: s})
		}
		return nil
	})
	if err != nil {
		e.log.Warn("could not pass on what a held request was woken for; others look within seconds", "error", err)
	}
}
