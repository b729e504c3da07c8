package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// 64 people claim one task at the same instant: one wins, and everybody else is told who and
// until when.
func TestTask_OneOfManyWinsTheClaim(t *testing.T) {
	w := enginetest.New(t)
	w.Task("One")
	people := make([]engine.Caller, 64)
	for i := range people {
		people[i] = w.Colleague(fmt.Sprintf("p%d", i), api.Member)
	}
	var won atomic.Int64
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, c := range people {
		wg.Go(func() {
			<-begin
			_, err := claimTask(w, c, "T-1")
			if err == nil {
				won.Add(1)
				return
			}
			if e := wantCode(t, err, api.CodeAlreadyClaimed); e.Holder == "" || e.ExpiresAt.IsZero() {
				t.Errorf("the refusal names %q until %v", e.Holder, e.ExpiresAt)
			}
		})
	}
	close(begin)
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d won", won.Load())
	}
	w.Check()
}

// What is next among 10,000 tasks, each of which waits for five others.
func BenchmarkNextTasks(b *testing.B) {
	w := enginetest.New(b)
	ctx := context.Background()
	for i := range 10_000 {
		w.Task(fmt.Sprintf("task %d", i), func(in *api.TaskInput) {
			if i%3 == 0 {
				in.Assignee = "me"
			}
			for k := 1; k <= 5 && i-k*7 >= 0; k++ {
				in.BlockedBy = append(in.BlockedBy, api.TaskKey(int64(i-k*7+1)))
			}
		})
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := w.NextTasks(ctx, w.Owner, 20); err != nil {
			b.Fatal(err)
		}
	}
}
