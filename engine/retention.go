package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// Retention says how long what is kept (contract 13.2). What runs, waits or was kept by somebody
// stays, whatever the limits say.
type Retention struct {
	Output     RetentionLimit // of ended sessions
	Sessions   RetentionLimit // that have ended, with all that belongs to them
	Events     RetentionLimit // of ended sessions, and what the coordinator notes by itself
	Audit      RetentionLimit // all other events
	Deliveries RetentionLimit // messages to webhooks and channels that are delivered or given up
}

// RetentionLimit is what is kept of one kind: what is within all of its bounds. 0 is no bound.
type RetentionLimit struct {
	Age   time.Duration // since the session ended, since the event, since the message was made
	Count int64         // of output, sessions and events: the newest sessions of each agent; of deliveries: the newest of each webhook; of the audit: entries
	Bytes int64         // of the newest, in all
}

// RetentionKinds are the kinds of which limits can be set, by their names.
var RetentionKinds = []struct {
	Name string
	In   func(*Retention) *RetentionLimit
}{
	{api.RetainOutput, func(r *Retention) *RetentionLimit { return &r.Output }},
	{api.RetainSessions, func(r *Retention) *RetentionLimit { return &r.Sessions }},
	{api.RetainEvents, func(r *Retention) *RetentionLimit { return &r.Events }},
	{api.RetainAudit, func(r *Retention) *RetentionLimit { return &r.Audit }},
	{api.RetainDeliveries, func(r *Retention) *RetentionLimit { return &r.Deliveries }},
}

const aDay = 24 * time.Hour

// DefaultRetention is what is kept unless somebody says otherwise.
func DefaultRetention() Retention {
	return Retention{
		Output: RetentionLimit{Age: 30 * aDay}, Sessions: RetentionLimit{Age: 180 * aDay}, Events: RetentionLimit{Age: 30 * aDay},
		Audit: RetentionLimit{Age: 365 * aDay}, Deliveries: RetentionLimit{Age: 30 * aDay},
	}
}

const (
	// Settled is how old everything is that retention removes: by then who reads the log has read
	// it, and nothing of what ended drains any more.
	Settled = time.Hour

	pruneEvery = time.Hour             // between two rounds
	prunePause = 10 * time.Millisecond // at least, between two steps
	pruneShare = 4                     // a pause is so many times as long as the step before it

	pruneLooks = 500 // rows that a step looks at
	pruneRows  = 300 // rows that a step removes
	pruneUnits = 20  // sessions that a look finds

	// A step's transaction holds up all other writers: after so long it begins nothing more, on
	// whatever machine.
	pruneHold = 2 * time.Millisecond
)

// pruning is a round of retention on its way: one kind after the other, from the oldest on.
type pruning struct {
	stage   int
	after   int64       // the place up to which the stage has looked
	last    bool        // there is nothing after it
	found   []pruneUnit // up to it, and still there
	bounds  *pruneReach // of the stage; nil = not known yet
	removed api.Removed // so far
}

// pruneBudget is what one step may still do.
type pruneBudget struct {
	rows int64
	over func() bool // it has held up the other writers for long enough
}

// spent reports whether a step is to begin nothing more.
func (b *pruneBudget) spent() bool { return b.rows <= 0 || b.over() }

// Prune takes one small step of retention and returns when the next is to follow: soon while a
// round isn't over, so that writes of others come between.
func (e *Engine) Prune(ctx context.Context, _ time.Time) (time.Time, error) {
	began := e.Now()
	more, err := e.pruneStep(ctx, &e.pruning)
	if err != nil || !more {
		return time.Time{}, err
	}
	ended := e.Now()
	return ended.Add(max(prunePause, pruneShare*ended.Sub(began))), nil
}

// pruneStep takes the next step of a round; false when it was the last one.
func (e *Engine) pruneStep(ctx context.Context, p *pruning) (more bool, err error) {
	e.pruneMu.Lock()
	defer e.pruneMu.Unlock()
	if p.stage >= len(pruneStages) {
		removed := p.removed
		*p = pruning{}
		return false, e.endRound(ctx, removed)
	}
	stage := pruneStages[p.stage]
	if len(p.found) == 0 {
		if err := e.pruneLook(ctx, p, stage); err != nil {
			return false, fmt.Errorf("look for old %s: %w", stage.kind, err)
		}
	}
	if len(p.found) > 0 {
		var done dropped
		err := e.write(ctx, func(tx *db.Tx) (err error) {
			began := e.Now()
			budget := pruneBudget{rows: pruneRows, over: func() bool { return e.Now().Sub(began) >= pruneHold }}
			done, err = stage.drop(tx, p.bounds, p.found, &budget)
			return err
		})
		if err != nil {
			return false, fmt.Errorf("remove old %s: %w", stage.kind, err)
		}
		*stage.count(&p.removed) += done.n
		p.found = p.found[done.units:]
	}
	if len(p.found) == 0 && p.last {
		*p = pruning{stage: p.stage + 1, removed: p.removed}
	}
	return true, nil
}

