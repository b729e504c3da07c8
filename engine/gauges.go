package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
)

// Gauges are what is measured of the present state, of all workspaces together.
type Gauges struct {
	Open             []OpenGauge
	Workers          map[api.WorkerState]int64
	Unsent           int64         // reports that workers which are heard of hold
	UnsentFor        time.Duration // the longest that one of these workers got none of them taken
	DeliveriesWait   int64         // messages of webhooks that aren't delivered yet
	DeliveriesOldest time.Duration // how long the first of them has waited
	ScheduleErrors   int64         // agents whose schedule can't be understood any more
	Files            db.FileSizes
	Refusing         bool // writes are refused at the moment
}

// OpenGauge counts the sessions of an agent that have one open status.
type OpenGauge struct {
	Workspace, Agent string // slugs
	Status           api.Status
	N                int64
	Oldest           time.Duration // since the first of them was made, to the second
}

// Gauges reads them. It reads the indexes of what is open, so that it costs what waits and runs
// and not what ever ran.
func (e *Engine) Gauges(ctx context.Context) (Gauges, error) {
	g := Gauges{Workers: map[api.WorkerState]int64{api.Online: 0, api.WorkerStale: 0, api.Offline: 0}, Refusing: e.Trouble() != nil}
	now := e.Now()
	err := e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		open, err := tx.MeasureOpen(ctx)
		if err != nil {
			return fmt.Errorf("count open sessions: %w", err)
		}
		for _, r := range open {
			g.Open = append(g.Open, OpenGauge{r.Workspace, r.Agent, r.Status, r.N, age(r.Oldest, now)})
		}
		workers, err := tx.MeasureWorkers(ctx)
		if err != nil {
			return fmt.Errorf("count workers: %w", err)
		}
		for _, r := range workers {
			g.Workers[r.State] = r.N
			if r.State == api.Offline { // nobody knows what it holds by now
				continue
			}
			g.Unsent += r.Unsent
			if r.UnsentSince != 0 {
				g.UnsentFor = max(g.UnsentFor, now.Sub(api.At(r.UnsentSince).Time))
			}
		}
		deliveries, err := tx.MeasureDeliveries(ctx)
		if err != nil {
			return fmt.Errorf("count messages: %w", err)
		}
		g.DeliveriesWait, g.DeliveriesOldest = deliveries.N, age(deliveries.Oldest, now)
		if g.ScheduleErrors, err = tx.MeasureScheduleErrors(ctx); err != nil {
			return fmt.Errorf("count schedules: %w", err)
		}
		return nil
	})
	if err != nil {
		return g, err
	}
	g.Files, err = e.store.FileSizes(ctx)
	return g, err
}

// age is the time since an id was made; 0 = none.
func age(id int64, now time.Time) time.Duration {
	if id == 0 {
		return 0
	}
	return max(0, now.Sub(db.MadeAt(id)))
}
