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

const (
	pageEvents     = 200
	pageActivities = 100
	pageAttempts   = 20
	medianOf       = 20 // complete runs that the expected length is taken from
)

// SessionPage is everything that a session's page shows except its output.
type SessionPage struct {
	View
	Session    SessionView
	Agent      api.Agent
	AgentGone  bool
	Events     []api.Event    // newest first, the latest 200
	Activities []api.Activity // newest first, the latest 100
	Attempts   []RunView      // of the thread, oldest first
	Names      map[string]string
	Expected   time.Duration // median length of the last complete runs; 0 = unknown
	LastItem   int64         // sequence number of the newest output
	MayAnswer  bool          // the caller may answer its prompts and write to it
	Changes    *ChangesView  // nil when none were recorded
}

// SessionPageOf reads a session's page. Errors: not_found.
func (e *Engine) SessionPageOf(ctx context.Context, c Caller, id api.SessionID) (out SessionPage, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		s, err := visible(ctx, r.q, c, id)
		if err != nil {
			return err
		}
		if out.Session, err = r.session(ctx, s); err != nil {
			return err
		}
		out.MayAnswer = c.MayWith(s, account.ToAnswer) == nil
		if out.Changes, err = r.changes(ctx, s); err != nil {
			return err
		}
		a, err := r.agent(ctx, s.AgentID)
		if err != nil {
			return err
		}
		if out.Agent, err = e.presentAgent(ctx, r.q, a); err != nil {
			return fmt.Errorf("present agent %s: %w", a.Slug, err)
		}
		out.AgentGone = a.DeletedAt != 0
		events, err := r.q.EventsOfSession(ctx, queries.EventsOfSessionParams{SessionID: id, Before: maxSeq, N: pageEvents})
		if err != nil {
			return fmt.Errorf("read the events of session %s: %w", id, err)
		}
		for _, ev := range events {
			out.Events = append(out.Events, toEvent(ev))
		}
		if err := newVisibility(r.q, c).redactAll(ctx, out.Events); err != nil {
			return err
		}
		activities, err := r.q.ListActivities(ctx, queries.ListActivitiesParams{SessionID: id, Before: maxSeq, N: pageActivities})
		if err != nil {
			return fmt.Errorf("read the activities of session %s: %w", id, err)
		}
		for _, act := range activities {
			out.Activities = append(out.Activities, toActivity(act))
		}
		if out.LastItem, err = r.q.LastItem(ctx, id); err != nil {
			return fmt.Errorf("find the newest output of session %s: %w", id, err)
		}
		if out.Names, err = r.names(ctx, out.Events); err != nil {
			return err
		}
		if out.Attempts, err = r.attempts(ctx, s); err != nil {
			return err
		}
		out.Expected, err = r.expected(ctx, s.AgentID)
		return err
	})
	return out, err
}

// names are the names of the actors of events, by the actor's text. An actor that is not in it
// is shown by that text.
func (r *viewReader) names(ctx context.Context, events []api.Event) (map[string]string, error) {
	out := map[string]string{}
	for _, ev := range events {
		if _, known := out[ev.Actor]; known {
			continue
		}
		var user api.UserID
		var worker api.WorkerID
		name, err := "", error(nil)
		switch {
		case user.UnmarshalText([]byte(ev.Actor)) == nil && user == r.c.UserID:
			name = "You"
		case user != 0:
			name, err = r.user(ctx, user)
		case worker.UnmarshalText([]byte(ev.Actor)) == nil && worker != 0:
			var w *workerRow
			if w, err = r.worker(ctx, worker); err == nil {
				name = w.Name
			}
		}
		if err != nil {
			return nil, err
		}
		if name != "" {
			out[ev.Actor] = name
		}
	}
	return out, nil
}

// attempts are the sessions of the same thread, this one included.
func (r *viewReader) attempts(ctx context.Context, s *sessionRow) ([]RunView, error) {
	search, err := r.e.search(ctx, r.q, r.c, api.SessionFilter{ThreadID: s.ThreadID, Archived: true})
	if err != nil {
		return nil, err
	}
	rows, err := search.rows(ctx, maxSeq, pageAttempts)
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", s.ThreadID, err)
	}
	out := make([]RunView, 0, len(rows))
	for _, row := range rows {
		out = append(out, RunView{
			ID: row.ID, Status: row.Status, Title: row.Title, CreatedAt: api.At(row.CreatedAt).Time,
			StartedAt: api.At(row.StartedAt).Time, EndedAt: api.At(row.EndedAt).Time, Stopped: row.Outcome == api.OutcomeStopped,
			Mark: api.MarkWord(row.Outcome),
		})
	}
	slices.Reverse(out)
	return out, nil
}

// expected is how long a run of the agent usually takes.
func (r *viewReader) expected(ctx context.Context, agent api.AgentID) (time.Duration, error) {
	runs, err := r.runs(ctx, agent, 3*medianOf)
	if err != nil {
		return 0, err
	}
	return medianRun(runs), nil
}

func medianRun(runs []RunView) time.Duration {
	var took []time.Duration
	for i := len(runs) - 1; i >= 0 && len(took) < medianOf; i-- {
		if run := runs[i]; run.Good() && !run.StartedAt.IsZero() {
			took = append(took, run.EndedAt.Sub(run.StartedAt))
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// Author is the name of somebody who wrote into a session, “You” for the caller. Errors:
// not_found.
func (e *Engine) Author(ctx context.Context, c Caller, id api.SessionID, user api.UserID) (name string, err error) {
	if user == c.UserID {
		return "You", nil
	}
	_, err = e.readView(ctx, c, func(r *viewReader) error {
		if _, err := visible(ctx, r.q, c, id); err != nil {
			return err
		}
		name, err = r.user(ctx, user)
		return err
	})
	return name, err
}
