package db

import (
	"context"
	"runtime"
	"sync"
)

// maxBatch bounds how many closures share a transaction, and so how long the first of them
// waits for the last and how long other processes are locked out.
const maxBatch = 512

// request is one call of [Store.Write].
type request struct {
	ctx context.Context
	fn  func(*Tx) error

	// These belong to the owner of the writer until the request is answered.
	settled bool      // the outcome is decided, whatever happens to the transaction
	err     error     // the outcome
	after   []func()  // what to call once the transaction is committed
	room    [6]func() // where after begins: few closures register more
}

func (r *request) settle(err error) {
	r.settled, r.err = true, err
}

// batch is the requests that are answered together.
type batch struct {
	requests []*request
	done     chan struct{} // closed when every request has its outcome
}

// owner says who uses the writer's connection. Ownership passes under the queue's lock, so
// that each owner sees everything the one before it did.
type owner int

const (
	nobody owner = iota
	caller       // a single caller, on its own goroutine
	loop         // the writer goroutine
)

// queue holds the batches that wait for the writer's connection, and says whose turn it is.
type queue struct {
	wake chan struct{} // one token: the writer goroutine has to look

	mu      sync.Mutex
	owner   owner
	batches []*batch // not empty only while there is an owner
	refusal error    // the answer to later requests; nil while the writer runs
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1)}
}

// join adds r to the last waiting batch. When nothing is being written it returns nil instead:
// the caller then owns the connection, runs r itself and has to leave. A lone caller thus pays
// for no switch between goroutines, which on a busy machine costs as much as its commit.
func (q *queue) join(r *request) (*batch, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.refusal != nil:
		return nil, q.refusal
	case q.owner == nobody:
		q.owner = caller
		return nil, nil
	}
	if n := len(q.batches); n == 0 || len(q.batches[n-1].requests) == maxBatch {
		q.batches = append(q.batches, &batch{done: make(chan struct{})})
	}
	b := q.batches[len(q.batches)-1]
	b.requests = append(b.requests, r)
	return b, nil
}

// leave ends a caller's ownership. The writer goroutine takes the requests that came
// meanwhile.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.owner = nobody
	if len(q.batches) > 0 {
		q.owner = loop
	}
	if q.owner == loop || q.refusal != nil {
		q.ring()
	}
}

// rest ends the writer goroutine's ownership if there is only one caller, which is about to be
// answered: its next request need not come here.
func (q *queue) rest(answered int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if answered == 1 && len(q.batches) == 0 {
		q.owner = nobody
	}
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits until the writer goroutine owns the connection and returns the first batch. It
// returns nil when the queue is stopped and empty.
func (q *queue) next() *batch {
	for {
		// The callers just answered are runnable now. Letting them run once, before the batch
		// is closed to newcomers, keeps all of them in one batch; otherwise two halves
		// alternate and each shares only half as well.
		runtime.Gosched()
		if b, stopped := q.take(); b != nil || stopped {
			return b
		}
		<-q.wake
	}
}

func (q *queue) take() (b *batch, stopped bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owner == loop && len(q.batches) > 0 {
		b = q.batches[0]
		q.batches = q.batches[1:]
		return b, false
	}
	if q.owner == loop {
		q.owner = nobody
	}
	return nil, q.owner == nobody && q.refusal != nil
}

// stop refuses later requests with err. The first refusal stays. Requests that
// already wait are still taken by next.
func (q *queue) stop(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal == nil {
		q.refusal = err
	}
	q.ring()
}

// refused returns the answer to later requests.
func (q *queue) refused() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refusal
}
