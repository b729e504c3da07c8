package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stint/account"
	"stint/api"
	"stint/queries"
)

// A calendar's bounds: programs that show one read all of it each time.
const (
	calendarAhead  = 31 * 24 * time.Hour
	calendarAgents = 200 // whose next slot is nearest
	calendarSlots  = 100 // of one agent, so that one that runs every minute hides no other
	calendarRuns   = 200 // that were told to wait for a time
)

// ComingRun is a run that is to start at a time.
type ComingRun struct {
	Agent   api.Agent
	Session api.SessionID // that exists already and waits for its time; 0 = a slot of the schedule
	At      time.Time
}

// Calendar lists the runs that start within the next 31 days, soonest first: the slots of
// schedules that aren't paused, at most 100 of one agent, and sessions that wait for a time and
// that the caller may see. Rights: viewer; an API key needs the scope calendar.
func (e *Engine) Calendar(ctx context.Context, c Caller) (runs []ComingRun, at time.Time, err error) {
	if err := c.May(account.SeeCalendar); err != nil {
		return nil, at, err
	}
	view, err := e.readView(ctx, c, func(r *viewReader) error {
		rows, err := r.q.ViewNextSlots(ctx, queries.ViewNextSlotsParams{WorkspaceID: c.WorkspaceID, N: calendarAgents})
		if err != nil {
			return fmt.Errorf("read the next slots: %w", err)
		}
		agents, err := r.shown(ctx, rows)
		if err != nil {
			return err
		}
		now := api.At(r.now).Time
		for _, a := range agents {
			for _, slot := range nextSlots(a, now, calendarSlots) {
				if a.Skips(slot.At) {
					continue // a person had it skipped
				}
				runs = append(runs, ComingRun{Agent: a, At: slot.At.Time})
			}
		}
		waiting, err := r.waiting(ctx, api.Pending, calendarRuns)
		if err != nil {
			return err
		}
		for _, v := range waiting {
			if v.NotBefore.After(now) {
				runs = append(runs, ComingRun{Agent: api.Agent{ID: v.AgentID, AgentInput: api.AgentInput{Slug: v.AgentSlug}}, Session: v.ID, At: v.NotBefore.Time})
			}
		}
		runs = slices.DeleteFunc(runs, func(r ComingRun) bool { return r.At.Sub(now) > calendarAhead })
		slices.SortStableFunc(runs, func(a, b ComingRun) int { return a.At.Compare(b.At) })
		return nil
	})
	return runs, view.At, err
}
