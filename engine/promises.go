package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	found, err := e.walk(ctx, func(rule string, err error) error { return fmt.Errorf("check that %s: %w", rule, err) })
	return found.Broken, err
}

// Checked is what came of a check that had to end in time.
type Checked struct {
	Broken    []Violation
	Rules, Of int // how many were checked on every row, and how many there are
}

// CheckWithin is [Engine.Check] for at most so long: rules whose time is over, or that take
// longer than one read may, count as not checked.
func (e *Engine) CheckWithin(ctx context.Context, limit time.Duration) (Checked, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return e.walk(timed, func(rule string, err error) error {
		if ctx.Err() == nil && (timed.Err() != nil || errors.Is(err, db.ErrSlow)) {
			return nil
		}
		return fmt.Errorf("check that %s: %w", rule, err)
	})
}

// walk checks every rule. failed decides whether one that couldn't be checked ends the walk.
func (e *Engine) walk(ctx context.Context, failed func(rule string, err error) error) (out Checked, err error) {
	type check struct {
		rule string
		do   func(context.Context) ([]Violation, error)
	}
	var all []check
	for _, p := range promises {
		all = append(all, check{p.rule, func(ctx context.Context) ([]Violation, error) { return e.broken(ctx, p) }})
	}
	all = append(all, check{ruleReplay, e.replayAll}, check{ruleCircle, e.circles})
	out.Of = len(all)
	for _, c := range all {
		rows, err := c.do(ctx)
		out.Broken = append(out.Broken, rows...)
		if err == nil {
			out.Rules++
		} else if err := failed(c.rule, err); err != nil {
			return out, err
		}
	}
	return out, nil
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
