package engine

import (
	"context"
	"fmt"
	"slices"

	"stint/db"
)

// Violation is one broken promise of contract 14 that the stored rows show.
type Violation struct {
	Rule   string // which promise, in a few words
	Detail string // the row that breaks it, without secrets
}

func (v Violation) String() string { return v.Rule + ": " + v.Detail }

// maxFound bounds what one rule reports; the first few rows are enough.
const maxFound = 20

// Check walks the whole database and reports every row that breaks a promise of contract 14:
// claims, leases, fences, caps, prompts, slots, the event log, and that each session that
// hasn't ended can still end. It changes nothing. Each rule is a separate read, so that a
// working coordinator isn't delayed; an error means that a rule could not be checked.
//
// The rules are written in SQL and, for the event log and for what tasks wait for, apart from the verbs: none of the code
// that they check takes part.
func (e *Engine) Check(ctx context.Context) ([]Violation, error) {
	var found []Violation
	for _, r := range promises {
		rows, err := e.broken(ctx, r)
		if err != nil {
			return found, fmt.Errorf("check that %s: %w", r.rule, err)
		}
		found = append(found, rows...)
	}
	replayed, err := e.replayAll(ctx)
	if err != nil {
		return found, fmt.Errorf("replay the event log: %w", err)
	}
	circles, err := e.circles(ctx)
	if err != nil {
		return found, fmt.Errorf("look for circles of tasks: %w", err)
	}
	return slices.Concat(found, replayed, circles), nil
}

// broken runs one rule: each row that its query returns is a violation.
func (e *Engine) broken(ctx context.Context, p promise) (found []Violation, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		found = nil
		rows, err := tx.Query(ctx, p.query, p.args(e, tx)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var detail string
			if err := rows.Scan(&detail); err != nil {
				return err
			}
			if len(found) < maxFound {
				found = append(found, Violation{Rule: p.rule, Detail: detail})
			}
		}
		return rows.Err()
	})
	return found, err
}

// promise is one rule: a query that finds what breaks it, as text.
type promise struct {
	rule  string
	query string
	timed bool // ?1 is the present, ?2 the longest possible lease, both in microseconds
}

func (p promise) args(e *Engine, tx *db.ReadTx) []any {
	if !p.timed {
		return nil
	}
	return []any{db.Micros(tx.Now), db.Span(max(e.cfg.MaxLease, e.cfg.Grace)), db.Span(max(e.cfg.OfflineAfter, e.cfg.Grace))}
}
