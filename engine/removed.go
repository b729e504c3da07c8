package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// What retention removed is kept for ever, in spans: the sessions of one owner that went on one
// day, with none of the workspace left between them. Spans of one owner don't overlap, and those
// of another grow over an id only when it is gone: so of the spans that have an id, the one of
// the earliest day is its own, if a session ever had it.

// spanOwner is whose spans a session goes into: its owner's if it is local, else those of all.
func spanOwner(s *sessionRow) api.UserID {
	if s.Mode == api.Local {
		return s.OwnerUserID
	}
	return 0
}

// noteGone notes that a session was removed today; its row is gone already.
func noteGone(tx *db.Tx, s *sessionRow) error {
	ctx := tx.Context()
	span := queries.PutSpanParams{WorkspaceID: s.WorkspaceID, OwnerUserID: spanOwner(s), FirstID: s.ID, LastID: s.ID, Day: dayNumber(db.Micros(tx.Now))}
	below, err := tx.SpanBelow(ctx, queries.SpanBelowParams{WorkspaceID: span.WorkspaceID, OwnerUserID: span.OwnerUserID, ID: s.ID})
	if err != nil && !db.None(err) {
		return fmt.Errorf("read the span before it: %w", err)
	}
	if err == nil && below.Day == span.Day {
		apart, err := sessionsBetween(ctx, tx, s.WorkspaceID, below.LastID, s.ID)
		if err != nil {
			return err
		}
		if !apart {
			span.FirstID = below.FirstID
		}
	}
	above, err := tx.SpanAbove(ctx, queries.SpanAboveParams{WorkspaceID: span.WorkspaceID, OwnerUserID: span.OwnerUserID, ID: s.ID})
	if err != nil && !db.None(err) {
		return fmt.Errorf("read the span after it: %w", err)
	}
	if err == nil && above.Day == span.Day {
		apart, err := sessionsBetween(ctx, tx, s.WorkspaceID, s.ID, above.FirstID)
		if err != nil {
			return err
		}
		if !apart {
			span.LastID = above.LastID
			if err := db.One(tx.DropSpan(ctx, queries.DropSpanParams{WorkspaceID: span.WorkspaceID, OwnerUserID: span.OwnerUserID, FirstID: above.FirstID})); err != nil {
				return fmt.Errorf("join the span after it: %w", err)
			}
		}
	}
	return tx.PutSpan(ctx, span)
}

func sessionsBetween(ctx context.Context, q queries.Querier, workspace api.WorkspaceID, after, before api.SessionID) (bool, error) {
	_, err := q.AnySessionBetween(ctx, queries.AnySessionBetweenParams{WorkspaceID: workspace, After: after, Before: before})
	if err != nil && !db.None(err) {
		return false, fmt.Errorf("see what is left beside it: %w", err)
	}
	return err == nil, nil
}

// wentOn is the day on which a session went that its caller could see; none if there was no such
// session, as far as that is known: an id within a span that no session ever had is as one of it.
func wentOn(ctx context.Context, q queries.Querier, c Caller, id api.SessionID) (day int64, gone bool, err error) {
	for _, owner := range []api.UserID{0, c.UserID} {
		span, err := q.SpanBelow(ctx, queries.SpanBelowParams{WorkspaceID: c.WorkspaceID, OwnerUserID: owner, ID: id})
		if err != nil && !db.None(err) {
			return 0, false, fmt.Errorf("see whether session %s was removed: %w", id, err)
		}
		if err == nil && span.LastID >= id && (!gone || span.Day < day) {
			day, gone = span.Day, true
		}
	}
	return day, gone, nil
}
