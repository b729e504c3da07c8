package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

const (
	agentsPage  = 50
	agentRuns   = 20 // sessions on an agent's page
	agentLedger = 30
	agentSlots  = 5

	agentTriggers = 50
)

// AgentListView is one page of the list of agents, by slug.
type AgentListView struct {
	View
	Agents []AgentView
	Next   string // slug to continue after; "" on the last page
}

// AgentList reads a page of agents after a slug.
func (e *Engine) AgentList(ctx context.Context, c Caller, after string) (out AgentListView, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		rows, err := r.q.ViewAgents(ctx, queries.ViewAgentsParams{WorkspaceID: c.WorkspaceID, After: after, N: agentsPage + 1})
		if err != nil {
			return fmt.Errorf("list agents: %w", err)
		}
		if len(rows) > agentsPage {
			rows = rows[:agentsPage]
			out.Next = rows[agentsPage-1].Slug
		}
		out.Agents, err = r.agentViews(ctx, rows)
		return err
	})
	return out, err
}

// Runnable are the agents that the caller may start, most recently run first according to what
// the caller sees, then by slug; at most a thousand.
func (e *Engine) Runnable(ctx context.Context, c Caller) (agents []api.Agent, err error) {
	type used struct {
		api.Agent
		last api.SessionID
	}
	var all []used
	_, err = e.readView(ctx, c, func(r *viewReader) error {
		rows, err := r.q.ViewAgents(ctx, queries.ViewAgentsParams{WorkspaceID: c.WorkspaceID, N: agentsAtOnce})
		if err != nil {
			return fmt.Errorf("list agents: %w", err)
		}
		rows = slices.DeleteFunc(rows, func(a agentRow) bool { return !c.CanRun(a.Mode) })
		shown, err := r.shown(ctx, rows)
		if err != nil {
			return err
		}
		for _, a := range shown {
			runs, err := r.runs(ctx, a.ID, 1)
			if err != nil {
				return err
			}
			u := used{Agent: a}
			if len(runs) > 0 {
				u.last = runs[0].ID
			}
			all = append(all, u)
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b used) int { return cmp.Compare(b.last, a.last) })
	for _, u := range all {
		agents = append(agents, u.Agent)
	}
	return agents, err
}

// agentsAtOnce is the most agents, by slug, that are looked through for some of them.
const agentsAtOnce = 1000

// AgentPage is what an agent's page shows.
type AgentPage struct {
	View
	AgentView
	Recent  []SessionView
	Ledger  []api.LedgerEntry // newest first
	Workers []api.Worker
	Slots   []api.SlotPreview // the next five; none without a schedule
	Slowest time.Duration

	MayTriggers bool          // the caller may see and close the addresses that start it
	Triggers    []TriggerView // newest first, at most 50; none unless the caller may see them
}

// TriggerView is an address that starts an agent, with who opened it; "" for the caller.
type TriggerView struct {
	api.TriggerURL
	By string
}

func (r *viewReader) triggers(ctx context.Context, a *agentRow) (out []TriggerView, may bool, err error) {
	if _, err := triggerAgent(ctx, r.q, r.c, a.ID.String()); err != nil {
		return nil, false, nil // no right to them
	}
	rows, err := r.q.TriggerURLsOfAgent(ctx, queries.TriggerURLsOfAgentParams{AgentID: a.ID, Before: maxSeq, N: agentTriggers})
	if err != nil {
		return nil, false, fmt.Errorf("list the trigger URLs of agent %s: %w", a.Slug, err)
	}
	for _, row := range rows {
		name, err := r.user(ctx, row.CreatedBy)
		if err != nil {
			return nil, false, err
		}
		out = append(out, TriggerView{toTriggerURL(row), name})
	}
	return out, true, nil
}

// AgentPageOf reads an agent's page. Errors: not_found.
func (e *Engine) AgentPageOf(ctx context.Context, c Caller, ref string) (out AgentPage, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		a, err := agentOf(ctx, r.q, c, ref)
		if err != nil {
			return err
		}
		views, err := r.agentViews(ctx, []agentRow{*a})
		if err != nil {
			return err
		}
		out.AgentView = views[0]
		search, err := e.search(ctx, r.q, c, api.SessionFilter{Agent: a.ID.String()})
		if err != nil {
			return err
		}
		rows, err := search.rows(ctx, maxSeq, agentRuns)
		if err != nil {
			return fmt.Errorf("read the sessions of agent %s: %w", a.Slug, err)
		}
		if out.Recent, err = r.sessions(ctx, rows); err != nil {
			return err
		}
		for _, v := range out.Recent {
			out.Slowest = max(out.Slowest, v.spent(out.At))
		}
		workers, err := r.workerRows(ctx, a.ID)
		if err != nil {
			return err
		}
		for i := range workers {
			w, err := e.presentWorker(ctx, r.q, &workers[i], a.Slug)
			if err != nil {
				return err
			}
			out.Workers = append(out.Workers, w)
		}
		out.Triggers, out.MayTriggers, err = r.triggers(ctx, a)
		return err
	})
	if err != nil {
		return out, err
	}
	ledger, err := e.Ledger(ctx, c, out.ID.String(), api.Page{Limit: agentLedger})
	if err != nil {
		return out, fmt.Errorf("read the ledger: %w", err)
	}
	out.Ledger = ledger.Items
	out.Slots = nextSlots(out.Agent, out.At, agentSlots)
	return out, nil
}

