package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// count adds an ended session to the figures of its day, in the transaction that ends it: each
// session is counted once, and stays counted when retention removes it.
func count(tx *db.Tx, s *sessionRow) error {
	f := queries.AddFiguresParams{
		AgentID: s.AgentID, OwnerUserID: figuresOwner(s), Day: dayNumber(s.EndedAt), Session: s.ID,
		Complete: db.Flag(s.Status == api.Complete), Failed: db.Flag(s.Status == api.Failed), Cancelled: db.Flag(s.Status == api.Cancelled),
		Marked:      db.Flag(s.Status == api.Complete && (api.Marked(s.Outcome) || s.Outcome == api.OutcomeStopped)),
		InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CostMicros: s.CostMicros, Turns: s.Turns,
	}
	if s.StartedAt != 0 {
		f.Started = 1
		f.RunSeconds = max(0, s.EndedAt-s.StartedAt) / 1_000_000
		f.WaitSeconds = max(0, s.StartedAt-max(s.CreatedAt, s.NotBefore)) / 1_000_000
	}
	if err := tx.AddFigures(tx.Context(), f); err != nil {
		return fmt.Errorf("count session %s in the figures of its day: %w", s.ID, err)
	}
	if s.Status != api.Failed {
		return nil
	}
	err := tx.AddFailure(tx.Context(), queries.AddFailureParams{AgentID: f.AgentID, OwnerUserID: f.OwnerUserID, Day: f.Day, Code: s.ErrorCode, Session: s.ID})
	if err != nil {
		return fmt.Errorf("count the failure of session %s: %w", s.ID, err)
	}
	return nil
}

// figuresOwner is who alone may see what a session came to; 0 = everybody of the workspace.
func figuresOwner(s *sessionRow) api.UserID {
	if s.Mode == api.Cloud {
		return 0
	}
	return s.OwnerUserID
}

// Figures are what ended sessions came to.
type Figures struct {
	Complete, Marked, Failed, Cancelled int64 // Marked: of the complete ones, no plain success
	Started                             int64 // those that a worker ever took
	Run, Wait                           time.Duration
	Tokens, CostMicros                  int64

	Longest          time.Duration
	LongestSession   api.SessionID // 0 = unknown
	CostliestMicros  int64
	CostliestSession api.SessionID // 0 = unknown
}

// Runs is how many sessions ended.
func (f Figures) Runs() int64 { return f.Complete + f.Failed + f.Cancelled }

// Judged is how many were plain successes, and of how many that succeeded or failed.
func (f Figures) Judged() (good, of int64) {
	good = f.Complete - f.Marked
	return good, good + f.Failed
}

// Usual is the mean length of a run and of its wait; 0 when none ran.
func (f Figures) Usual() (run, wait time.Duration) {
	if f.Started == 0 {
		return 0, 0
	}
	return f.Run / time.Duration(f.Started), f.Wait / time.Duration(f.Started)
}

func (f *Figures) add(r queries.Figure) {
	f.Complete, f.Marked, f.Failed, f.Cancelled = f.Complete+r.Complete, f.Marked+r.Marked, f.Failed+r.Failed, f.Cancelled+r.Cancelled
	f.Started += r.Started
	f.Run += time.Duration(r.RunSeconds) * time.Second
	f.Wait += time.Duration(r.WaitSeconds) * time.Second
	f.Tokens += r.InputTokens + r.OutputTokens
	f.CostMicros += r.CostMicros
	if longest := time.Duration(r.LongestSeconds) * time.Second; longest > f.Longest {
		f.Longest, f.LongestSession = longest, r.LongestSession
	}
	if r.CostliestMicros > f.CostliestMicros {
		f.CostliestMicros, f.CostliestSession = r.CostliestMicros, r.CostliestSession
	}
}

// AgentFigures are those of one agent.
type AgentFigures struct {
	Figures
	ID         api.AgentID
	Slug, Name string
	Gone       bool // the agent was deleted
}

