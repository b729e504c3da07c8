package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"stint/api"
	"stint/db"
)

// relook bounds how long a held request trusts the in-memory wake: another
// process on the same file can queue a session without it.
const relook = 15 * time.Second

// seats are the held claim-next requests. A session that becomes claimable wakes
// one waiting request of its agent; one that can't use it passes the wake on to
// the next that has not looked since, so that neither a dead connection nor a
// misfit swallows it, and a thousand waiters don't all look for one session.
type seats struct {
	mu      sync.Mutex
	count   uint64 // offers so far
	waiting map[api.AgentID][]*seat
}

// seat is one held request; q.mu guards its fields.
type seat struct {
	wake   chan struct{}
	agents []api.AgentID
	looked uint64                 // the count of offers at its last look
	woken  map[api.AgentID]uint64 // the offers that woke it and were not used yet
}

func (q *seats) take() *seat {
	return &seat{wake: make(chan struct{}, 1), woken: map[api.AgentID]uint64{}}
}

func (q *seats) offers() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// offer wakes one waiting request of the agent after the commit.
func (e *Engine) offer(tx *db.Tx, agent api.AgentID) {
	tx.AfterCommit(func() {
		q := &e.seats
		q.mu.Lock()
		defer q.mu.Unlock()
		q.count++
		if list := q.waiting[agent]; len(list) > 0 {
			q.call(list[0], agent, q.count)
		}
	})
}

// offerAll wakes every waiting request of the agent, for changes that may make
// more than one session claimable.
func (e *Engine) offerAll(tx *db.Tx, agent api.AgentID) {
	tx.AfterCommit(func() {
		q := &e.seats
		q.mu.Lock()
		defer q.mu.Unlock()
		q.count++
		for len(q.waiting[agent]) > 0 {
			q.call(q.waiting[agent][0], agent, q.count)
		}
	})
}

// sit puts the seat at the back of its agents' lists and notes that it looks now.
func (q *seats) sit(s *seat, agents []api.AgentID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(s)
	s.agents, s.looked = agents, q.count
	if q.waiting == nil {
		q.waiting = map[api.AgentID][]*seat{}
	}
	for _, agent := range agents {
		q.waiting[agent] = append(q.waiting[agent], s)
	}
}

// await waits for a wake or the relook interval; false means the end of the wait.
func (q *seats) await(ctx context.Context, s *seat, timeout <-chan time.Time) bool {
	again := time.NewTimer(relook)
	defer again.Stop()
	select {
	case <-s.wake:
		return true
	case <-again.C:
		return true
	case <-timeout:
		return false
	case <-ctx.Done():
		return false
	}
}

// pass hands unused wakes on to seats that have not looked since the offers.
func (q *seats) pass(s *seat) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handOn(s)
}

// leave gives the seat up after a claim on a session of the agent got, or 0
// without one. A wake that wasn't used goes on to another: one for another agent,
// one that came during the look, any if nothing was claimed.
func (q *seats) leave(s *seat, got api.AgentID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(s)
	select {
	case <-s.wake:
	default:
		delete(s.woken, got)
	}
	q.handOn(s)
}

func (q *seats) handOn(s *seat) {
	for agent, offer := range s.woken {
		for _, other := range q.waiting[agent] {
			if other != s && other.looked < offer {
				q.call(other, agent, offer)
				break
			}
		}
	}
	clear(s.woken)
}

// call takes a seat out of its lists and wakes it.
func (q *seats) call(s *seat, agent api.AgentID, offer uint64) {
	q.drop(s)
	s.woken[agent] = offer
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (q *seats) drop(s *seat) {
	for _, agent := range s.agents {
		list := q.waiting[agent]
		i := slices.Index(list, s)
		if i < 0 {
			continue
		}
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(q.waiting, agent)
		} else {
			q.waiting[agent] = list
		}
	}
}
