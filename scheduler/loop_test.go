package scheduler

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runs records when a loop ran Do, as distances from the start. In a synctest bubble time
// stands still while anything runs, so they are exact.
type runs struct {
	start time.Time
	mu    sync.Mutex
	at    []time.Duration
}

func (r *runs) add() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Since(r.start))
	return len(r.at)
}

// inLoop runs a loop in a bubble for a stretch of its time, while meanwhile does what it
// likes, and returns when Do ran and what was logged.
func inLoop(t *testing.T, every, stretch time.Duration, do func(ctx context.Context, run int) (time.Time, error), meanwhile func(l *Loop)) (at []time.Duration, log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := &runs{start: time.Now()}
		l := &Loop{
			Name:  "test",
			Every: every,
			Log:   slog.New(slog.NewTextHandler(&out, nil)),
			Do:    func(ctx context.Context, _ time.Time) (time.Time, error) { return do(ctx, r.add()) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.Run(ctx)
		}()
		if meanwhile != nil {
			meanwhile(l)
		}
		time.Sleep(time.Until(r.start.Add(stretch)))
		synctest.Wait()
		cancel()
		<-ended
		at, log = r.at, out.String()
	})
	return at, log
}

func checkRuns(t *testing.T, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Do ran at (-want +got):\n%s", diff)
	}
}

const ms = time.Millisecond

func TestLoop_TicksWhenNothingIsKnown(t *testing.T) {
	at, log := inLoop(t, 30*time.Second, 95*time.Second,
		func(context.Context, int) (time.Time, error) { return time.Time{}, nil }, nil)
	checkRuns(t, at, 0, 30*time.Second, 60*time.Second, 90*time.Second)
	if log != "" {
		t.Errorf("logged %q", log)
	}
}

func TestLoop_RunsExactlyAtTheNextTime(t *testing.T) {
	at, _ := inLoop(t, 30*time.Second, 40*time.Second,
		func(_ context.Context, run int) (time.Time, error) {
			switch run {
			case 1:
				return time.Now().Add(1234567 * time.Microsecond), nil
			case 2:
				return time.Now().Add(5 * time.Second).UTC(), nil
			}
			return time.Now().Add(time.Hour), nil // past the tick
		}, nil)
	checkRuns(t, at, 0, 1234567*time.Microsecond, 6234567*time.Microsecond, 36234567*time.Microsecond)
}

func TestLoop_WakeRunsItAtOnceAndManyAreOne(t *testing.T) {
	at, _ := inLoop(t, 30*time.Second, 45*time.Second,
		func(context.Context, int) (time.Time, error) { return time.Time{}, nil },
		func(l *Loop) {
			time.Sleep(7 * time.Second)
			l.Wake()
			l.Wake()
			l.Wake()
			synctest.Wait()
			time.Sleep(time.Second)
			l.Wake()
		})
	checkRuns(t, at, 0, 7*time.Second, 8*time.Second, 38*time.Second)
}

func TestLoop_WakeWhileItRunsIsNotLost(t *testing.T) {
	at, _ := inLoop(t, 30*time.Second, 20*time.Second,
		func(context.Context, int) (time.Time, error) {
			time.Sleep(5 * time.Second)
			return time.Time{}, nil
		},
		func(l *Loop) {
			time.Sleep(3 * time.Second)
			l.Wake()
		})
	checkRuns(t, at, 0, 5*time.Second)
}

func TestLoop_WakeBeforeRunIsAnsweredByTheFirstRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runs{start: time.Now()}
		l := &Loop{Name: "test", Every: time.Minute, Do: func(context.Context, time.Time) (time.Time, error) {
			r.add()
			return time.Time{}, nil
		}}
		l.Wake() // nobody is receiving yet, and it must not block
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		l.Run(ctx)
		checkRuns(t, r.at, 0, time.Minute)
	})
}

func TestLoop_FailuresAreLoggedAndTriedAgainWithGrowingPauses(t *testing.T) {
	at, log := inLoop(t, 2*time.Second, 10*time.Second,
		func(_ context.Context, run int) (time.Time, error) {
			if run <= 6 {
				return time.Time{}, errors.New("disk full")
			}
			return time.Time{}, nil
		}, nil)
	// 250, 500, 1000, 2000 and no more than Every.
	checkRuns(t, at, 0, 250*ms, 750*ms, 1750*ms, 3750*ms, 5750*ms, 7750*ms, 9750*ms)
	if n := strings.Count(log, "loop failed"); n != 6 || !strings.Contains(log, "disk full") || !strings.Contains(log, "loop=test") {
		t.Errorf("logged %d failures:\n%s", n, log)
	}
	if strings.Count(log, "loop works again") != 1 || !strings.Contains(log, "failures=6") {
		t.Errorf("the end of the failures is not told:\n%s", log)
	}
}

func TestLoop_PausesStartSmallAgainAfterASuccess(t *testing.T) {
	at, _ := inLoop(t, 4*time.Second, 6*time.Second,
		func(_ context.Context, run int) (time.Time, error) {
			if run == 3 {
				return time.Time{}, nil
			}
			return time.Time{}, errors.New("no")
		}, nil)
	checkRuns(t, at, 0, 250*ms, 750*ms, 4750*ms, 5000*ms, 5500*ms)
}

