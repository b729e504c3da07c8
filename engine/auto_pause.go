package engine

import (
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// countOutcome counts scheduled runs that ended in error in a row; at the limit the agent is
// paused. Cancels by people don't count, nor does a run whose work may not have been over; a
// success resets the count (contract 3.7).
func (e *Engine) countOutcome(tx *db.Tx, s *sessionRow) error {
	if s.Status == api.Cancelled || s.Outcome == api.OutcomeStopped {
		return nil // people ended it: that says nothing about the agent
	}
	if api.Marked(s.Outcome) {
		return nil
	}
	a, err := agentEvenDeleted(tx.Context(), tx, s.AgentID)
	if err != nil {
		return err
	}
	failures := int64(0)
	if s.Status == api.Failed {
		failures = a.FailuresInRow + 1
	}
	if failures != a.FailuresInRow {
		if err := db.One(tx.SetFailuresInRow(tx.Context(), queries.SetFailuresInRowParams{FailuresInRow: failures, ID: a.ID})); err != nil {
			return err
		}
	}
	if failures < e.cfg.AutoPauseAfter || a.Paused != 0 || a.DeletedAt != 0 {
		return nil
	}
	a.FailuresInRow, a.Paused, a.PausedAt = failures, 1, db.Micros(tx.Now)
	a.PausedReason = fmt.Sprintf("%d scheduled runs in a row ended in error", failures)
	plan(&a, tx.Now)
	a.Version, a.UpdatedAt = a.Version+1, db.Micros(tx.Now)
	if err := putAgent(tx, &a); err != nil {
		return err
	}
	return e.keepVersion(tx, api.ActorSystem, &a, api.EventAgentPaused)
}
