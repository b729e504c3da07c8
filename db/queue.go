package db

import (
	"context"
	"runtime"
	"sync"
)

// maxBatch bounds how many closures share a transaction, and so how long the
// first of them waits for the last and how long other processes are locked out.
const maxBatch = 512

// request is one call of [Store.Write].
type request struct {
	ctx context.Context
	fn  func(*Tx) error

	// Owned by the writer goroutine until the batch is done.
	settled bool     // the outcome is decided, whatever becomes of the transaction
	err     error    // the outcome
	after   []func() // what to call once the transaction is committed
}

func (r *request) settle(err error) {
	r.settled, r.err = true, err
}

// batch is the requests that are answered together.
type batch struct {
	requests []*request
	done     chan struct{} // closed when every request has its outcome
}

// queue holds the batches that wait for the writer goroutine.
type queue struct {
	wake chan struct{} // one token: there may be something to do

	mu      sync.Mutex
	batches []*batch
	refusal error // what later requests are answered; nil while the writer runs
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1)}
}

// join adds r to the last waiting batch.
func (q *queue) join(r *request) (*batch, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal != nil {
		return nil, q.refusal
	}
	if n := len(q.batches); n == 0 || len(q.batches[n-1].requests) == maxBatch {
		q.batches = append(q.batches, &batch{done: make(chan struct{})})
	}
	b := q.batches[len(q.batches)-1]
	b.requests = append(b.requests, r)
	q.ring()
	return b, nil
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for a batch. It returns nil when the queue is stopped and empty.
func (q *queue) next() *batch {
	for {
		// The callers just answered are runnable now. Letting them run once,
		// before the batch is closed to newcomers, keeps all of them in one
		// batch; otherwise two halves take turns and share half as well.
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
	if len(q.batches) == 0 {
		return nil, q.refusal != nil
	}
	b = q.batches[0]
	q.batches = q.batches[1:]
	return b, false
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

// refused answers what later requests are answered.
func (q *queue) refused() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refusal
}