func TestLoop_AFailureDoesNotDelayTheNextTime(t *testing.T) {
	at, _ := inLoop(t, 30*time.Second, 20*time.Second,
		func(_ context.Context, run int) (time.Time, error) {
			switch run {
			case 1:
				return time.Time{}, errors.New("no")
			case 2, 3, 4, 5, 6: // pauses of 500 ms to 8 s, with a time ahead
				return time.Now().Add(700 * ms), errors.New("no")
			case 7: // behind: the pause counts
				return time.Now().Add(-time.Second), errors.New("no")
			}
			return time.Time{}, nil
		}, nil)
	checkRuns(t, at, 0, 250*ms, 750*ms, 1450*ms, 2150*ms, 2850*ms, 3550*ms, 19550*ms)
}

func TestLoop_AStormOfWakesDoesNotMakeAFailingLoopSpin(t *testing.T) {
	at, log := inLoop(t, 30*time.Second, 2*time.Second,
		func(context.Context, int) (time.Time, error) { return time.Time{}, errors.New("no") },
		func(l *Loop) {
			for range 2000 {
				l.Wake()
				time.Sleep(ms)
			}
		})
	if len(at) < 7 || len(at) > 9 || strings.Count(log, "loop failed") != len(at) {
		t.Errorf("in 2 s it ran %d times, want one each 250 ms: %v", len(at), at)
	}
}

func TestLoop_ATimeInThePastDoesNotMakeItSpin(t *testing.T) {
	at, _ := inLoop(t, 30*time.Second, 5*time.Second,
		func(_ context.Context, run int) (time.Time, error) {
			if run == 9 {
				return time.Now().Add(ms), nil
			}
			return time.Now().Add(-time.Hour), nil
		}, nil)
	checkRuns(t, at, 0, 10*ms, 30*ms, 70*ms, 150*ms, 310*ms, 630*ms, 1270*ms, 2270*ms,
		2271*ms, 2281*ms, 2301*ms, 2341*ms, 2421*ms, 2581*ms, 2901*ms, 3541*ms, 4541*ms)
}

func TestLoop_LivesOnAfterAPanic(t *testing.T) {
	at, log := inLoop(t, 30*time.Second, 40*time.Second,
		func(_ context.Context, run int) (time.Time, error) {
			if run == 1 {
				var none *runs
				none.at = nil
			}
			return time.Time{}, nil
		}, nil)
	checkRuns(t, at, 0, 250*ms, 30250*ms)
	if !strings.Contains(log, "loop panicked") || !strings.Contains(log, "nil pointer") || !strings.Contains(log, "loop_test.go") {
		t.Errorf("the panic and where it was are not told:\n%s", log)
	}
}

func TestLoop_EndsWithItsContextAlsoInAPauseOrInDo(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, now time.Time) (time.Time, error){
		"between runs":      func(context.Context, time.Time) (time.Time, error) { return time.Time{}, nil },
		"after a failure":   func(context.Context, time.Time) (time.Time, error) { return time.Time{}, errors.New("no") },
		"while Do is at it": func(ctx context.Context, _ time.Time) (time.Time, error) { <-ctx.Done(); return time.Time{}, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
				defer cancel()
				l := &Loop{Name: "test", Every: time.Hour, Do: do, Log: slog.New(slog.NewTextHandler(&out, nil))}
				l.Run(ctx)
				if took := time.Since(start); took != 100*ms {
					t.Errorf("ended after %s", took)
				}
				if strings.Contains(out.String(), "deadline") {
					t.Errorf("its own end is logged as a failure: %s", out.String())
				}
			})
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := &Loop{Name: "test", Every: time.Hour, Do: func(context.Context, time.Time) (time.Time, error) {
		t.Error("Do ran under a context that had ended")
		return time.Time{}, nil
	}}
	l.Run(ended)
}

func TestLoop_RefusesToRunWithoutEveryOrDo(t *testing.T) {
	do := func(context.Context, time.Time) (time.Time, error) { return time.Time{}, nil }
	for _, l := range []*Loop{{Name: "no tick", Do: do}, {Name: "no work", Every: time.Second}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it ran", l.Name)
				}
			}()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			l.Run(ctx)
		}()
	}
}

// The loop keeps a real schedule's slot to the instant.
func TestLoop_KeepsASchedule(t *testing.T) {
	s := must(t, "*/20 * * * *", "Asia/Kathmandu")
	at, _ := inLoop(t, time.Hour, 61*time.Minute,
		func(context.Context, int) (time.Time, error) {
			now := time.Now()
			return s.Next(now, now), nil
		}, nil)
	// Bubbles start at midnight UTC, 05:45 in Kathmandu.
	checkRuns(t, at, 0, 15*time.Minute, 35*time.Minute, 55*time.Minute)
}

// While Do is running more comes due. It is an instant later than the now of that run, so the
// loop runs again at once, however often that happens in a row.
func TestLoop_WhatComesDueDuringTheWorkIsHandledAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	var instants []time.Duration
	for at := time.Duration(0); len(instants) < 1000; {
		at += ms + time.Duration(r.Int64N(int64(9*ms)))
		instants = append(instants, at)
	}
	handled := 0
	var worst time.Duration
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l := &Loop{Name: "test", Every: 30 * time.Second, Do: func(_ context.Context, now time.Time) (time.Time, error) {
			for handled < len(instants) && !start.Add(instants[handled]).After(now) {
				worst = max(worst, time.Since(start)-instants[handled])
				handled++
			}
			time.Sleep(7 * ms)
			if handled == len(instants) {
				return time.Time{}, nil
			}
			return start.Add(instants[handled]), nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		l.Run(ctx)
	})
	if handled != len(instants) || worst > 200*ms {
		t.Errorf("handled %d of %d instants, the last of them %s late", handled, len(instants), worst)
	}
}
