package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// The bounds of the page of schedules.
const (
	schedulesPage   = 50
	schedulesComing = 40                 // agents whose next slot is nearest
	schedulesOften  = 8                  // more slots of one agent than that are told as a number
	schedulesMost   = 200                // slots of one agent that are counted
	notRunRows      = 200                // rows of the ledger
	notRunFor       = 7 * 24 * time.Hour // how long ago what didn't run is still shown
)

// SchedulesView is what the page of schedules shows.
type SchedulesView struct {
	View
	Agents []AgentView  // by slug
	Next   string       // slug to continue after; "" on the last page
	Coming []ComingRun  // slots within the span, soonest first, but for those of Often
	Often  []ComingMany // agents with many slots within the span, soonest first
	NotRun []NotRun     // of the last 7 days, the latest first
}

// ComingMany is an agent with more slots than a list should hold.
type ComingMany struct {
	Agent api.Agent
	First time.Time
	Count int  // within the span
	More  bool // there are still more than Count
}

// NotRun sums up the slots of one agent at which nothing ran.
type NotRun struct {
	Slug, Name      string
	Mode            api.Mode
	Skipped, Missed int64
	Last            api.LedgerEntry // the latest; it names no session
}

// SchedulesOf reads a page of the agents that have a schedule, after a slug; what comes within
// a span, of all; and what didn't run, of all. Rights: viewer.
func (e *Engine) SchedulesOf(ctx context.Context, c Caller, after string, span time.Duration) (out SchedulesView, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		rows, err := r.q.ViewSchedules(ctx, queries.ViewSchedulesParams{WorkspaceID: c.WorkspaceID, After: after, N: schedulesPage + 1})
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		if len(rows) > schedulesPage {
			rows = rows[:schedulesPage]
			out.Next = rows[schedulesPage-1].Slug
		}
		if out.Agents, err = r.agentViews(ctx, rows); err != nil {
			return err
		}
		if err := r.coming(ctx, &out, span); err != nil {
			return err
		}
		out.NotRun, err = r.notRun(ctx)
		return err
	})
	return out, err
}

// coming fills in the slots of a span.
func (r *viewReader) coming(ctx context.Context, out *SchedulesView, span time.Duration) error {
	rows, err := r.q.ViewNextSlots(ctx, queries.ViewNextSlotsParams{WorkspaceID: r.c.WorkspaceID, N: schedulesComing})
	if err != nil {
		return fmt.Errorf("read the next slots: %w", err)
	}
	agents, err := r.shown(ctx, rows)
	if err != nil {
		return err
	}
	now := api.At(r.now).Time
	for _, a := range agents {
		slots := nextSlots(a, now, schedulesMost)
		slots = slices.DeleteFunc(slots, func(s api.SlotPreview) bool { return s.At.Sub(now) > span })
		if len(slots) > schedulesOften {
			out.Often = append(out.Often, ComingMany{Agent: a, First: slots[0].At.Time, Count: len(slots), More: len(slots) == schedulesMost})
			continue
		}
		for _, s := range slots {
			out.Coming = append(out.Coming, ComingRun{Agent: a, At: s.At.Time})
		}
	}
	slices.SortStableFunc(out.Coming, func(a, b ComingRun) int { return a.At.Compare(b.At) })
	return nil
}

func (r *viewReader) notRun(ctx context.Context) (out []NotRun, err error) {
	rows, err := r.q.ViewNotRun(ctx, queries.ViewNotRunParams{WorkspaceID: r.c.WorkspaceID, Since: r.now - db.Span(notRunFor), N: notRunRows})
	if err != nil {
		return nil, fmt.Errorf("read what didn't run: %w", err)
	}
	for _, row := range rows {
		i := slices.IndexFunc(out, func(n NotRun) bool { return n.Slug == row.Slug })
		if i < 0 {
			last := toLedger(row.Ledger)
			last.SessionID = 0
			i, out = len(out), append(out, NotRun{Slug: row.Slug, Name: row.Name, Mode: row.Mode, Last: last})
		}
		if row.Ledger.Verdict == api.SlotMissed {
			out[i].Missed += row.Ledger.Slots
		} else {
			out[i].Skipped += row.Ledger.Slots
		}
	}
	return out, nil
}
