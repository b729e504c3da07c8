package engine

import (
	"context"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Deadlines answers prompts whose time is over with the default that they named (contract
// 6.5). It returns the first deadline later than now.
func (e *Engine) Deadlines(ctx context.Context, now time.Time) (time.Time, error) {
	return e.handle(ctx, now, timed{
		what: "answer a prompt at its deadline",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			rows, err := tx.DueDeadlines(ctx, queries.DueDeadlinesParams{Now: now, N: n})
			return keysOf(rows, func(id api.PromptID) int64 { return int64(id) }), err
		},
		do:   e.atDeadline,
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) { return tx.NextDeadline(ctx, now) },
	})
}

// atDeadline gives a prompt its default answer, if it is still open.
func (e *Engine) atDeadline(tx *db.Tx, id int64) error {
	p, err := tx.Prompt(tx.Context(), api.PromptID(id))
	if err != nil {
		return err
	}
	if p.ClosedAt != 0 || p.DeadlineAt > db.Micros(tx.Now) {
		return nil
	}
	asked, err := toPrompt(p)
	if err != nil {
		return err
	}
	s, err := tx.Session(tx.Context(), p.SessionID)
	if err != nil {
		return err
	}
	return e.answerTx(tx, &s, &asked, *asked.Default, api.ActorDeadline)
}
