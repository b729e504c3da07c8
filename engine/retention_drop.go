package engine

import (
	"context"
	"fmt"
	"slices"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// dropped is what a step removed.
type dropped struct {
	n     int64 // as the stage counts
	units int   // of those found, that it is through with: the next may be half gone
}

// dropThreads removes conversations, the newest session of each first, so that what is left
// after a crash still has its beginning. Whatever holds one since it was found is seen again.
func dropThreads(tx *db.Tx, b *pruneReach, units []pruneUnit, budget *pruneBudget) (out dropped, err error) {
	for _, u := range units {
		members, held, err := threadStays(tx, b, u)
		if err != nil {
			return out, err
		}
		if !held {
			whole, err := dropThread(tx, u.id, members, budget, &out.n)
			if err != nil || !whole {
				return out, err
			}
		}
		if out.units++; budget.spent() {
			break
		}
	}
	return out, nil
}

// dropThread removes a conversation, or what the budget allows of it: then it says false.
func dropThread(tx *db.Tx, thread int64, members []api.SessionID, budget *pruneBudget, n *int64) (whole bool, err error) {
	for i, id := range members {
		if i > 0 && budget.spent() {
			return false, nil
		}
		done, err := dropSession(tx, id, &budget.rows)
		if err != nil {
			return false, fmt.Errorf("remove session %s: %w", id, err)
		}
		if !done {
			return false, nil
		}
		*n++
	}
	if _, err := tx.DropThread(tx.Context(), api.ThreadID(thread)); err != nil {
		return false, fmt.Errorf("remove thread %s: %w", api.ThreadID(thread), err)
	}
	return true, nil
}

// threadStays reports whether something still needs a conversation that is old enough, else which
// of its sessions are left, the newest first.
func threadStays(tx *db.Tx, b *pruneReach, u pruneUnit) (left []api.SessionID, stays bool, err error) {
	ctx := tx.Context()
	members, err := tx.MembersOfThread(ctx, u.id)
	if err != nil {
		return nil, true, fmt.Errorf("read thread %s: %w", api.ThreadID(u.id), err)
	}
	for _, m := range members {
		if m.EndedAt == 0 || m.KeptAt != 0 || !slices.Contains(u.members, m.ID) {
			return nil, true, nil
		}
		if _, err := tx.UndrainedOfSession(ctx, m.ID); !db.None(err) {
			return nil, true, err
		}
		if waits, err := tx.Followers(ctx, m.ID); err != nil || len(waits) > 0 {
			return nil, true, err
		}
		if last, err := tx.LastEventOfSession(ctx, m.ID); err != nil || last > b.log {
			return nil, true, err
		}
		left = append(left, m.ID)
	}
	return left, false, nil
}

// dropSession removes a session with all that belongs to it, but not more than a number of rows;
// false when there is more. One that is half removed says so.
func dropSession(tx *db.Tx, id api.SessionID, rows *int64) (done bool, err error) {
	ctx := tx.Context()
	for _, drop := range []func(n int64) (int64, error){
		func(n int64) (int64, error) {
			return tx.DropItemsOf(ctx, queries.DropItemsOfParams{SessionID: id, N: n})
		},
		func(n int64) (int64, error) { return dropEventsOf(tx, id, n) },
		func(n int64) (int64, error) {
			return tx.DropActivitiesOf(ctx, queries.DropActivitiesOfParams{SessionID: id, N: n})
		},
	} {
		n, err := drop(*rows)
		if err != nil {
			return false, err
		}
		if *rows -= n; *rows > 0 {
			continue
		}
		if _, err := tx.MarkOutputRemoved(ctx, queries.MarkOutputRemovedParams{At: db.Micros(tx.Now), ID: id}); err != nil {
			return false, err
		}
		_, err = tx.MarkEventsRemoved(ctx, queries.MarkEventsRemovedParams{At: db.Micros(tx.Now), ID: id})
		return false, err
	}
	s, err := tx.Session(ctx, id)
	if err != nil {
		return false, err
	}
	for _, drop := range []func(context.Context, api.SessionID) (int64, error){
		tx.DropFilesOf, tx.DropAttachmentsOf, tx.DropChangesOf, tx.DropLandingsOf, tx.DropReviewOf, tx.DropOutputOf, tx.DropLateResultsOf, tx.DropMessagesOf, tx.DropPromptsOf, tx.DropClaimsOf,
	} {
		if _, err := drop(ctx, id); err != nil {
			return false, err
		}
	}
	if err := db.One(tx.DropSession(ctx, id)); err != nil {
		return false, err
	}
	return true, noteRemoved(tx, &s)
}

func dropEventsOf(tx *db.Tx, id api.SessionID, n int64) (int64, error) {
	last, err := tx.LastEventOfSession(tx.Context(), id)
	if err != nil || last == 0 {
		return 0, err
	}
	return tx.ForgetEvents(last, func() (int64, error) {
		return tx.DropEventsOf(tx.Context(), queries.DropEventsOfParams{SessionID: id, N: n})
	})
}

// dayNumber is a day as the number of days since 1970, UTC.
func dayNumber(at int64) int64 { return at / db.Span(aDay) }

// noteRemoved notes which session went; its figures stay (see figures.go).
func noteRemoved(tx *db.Tx, s *sessionRow) error {
	if err := noteGone(tx, s); err != nil {
		return fmt.Errorf("note that it is gone: %w", err)
	}
	return nil
}

// stays reports whether an ended session's output and events have to stay after all.
func stays(tx *db.Tx, id api.SessionID) (bool, error) {
	s, err := tx.Session(tx.Context(), id)
	if db.None(err) {
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("read session %s: %w", id, err)
	}
	if s.EndedAt == 0 || s.KeptAt != 0 {
		return true, nil
	}
	return threadHeld(tx.Context(), tx, s.ThreadID)
}

func dropOutputs(tx *db.Tx, _ *pruneReach, units []pruneUnit, budget *pruneBudget) (out dropped, err error) {
	for _, u := range units {
		id := api.SessionID(u.id)
		keep, err := stays(tx, id)
		if err != nil {
			return out, err
		}
		if !keep {
			whole, err := dropOutput(tx, id, budget)
			if err != nil {
				return out, fmt.Errorf("remove the output of session %s: %w", id, err)
			}
			if !whole {
				return out, nil
			}
			out.n++
		}
		if out.units++; budget.spent() {
			break
		}
	}
	return out, nil
}

// dropOutput removes a session's output, or what the budget allows of it: then it says false.
func dropOutput(tx *db.Tx, id api.SessionID, budget *pruneBudget) (whole bool, err error) {
	ctx := tx.Context()
	if _, err := tx.MarkOutputRemoved(ctx, queries.MarkOutputRemovedParams{At: db.Micros(tx.Now), ID: id}); err != nil {
		return false, fmt.Errorf("note that it goes: %w", err)
	}
	n, err := tx.DropItemsOf(ctx, queries.DropItemsOfParams{SessionID: id, N: budget.rows})
	if err != nil {
		return false, err
	}
	if budget.rows -= n; budget.rows <= 0 {
		return false, nil
	}
	for _, drop := range []func(context.Context, api.SessionID) (int64, error){tx.DropOutputOf, tx.DropFilesOf, tx.DropAttachmentsOf} {
		if _, err := drop(ctx, id); err != nil {
			return false, err
		}
	}
	return true, nil
}

func dropSessionEvents(tx *db.Tx, b *pruneReach, units []pruneUnit, budget *pruneBudget) (out dropped, err error) {
	for _, u := range units {
		id := api.SessionID(u.id)
		keep, err := stays(tx, id)
		if err != nil {
			return out, err
		}
		last, err := tx.LastEventOfSession(tx.Context(), id)
		if err != nil {
			return out, fmt.Errorf("read the last event of session %s: %w", id, err)
		}
		if !keep && last <= b.log {
			if _, err := tx.MarkEventsRemoved(tx.Context(), queries.MarkEventsRemovedParams{At: db.Micros(tx.Now), ID: id}); err != nil {
				return out, fmt.Errorf("note that the events of session %s go: %w", id, err)
			}
			n, err := dropEventsOf(tx, id, budget.rows)
			if err != nil {
				return out, fmt.Errorf("remove the events of session %s: %w", id, err)
			}
			out.n += n
			if budget.rows -= n; budget.rows <= 0 {
				return out, nil
			}
		}
		if out.units++; budget.spent() {
			break
		}
	}
	return out, nil
}

func dropNotes(kind string) func(tx *db.Tx, b *pruneReach, units []pruneUnit, budget *pruneBudget) (dropped, error) {
	return func(tx *db.Tx, b *pruneReach, units []pruneUnit, _ *pruneBudget) (out dropped, err error) {
		first, last := units[0].id, units[len(units)-1].id
		out.units = len(units)
		out.n, err = tx.ForgetEvents(last, func() (int64, error) {
			return tx.DropNotes(tx.Context(), queries.DropNotesParams{Type: kind, After: first - 1, Last: last, Before: b.before})
		})
		return out, err
	}
}

func dropAudit(tx *db.Tx, b *pruneReach, units []pruneUnit, _ *pruneBudget) (out dropped, err error) {
	first, last := units[0].id, units[len(units)-1].id
	out.units = len(units)
	out.n, err = tx.ForgetEvents(last, func() (int64, error) {
		return tx.DropAudit(tx.Context(), queries.DropAuditParams{After: first - 1, Last: last, Before: b.before, Reach: b.below})
	})
	return out, err
}

func dropDeliveries(tx *db.Tx, _ *pruneReach, units []pruneUnit, budget *pruneBudget) (out dropped, err error) {
	for _, u := range units {
		n, err := tx.DropDelivery(tx.Context(), api.DeliveryID(u.id))
		if err != nil {
			return out, fmt.Errorf("remove delivery %s: %w", api.DeliveryID(u.id), err)
		}
		out.n += n
		if out.units++; budget.spent() {
			break
		}
	}
	return out, nil
}