// pruneLook finds what a stage removes next.
func (e *Engine) pruneLook(ctx context.Context, p *pruning, stage pruneStage) error {
	return e.store.ReadTimer(ctx, func(tx *db.ReadTx) (err error) {
		if p.bounds == nil {
			if p.bounds, err = e.pruneReachOf(ctx, tx, stage); err != nil {
				return fmt.Errorf("find what is to stay: %w", err)
			}
		}
		found, err := stage.find(ctx, tx, p.bounds, p.after)
		if err != nil {
			return err
		}
		p.found, p.after, p.last = found.units, found.place, found.last
		return nil
	})
}

// endRound notes that everything was looked at, and what that removed.
func (e *Engine) endRound(ctx context.Context, removed api.Removed) error {
	text, err := json.Marshal(removed)
	if err != nil {
		return fmt.Errorf("write down what was removed: %w", err)
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		now := db.Micros(tx.Now)
		if removed == (api.Removed{}) {
			return db.One(tx.NoteLooked(tx.Context(), now))
		}
		err := db.One(tx.NoteRound(tx.Context(), queries.NoteRoundParams{LookedAt: now, RemovedAt: now, Removed: string(text)}))
		if err != nil {
			return err
		}
		return logHouse(tx, api.EventPruned, api.EventData{
			api.RetainOutput: removed.Output, api.RetainSessions: removed.Sessions, api.RetainEvents: removed.Events,
			api.RetainAudit: removed.Audit, api.RetainDeliveries: removed.Deliveries,
		})
	})
	if err != nil {
		return fmt.Errorf("note a round of retention: %w", err)
	}
	return nil
}

// PruneAll takes the steps of a round until it is over or ctx ends, and says what went. With
// dryRun it says what would go, and changes nothing. Rights: owner; admin for a dry run.
func (e *Engine) PruneAll(ctx context.Context, c Caller, dryRun bool) (out api.Pruned, err error) {
	right := account.Prune
	if dryRun {
		right = account.Audit
	}
	if err := c.May(right); err != nil {
		return out, err
	}
	if dryRun {
		return e.pruneDry(ctx)
	}
	var p pruning
	for more := true; more; {
		if ctx.Err() != nil {
			return out, nil
		}
		if more, err = e.pruneStep(ctx, &p); err != nil {
			return out, err
		}
		if more {
			out.Removed = p.removed
		}
	}
	out.Done = true
	return out, nil
}

// dryMost bounds what a dry run counts of each kind.
const dryMost = 50_000

// pruneDry counts what the next round would remove.
func (e *Engine) pruneDry(ctx context.Context) (out api.Pruned, err error) {
	out.Done = true
	gone := map[int64]bool{} // what goes with its session is not counted twice
	for _, stage := range pruneStages {
		var bounds *pruneReach
		n := stage.count(&out.Removed)
		for after, last := int64(0), false; !last; {
			err := e.store.ReadTimer(ctx, func(tx *db.ReadTx) (err error) {
				if bounds == nil {
					if bounds, err = e.pruneReachOf(ctx, tx, stage); err != nil {
						return err
					}
				}
				found, err := stage.find(ctx, tx, bounds, after)
				if err != nil {
					return err
				}
				for _, u := range found.units {
					if stage.ofSessions {
						if gone[u.id] {
							continue
						}
						if stage.kind == api.RetainSessions {
							for _, m := range u.members {
								gone[int64(m)] = true
							}
						}
					}
					add, err := stage.size(ctx, tx, u)
					if err != nil {
						return err
					}
					*n += add
				}
				after, last = found.place, found.last
				return nil
			})
			if err != nil {
				return out, fmt.Errorf("look for old %s: %w", stage.kind, err)
			}
			if *n >= dryMost {
				out.Done = false
				break
			}
		}
	}
	return out, nil
}

// retentionState is what an admin is told of retention.
func (e *Engine) retentionState(ctx context.Context) (out api.RetentionState, err error) {
	limits := e.cfg.Retention
	for _, k := range RetentionKinds {
		l := k.In(&limits)
		out.Limits = append(out.Limits, api.RetentionLimit{Kind: k.Name, AgeSeconds: int64(l.Age / time.Second), Count: l.Count, Bytes: l.Bytes})
	}
	var row queries.Retention
	err = e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		row, err = tx.RetentionState(ctx)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("read what became of retention: %w", err)
	}
	out.LookedAt, out.RemovedAt = api.At(row.LookedAt), api.At(row.RemovedAt)
	if row.LookedAt != 0 {
		out.NextAt = api.At(row.LookedAt + db.Span(pruneEvery))
	}
	if row.Removed != "" {
		out.Removed = &api.Removed{}
		if err := json.Unmarshal([]byte(row.Removed), out.Removed); err != nil {
			return out, fmt.Errorf("read what retention removed: %w", err)
		}
	}
	return out, nil
}
