package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
)

// fromEnv is a number that the environment may set.
func fromEnv(b *testing.B, name string, otherwise int) int {
	b.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkRetentionOfBusyDays lives through days of many sessions, each with a KiB of output, at
// retention in days what is months by default, and says after each day how large the file is. It
// ends with days on which nothing runs. Run it once, with -benchtime 1x: STINT_RETENTION_SESSIONS
// are the sessions of a day, STINT_RETENTION_DAYS the days.
func BenchmarkRetentionOfBusyDays(b *testing.B) {
	perDay, days := fromEnv(b, "STINT_RETENTION_SESSIONS", 2000), fromEnv(b, "STINT_RETENTION_DAYS", 8)
	for b.Loop() {
		s := newBench(b, 0)
		cfg := engine.DefaultConfig()
		cfg.Log = slog.New(slog.DiscardHandler) // each day is an outage to it
		cfg.Retention.Output.Age, cfg.Retention.Events.Age, cfg.Retention.Sessions.Age = day, day, 3*day
		s.e = engine.New(s.store, cfg)
		var most, bound int64 // in bytes: of the file at its largest, and in use after the day that filled it
		var told strings.Builder
		for d := range days + 4 {
			began := time.Now()
			if d < days {
				s.workers = nil
				for i := range 64 {
					s.workers = append(s.workers, s.addWorker(b, "bench", "w"+strconv.Itoa(i)))
				}
				s.run(b, len(s.workers), perDay, s.talkative)
			}
			ran := time.Since(began)
			s.later.Add(int64(day))
			steps := s.pruned(b)
			if _, err := s.store.GiveBack(context.Background()); err != nil {
				b.Fatal(err)
			}
			sizes, err := s.store.FileSizes(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			most = max(most, sizes.Database)
			if d == min(4, days-1) {
				bound = sizes.Database - sizes.Free
			}
			fmt.Fprintf(&told, "\nday %d: %v of sessions, %v of retention in %d steps; the file has %d KiB, %d of it free",
				d+1, ran.Round(time.Second), (time.Since(began) - ran).Round(time.Second), steps, sizes.Database>>10, sizes.Free>>10)
			if d == days+3 {
				b.ReportMetric(float64(sizes.Database)/float64(most), "left-at-the-end")
			}
		}
		b.Log(told.String())
		b.ReportMetric(float64(most)/(1<<20), "MiB-at-most")
		b.ReportMetric(float64(most)/float64(bound), "of-its-bound")
	}
}

// talkative is cycle with a KiB of output.
func (s *bench) talkative(worker api.WorkerID) error {
	ctx := context.Background()
	if _, _, err := s.e.CreateSession(ctx, s.c, "bench", api.SessionInput{Prompt: new("Say hello.")}, engine.Idempotency{}); err != nil {
		return err
	}
	claim, err := s.e.ClaimNext(ctx, s.c, api.ClaimNextRequest{WorkerIDs: []api.WorkerID{worker}})
	if err != nil {
		return err
	}
	proof := api.UnderClaim{ClaimID: claim.ClaimID}
	text := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 24)
	if _, err := s.e.AddItems(ctx, s.c, worker, claim.SessionID, api.ItemsRequest{UnderClaim: proof, Items: []api.ItemInput{{ClientID: "1", Kind: api.ItemText, Text: text}}}); err != nil {
		return err
	}
	_, err = s.e.Complete(ctx, s.c, worker, claim.SessionID, api.CompleteRequest{UnderClaim: proof, Result: "hello"})
	return err
}

// pruned removes what is old without the pauses between the steps.
func (s *bench) pruned(b *testing.B) (steps int) {
	b.Helper()
	for {
		steps++
		next, err := s.e.Prune(context.Background(), s.store.Now())
		if err != nil {
			b.Fatal(err)
		}
		if next.IsZero() {
			return steps
		}
	}
}
