package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"stint/api"
)

// relook bounds how long a held request relies on the in-memory wake: another process on the
// same file can queue a session without it.
const relook = 15 * time.Second

// waiters are the held requests of workers. What may make a session claimable is noted as an
// offer; at the end of its transaction a waiter is looked for that can use it, by the gates
// that a claim obeys, and it is woken after the commit. A woken waiter ends its look with an
// offer of the same agent, whatever came of it, so that what is left goes to the next that can
// use it, and to nobody when there is nothing.
type waiters struct {
	noted []offer // of the current closure; closures never overlap

	mu     sync.Mutex // guards what follows, and the waiters' fields
	offers uint64     // so far
	joins  uint64     // so far
	of     map[api.AgentID][]*waiter
	by     map[api.WorkerID][]*waiter
}

// offer says that a session of an agent may have become claimable.
type offer struct {
	agent  api.AgentID
	freed  api.WorkerID // a place of this worker's became free; 0 = none
	folder string       // nothing runs here any more for the claim that ended; "" = none
	except *waiter      // it has just looked
}

// purpose says what a waiter does when it is woken.
type purpose int

const (
	toClaim   purpose = iota // it claims what it can: that uses up an offer
	toList                   // it shows its worker what it may claim; woken if nobody claims
	toControl                // it waits only for its worker's signal
)

// waiter is one held request.
type waiter struct {
	purpose purpose
	since   int64         // when a request that is held to claim came
	wake    chan struct{} // holds at most one wake
	workers []waitingWorker
	joined  uint64              // the count of joins when it joined last
	woken   map[api.AgentID]int // the offers that woke it and were not answered yet
	gone    bool                // it will not look again
}

// waitingWorker is what one worker of a waiter is to the agent it serves.
type waitingWorker struct {
	worker  api.WorkerID
	agent   api.AgentID
	process string // where the agent sessions are that it can resume
	folder  string // that only one session may use at once; "" = shared or none
	kind    string // workers of one kind are equal to every session that needs no particular process
	owner   api.UserID
	types   api.Labels
	labels  api.Labels
	full    bool // it can take nothing until the worker itself changes, or its folder is free
}

// same reports whether nothing has changed that matters to an offer.
func (p *waitingWorker) same(q *waitingWorker) bool {
	return p.worker == q.worker && p.agent == q.agent && p.process == q.process && p.folder == q.folder && p.kind == q.kind
}

func newWaiter(p purpose) *waiter {
	return &waiter{purpose: p, wake: make(chan struct{}, 1)}
}

// waitingWorkerOf is what a waiter knows of one of its workers.
func waitingWorkerOf(w *workerRow) waitingWorker {
	return waitingWorker{
		worker: w.ID, agent: w.AgentID, process: w.ProcessID, folder: plainFolder(w),
		kind:  string(w.Mode) + "\x00" + w.OwnerUserID.String() + "\x00" + strings.Join(w.Types, ",") + "\x00" + strings.Join(w.Labels, ","),
		owner: w.OwnerUserID, types: w.Types, labels: w.Labels,
	}
}

func (q *waiters) offered() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.offers
}

// join puts the waiter at the back of its agents' lists.
func (q *waiters) join(s *waiter, workers []waitingWorker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(s)
	q.joins++
	s.workers, s.joined = workers, q.joins
	if q.of == nil {
		q.of, q.by = map[api.AgentID][]*waiter{}, map[api.WorkerID][]*waiter{}
	}
	for _, p := range workers {
		q.by[p.worker] = append(q.by[p.worker], s)
		if s.purpose != toControl {
			q.of[p.agent] = append(q.of[p.agent], s)
		}
	}
}

// changed reports, after a look, whether a waiter's workers are no longer what
// they were when it joined.
func (q *waiters) changed(s *waiter, workers []waitingWorker) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range s.workers {
		s.workers[i].full = false // in what matters to an offer
	}
	return !slices.EqualFunc(s.workers, workers, func(a, b waitingWorker) bool { return a.same(&b) })
}

// untilFound calls look until it has found something, fails, or wait is over; it looks once when wait is
// 0. wake says that another look may find more; where a look returns another channel than the last
// one, it took it before it looked. Errors: those of look, and of a context that ended.
func untilFound(ctx context.Context, wait time.Duration, look func() (found bool, wake <-chan struct{}, err error)) error {
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		found, wake, err := look()
		if found || err != nil || wait <= 0 {
			return err
		}
		if !await(ctx, wake, over.C) {
			return ctx.Err()
		}
	}
}

// await waits for a wake or the relook interval; false means the end of the wait.
func await(ctx context.Context, wake <-chan struct{}, over <-chan time.Time) bool {
	again := time.NewTimer(relook)
	defer again.Stop()
	select {
	case <-wake:
		return true
	case <-again.C:
		return true
	case <-over:
		return false
	case <-ctx.Done():
		return false
	}
}

// calls are the offers that a waiter which looks now has to deal with.
func (q *waiters) calls(s *waiter) map[api.AgentID]int {
	if s == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(s.woken) == 0 {
		return nil
	}
	out := make(map[api.AgentID]int, len(s.woken))
	for agent, n := range s.woken {
		out[agent] = n
	}
	return out
}

// answered removes calls from a waiter whose look was committed.
func (q *waiters) answered(s *waiter, calls map[api.AgentID]int) {
	if len(calls) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for agent, n := range calls {
		if s.woken[agent] -= n; s.woken[agent] <= 0 {
			delete(s.woken, agent)
		}
	}
}

// leave removes the waiter from every list and returns the agents whose offers it leaves
// unanswered: somebody else has to look.
func (q *waiters) leave(s *waiter) (left []api.AgentID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(s)
	s.gone = true
	for agent := range s.woken {
		left = append(left, agent)
	}
	return left
}

// call wakes a waiter for an offer of an agent and removes it from the agents' lists, so that
// the next offer goes to another.
func (q *waiters) call(s *waiter, agent api.AgentID) {
	for _, p := range s.workers {
		takeOut(q.of, p.agent, s)
	}
	if s.woken == nil {
		s.woken = map[api.AgentID]int{}
	}
	s.woken[agent]++
	s.nudge()
}

func (s *waiter) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (q *waiters) drop(s *waiter) {
	for _, p := range s.workers {
		takeOut(q.of, p.agent, s)
		takeOut(q.by, p.worker, s)
	}
}

func takeOut[K comparable](lists map[K][]*waiter, key K, s *waiter) {
	list := lists[key]
	i := slices.Index(list, s)
	if i < 0 {
		return
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(lists, key)
	} else {
		lists[key] = list
	}
}