// Failures counts the failures with one code.
type Failures struct {
	Code   string
	Count  int64
	Agents []string // slugs, in order
	Last   api.SessionID
}

// InsightsView is what the page of insights shows.
type InsightsView struct {
	View
	First  time.Time      // the first day, at midnight UTC
	Days   []Figures      // one for each day since, today's the last
	Agents []AgentFigures // by slug; those that ended anything
	Among  []string       // slugs of all that did, whatever agent was asked for
	All    Figures
	Failed []Failures // the most frequent first
}

// MostInsightDays is the longest time that insights go back.
const MostInsightDays = 366

// Insights sums up the sessions that ended within the last days, today included, by day and by
// agent, as far as the caller may see them; agent narrows it to one, by slug, "" = all. Days
// are those of UTC. Rights: viewer. Errors: invalid, naming days.
func (e *Engine) Insights(ctx context.Context, c Caller, days int, agent string) (out InsightsView, err error) {
	if days < 1 || days > MostInsightDays {
		return out, api.BadField("days", fmt.Sprintf("must be 1 to %d", MostInsightDays))
	}
	if err := c.May(account.Read); err != nil {
		return out, err
	}
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		since := dayNumber(r.now) - int64(days) + 1
		out.First, out.Days = time.Unix(since*int64(aDay/time.Second), 0).UTC(), make([]Figures, days)
		rows, err := r.q.FiguresSince(ctx, queries.FiguresSinceParams{WorkspaceID: c.WorkspaceID, Me: c.UserID, Since: since})
		if err != nil {
			return fmt.Errorf("read the figures since day %d: %w", since, err)
		}
		of := map[api.AgentID]int{}
		for _, row := range rows {
			out.Among = append(out.Among, row.Slug)
			if agent != "" && row.Slug != agent {
				continue
			}
			i, ok := of[row.Figure.AgentID]
			if !ok {
				i = len(out.Agents)
				of[row.Figure.AgentID] = i
				out.Agents = append(out.Agents, AgentFigures{ID: row.Figure.AgentID, Slug: row.Slug, Name: row.Name, Gone: row.DeletedAt != 0})
			}
			out.Agents[i].add(row.Figure)
			out.All.add(row.Figure)
			if day := row.Figure.Day - since; day < int64(days) {
				out.Days[day].add(row.Figure)
			}
		}
		slices.Sort(out.Among)
		out.Among = slices.Compact(out.Among)
		slices.SortStableFunc(out.Agents, func(a, b AgentFigures) int { return cmp.Compare(a.Slug, b.Slug) })
		out.Failed, err = r.failures(ctx, since, agent)
		return err
	})
	return out, err
}

// failures groups the failures since a day by their code.
func (r *viewReader) failures(ctx context.Context, since int64, agent string) (out []Failures, err error) {
	rows, err := r.q.FailuresSince(ctx, queries.FailuresSinceParams{WorkspaceID: r.c.WorkspaceID, Me: r.c.UserID, Since: since})
	if err != nil {
		return nil, fmt.Errorf("read the failures since day %d: %w", since, err)
	}
	for _, row := range rows {
		if agent != "" && row.Slug != agent {
			continue
		}
		i := slices.IndexFunc(out, func(f Failures) bool { return f.Code == row.FailureFigure.Code })
		if i < 0 {
			i, out = len(out), append(out, Failures{Code: row.FailureFigure.Code})
		}
		f := &out[i]
		f.Count += row.FailureFigure.Failures
		f.Last = max(f.Last, row.FailureFigure.LastSession)
		if !slices.Contains(f.Agents, row.Slug) {
			f.Agents = append(f.Agents, row.Slug)
		}
	}
	for i := range out {
		slices.Sort(out[i].Agents)
	}
	slices.SortStableFunc(out, func(a, b Failures) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code))
	})
	return out, nil
}