// nextSlots are the slots that follow from an agent's own anchor; none without a schedule that
// can be followed.
func nextSlots(a api.Agent, now time.Time, n int) []api.SlotPreview {
	if a.Schedule == "" {
		return nil
	}
	s, err := scheduler.Parse(a.Schedule, a.TimeZone, now)
	if err != nil {
		return nil // the agent's scheduleError says so
	}
	var out []api.SlotPreview
	for _, t := range s.Preview(a.AnchorAt.Time, now, n) {
		out = append(out, api.SlotPreview{
			At: api.Time{Time: t.UTC()}, Local: t.In(s.Zone()).Format(time.RFC3339), InSeconds: int64(t.Sub(now) / time.Second),
		})
	}
	return out
}

// spent is how long a session has taken until now, waiting included.
func (v SessionView) spent(now time.Time) time.Duration {
	if !v.EndedAt.IsZero() {
		now = v.EndedAt.Time
	}
	return now.Sub(v.CreatedAt.Time)
}

// WorkerView is a worker with what it runs.
type WorkerView struct {
	api.Worker
	Sessions []SessionView
	Signals  bool   // the caller may signal it
	Edits    bool   // the caller may change and delete its record
	Process  string // stable name of the process that serves it, maybe with other agents
}

// WorkerPage is what a worker's page shows.
type WorkerPage struct {
	View
	WorkerView
	Mine      bool                   // the caller owns it and sees what its agent may do from now on
	Approvals []api.StandingApproval // the newest first; none unless it is theirs
}

// WorkerPageOf reads a worker's page. Errors: not_found.
func (e *Engine) WorkerPageOf(ctx context.Context, c Caller, id api.WorkerID) (out WorkerPage, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		w, err := r.q.Worker(ctx, id)
		if db.None(err) || (err == nil && !seesWorker(c, &w)) {
			return db.NotFound("worker")
		}
		if err != nil {
			return fmt.Errorf("read worker %s: %w", id, err)
		}
		if out.WorkerView, err = r.workerView(ctx, &w); err != nil {
			return err
		}
		if out.Mine = ownApprovals(c, &w) == nil; out.Mine {
			out.Approvals, err = approvalsOf(ctx, r.q, &w)
		}
		return err
	})
	return out, err
}

func (r *viewReader) workerView(ctx context.Context, w *workerRow) (v WorkerView, err error) {
	a, err := r.agent(ctx, w.AgentID)
	if err != nil {
		return v, err
	}
	v.Signals, v.Edits, v.Process = signals(r.c, w), owns(r.c, w) == nil, w.ProcessID
	if v.Worker, err = r.e.presentWorker(ctx, r.q, w, a.Slug); err != nil {
		return v, err
	}
	held, err := r.q.ViewWorkerSessions(ctx, queries.ViewWorkerSessionsParams{WorkerID: w.ID, Me: r.c.UserID, N: db.MaxPage})
	if err != nil {
		return v, fmt.Errorf("read what worker %s runs: %w", w.ID, err)
	}
	v.Sessions, err = r.sessions(ctx, held)
	return v, err
}

// WorkerListView is the list of workers.
type WorkerListView struct {
	View
	Workers []WorkerView
}

// WorkerList reads the workers that the caller may see, newest first, at most 200.
func (e *Engine) WorkerList(ctx context.Context, c Caller) (out WorkerListView, err error) {
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		rows, err := r.workerRows(ctx, 0)
		if err != nil {
			return err
		}
		for i := range rows {
			v, err := r.workerView(ctx, &rows[i])
			if err != nil {
				return err
			}
			out.Workers = append(out.Workers, v)
		}
		return nil
	})
	return out, err
}
