package engine

import (
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const maxMarkReason = 500 // bytes

// mark notes on a session why it will be no plain success when it ends well. It outlasts
// claims: what was refused before a lapse or a release was refused (contract 15.4).
func (e *Engine) mark(tx *db.Tx, s *sessionRow, m api.Mark, reason string) error {
	before := gravest(s)
	switch m {
	case api.MarkRefused:
		s.Refused++
	case api.MarkToolFailed:
		s.ToolsFailed++
	case api.MarkUnmet:
		s.Unmet = 1
	}
	if s.MarkReason == "" || gravest(s) != before {
		s.MarkReason = api.Excerpt(reason, maxMarkReason)
	}
	err := db.One(tx.MarkSession(tx.Context(), queries.MarkSessionParams{
		Refused: s.Refused, ToolsFailed: s.ToolsFailed, Unmet: s.Unmet, MarkReason: s.MarkReason, ID: s.ID, ClaimID: s.ClaimID,
	}))
	if err != nil {
		return fmt.Errorf("mark session %s: %w", s.ID, err)
	}
	return nil
}

// gravest is the outcome that a session's marks give it, "" without one that counts.
func gravest(s *sessionRow) string {
	switch {
	case s.Unmet != 0:
		return api.OutcomeUnmet
	case s.Refused > 0:
		return api.OutcomeRefused
	case s.ToolsFailed > 0:
		return api.OutcomeToolless
	}
	return ""
}

// completed is the outcome of a session that its worker calls complete: a person's stop comes
// first, then its marks, whatever its worker calls that (contract 2.5, 15.4).
func completed(s *sessionRow, said string) string {
	if s.StopRequestedAt != 0 || said == api.OutcomeStopped {
		return api.OutcomeStopped
	}
	if marked := gravest(s); marked != "" {
		return marked
	}
	return said
}
