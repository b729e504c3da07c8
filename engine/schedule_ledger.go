package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

// Ledger lists what happened to the agent's slots, newest first (contract 3.6). Somebody
// else's local session isn't named.
func (e *Engine) Ledger(ctx context.Context, c Caller, ref string, page api.Page) (api.List[api.LedgerEntry], error) {
	out := api.List[api.LedgerEntry]{Items: []api.LedgerEntry{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		a, err := agentOf(ctx, tx, c, ref)
		if err != nil {
			return err
		}
		rows, err := tx.ListLedger(ctx, queries.ListLedgerParams{AgentID: a.ID, Before: api.LedgerID(before), N: n + 1})
		if err != nil {
			return fmt.Errorf("list the ledger of agent %s: %w", a.ID, err)
		}
		visible := newVisibility(tx, c)
		for i := range rows {
			if seen, err := visible.seesSession(ctx, rows[i].SessionID); err != nil {
				return err
			} else if !seen {
				rows[i].SessionID = 0
			}
		}
		out = db.ListOf(rows, n, toLedger, func(r queries.Ledger) int64 { return int64(r.ID) })
		return nil
	})
	return out, err
}

func toLedger(r queries.Ledger) api.LedgerEntry {
	out := api.LedgerEntry{
		ID: r.ID, Verdict: r.Verdict, Reason: r.Reason, FirstSlot: api.At(r.FirstSlot), LastSlot: api.At(r.LastSlot),
		Count: r.Slots, SessionID: r.SessionID, DecidedAt: api.At(r.DecidedAt),
	}
	if r.Verdict == api.SlotFired {
		out.Folded = r.Slots - 1
		out.LateBy = max(0, (r.DecidedAt-r.LastSlot)/1_000_000)
	}
	return out
}

// Preview says what a schedule means: words, warnings and the next n slots after
// from, by the scheduler's own code. n is 1 to 100. Error: invalid, naming schedule or timeZone.
func (e *Engine) Preview(_ context.Context, expr, zone string, from time.Time, n int) (api.SchedulePreview, error) {
	var v api.Invalid
	if n < 1 || n > 100 {
		v.Add("n", "must be 1 to 100")
	}
	now := e.Now()
	if from.IsZero() {
		from = now
	}
	s, err := scheduler.Parse(expr, zone, from)
	var bad *scheduler.Error
	switch {
	case errors.As(err, &bad):
		v.Add(bad.Field, bad.Reason)
	case err != nil:
		return api.SchedulePreview{}, fmt.Errorf("read the schedule: %w", err)
	}
	if err := v.Err(); err != nil {
		return api.SchedulePreview{}, err
	}
	return Previewed(s, expr, zone, from, now, n), nil
}

// Previewed is the preview of a schedule that was already read; the command line uses it
// without a coordinator.
func Previewed(s scheduler.Schedule, expr, zone string, from, now time.Time, n int) api.SchedulePreview {
	out := api.SchedulePreview{Schedule: expr, TimeZone: zone, Words: s.Words(), Warnings: s.Warnings(from), Slots: []api.SlotPreview{}}
	if out.Warnings == nil {
		out.Warnings = []string{}
	}
	for _, t := range s.Preview(from.Truncate(time.Second), from, n) {
		out.Slots = append(out.Slots, api.SlotPreview{
			At: api.Time{Time: t.UTC()}, Local: t.In(s.Zone()).Format(time.RFC3339), InSeconds: int64(t.Sub(now) / time.Second),
		})
	}
	return out
}
