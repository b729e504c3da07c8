package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// A row that another one names may be missing, for example after a manual repair or a partial
// restore. Nothing fails because of that except what is about this very row: in its place
// there is one that is over. Readers see its id, and that it is gone.

const gone = "(missing)"

func agentEvenDeleted(ctx context.Context, q queries.Querier, id api.AgentID) (agentRow, error) {
	a, err := q.AgentEvenDeleted(ctx, id)
	if db.None(err) {
		return agentRow{
			ID: id, Slug: gone, Name: gone, Mode: api.Local, Type: api.TypeCommand, TimeZone: "UTC", MaxConcurrent: 1, MaxLapses: 1,
			Overlap: api.OverlapSkip, CatchUp: api.CatchUpNone, Paused: 1, PausedReason: "its row is missing", DeletedAt: 1,
		}, nil
	}
	return a, err
}

func workerEvenDeleted(ctx context.Context, q queries.Querier, id api.WorkerID) (workerRow, error) {
	w, err := q.WorkerEvenDeleted(ctx, id)
	if db.None(err) {
		return workerRow{ID: id, Name: gone, Mode: api.Local, State: api.Offline, Desired: api.DesiredStopped, DeletedAt: 1}, nil
	}
	return w, err
}

// claimOf is the claim that a session names.
func claimOf(ctx context.Context, q queries.Querier, s *sessionRow) (claimRow, error) {
	c, err := q.Claim(ctx, s.ClaimID)
	if db.None(err) {
		return claimRow{ID: s.ClaimID, SessionID: s.ID, AgentID: s.AgentID, ThreadID: s.ThreadID, Fence: s.Fence, ClosedAt: 1, Drained: 1}, nil
	}
	return c, err
}

// promptOf is the question that a session names.
func promptOf(ctx context.Context, q queries.Querier, s *sessionRow) (queries.Prompt, error) {
	p, err := q.Prompt(ctx, s.PromptID)
	if db.None(err) {
		return queries.Prompt{ID: s.PromptID, SessionID: s.ID, Kind: api.PromptText, Text: gone}, nil
	}
	return p, err
}

// Repair frees the sessions that are marked as running though no claim on them is live: they
// lapse, as if their worker were lost. It returns when to look again.
func (e *Engine) Repair(ctx context.Context, _ time.Time) (time.Time, error) {
	err := e.write(ctx, func(tx *db.Tx) error {
		lost, err := tx.SessionsWithoutClaim(tx.Context())
		if err != nil {
			return fmt.Errorf("look for sessions that run without a claim: %w", err)
		}
		for i := range lost {
			s := &lost[i]
			e.log.Error("a session was running without a live claim; it is free again", "session", s.ID.String(), "claim", s.ClaimID.String())
			c, err := claimOf(tx.Context(), tx, s)
			if err != nil {
				return err
			}
			a, err := agentEvenDeleted(tx.Context(), tx, s.AgentID)
			if err != nil {
				return err
			}
			if _, err := e.lapseClaim(tx, &c, s, &a, closedByLapse); err != nil {
				return fmt.Errorf("free session %s: %w", s.ID, err)
			}
		}
		return nil
	})
	return time.Time{}, err
}

// giveBack gives the space of what was removed back to the disk.
func (e *Engine) giveBack(ctx context.Context, _ time.Time) (time.Time, error) {
	pages, err := e.store.GiveBack(ctx)
	if pages > 0 {
		e.log.Info("space was given back to the disk", "pages", pages)
	}
	return time.Time{}, err
}
