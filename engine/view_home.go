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

// The lengths of the bands on the home page.
const (
	homeActive  = 20
	homeQueued  = 8
	homeNext    = 8
	homeRecent  = 15
	homeAgents  = 8
	recentScan  = 2000
	barLength   = 30
	workersScan = 200
)

// MostUnlanded is as far as sessions with changes that wait are counted.
const MostUnlanded = 1000

// HomeView is what the home page shows.
type HomeView struct {
	View
	Needs   []SessionView // that a person must look after: those of Inbox
	Inbox   []api.InboxItem
	Active  []SessionView // running ones, those that await input included
	Queued  []SessionView // queued, pending and stale, at most a few of each
	Next    []api.Agent   // by their next slot
	Recent  []SessionView
	Agents  []AgentView // those with runs or a schedule, at most a few
	Workers api.WorkerCount
	Today   map[api.Status]int64 // since midnight in zone
	TodayOf int64                // of how many, newest first, Today is taken; 0 = of all
	Slowest time.Duration        // of Recent, to compare ribbons
	Trouble *api.Error           // why nothing can be written now, or nil
	Low     string               // how little space is left, or ""

	Unlanded int64 // ended sessions with changes that nobody has landed, at most MostUnlanded

	TodayMarked int64 // of those of Today that are complete: no plain success
}

// AgentView is an agent with its last runs.
type AgentView struct {
	api.Agent
	Runs     []RunView // the last 30, oldest first
	Online   int       // workers
	Expected time.Duration
}

// Home reads the home page. Today starts at midnight in zone.
func (e *Engine) Home(ctx context.Context, c Caller, zone *time.Location) (out HomeView, err error) {
	out.Trouble, out.Low = e.Trouble(), e.Low()
	out.View, err = e.readView(ctx, c, func(r *viewReader) error {
		if err := r.homeSessions(ctx, &out); err != nil {
			return err
		}
		if err := r.homeAgents(ctx, &out); err != nil {
			return err
		}
		var err error
		if out.Unlanded, err = r.unlanded(ctx, MostUnlanded); err != nil {
			return err
		}
		day := api.At(r.now).In(zone)
		midnight := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
		search, err := e.search(ctx, r.q, c, api.SessionFilter{Since: api.Time{Time: midnight}})
		if err != nil {
			return err
		}
		today, err := search.find(ctx, homeScan)
		out.Today, out.TodayOf, out.TodayMarked = today.counts()
		return err
	})
	return out, err
}

// passing are the gates that open by themselves.
var passing = map[string]bool{
	gateReady: true, gateUndrained: true, gateThreadBusy: true, gateReclaimDelay: true, gateFolderBusy: true,
	gateAffinity: true, gateAgentFull: true, gateWorkerFull: true,
}

func (r *viewReader) waiting(ctx context.Context, status api.Status, n int64) ([]SessionView, error) {
	rows, err := r.q.ViewWaiting(ctx, queries.ViewWaitingParams{WorkspaceID: r.c.WorkspaceID, Status: status, Me: r.c.UserID, N: n})
	if err != nil {
		return nil, fmt.Errorf("read %s sessions: %w", status, err)
	}
	return r.sessions(ctx, rows)
}

func (r *viewReader) homeSessions(ctx context.Context, out *HomeView) (err error) {
	if out.Inbox, out.Needs, err = r.inbox(ctx); err != nil {
		return err
	}
	needed := func(id api.SessionID) bool {
		return slices.ContainsFunc(out.Needs, func(v SessionView) bool { return v.ID == id })
	}
	running, err := r.q.ViewRunning(ctx, queries.ViewRunningParams{WorkspaceID: r.c.WorkspaceID, Me: r.c.UserID, N: homeActive})
	if err != nil {
		return fmt.Errorf("read running sessions: %w", err)
	}
	if out.Active, err = r.sessions(ctx, running); err != nil {
		return err
	}
	for i := range out.Active {
		v := &out.Active[i]
		if v.LastLine, err = r.lastLine(ctx, v.ID); err != nil {
			return err
		}
	}
	for _, status := range []api.Status{api.Queued, api.Pending, api.Stale} {
		views, err := r.waiting(ctx, status, homeQueued)
		if err != nil {
			return err
		}
		for _, v := range views {
			if !needed(v.ID) {
				out.Queued = append(out.Queued, v)
			}
		}
	}
	recent, err := r.q.ViewFinished(ctx, queries.ViewFinishedParams{WorkspaceID: r.c.WorkspaceID, Scan: recentScan, Me: r.c.UserID, N: homeRecent})
	if err != nil {
		return fmt.Errorf("read finished sessions: %w", err)
	}
	if out.Recent, err = r.sessions(ctx, recent); err != nil {
		return err
	}
	out.Recent = slices.DeleteFunc(out.Recent, func(v SessionView) bool { return needed(v.ID) })
	for _, v := range out.Recent {
		out.Slowest = max(out.Slowest, v.EndedAt.Sub(v.CreatedAt.Time))
	}
	return nil
}

func (r *viewReader) homeAgents(ctx context.Context, out *HomeView) error {
	next, err := r.q.ViewNextSlots(ctx, queries.ViewNextSlotsParams{WorkspaceID: r.c.WorkspaceID, N: homeNext})
	if err != nil {
		return fmt.Errorf("read the next slots: %w", err)
	}
	if out.Next, err = r.shown(ctx, next); err != nil {
		return err
	}
	agents, err := r.q.ViewAgents(ctx, queries.ViewAgentsParams{WorkspaceID: r.c.WorkspaceID, N: homeAgents})
	if err != nil {
		return fmt.Errorf("list agents: %w", err)
	}
	if out.Agents, err = r.agentViews(ctx, agents); err != nil {
		return err
	}
	out.Workers, err = processes(ctx, r.q, r.c)
	return err
}

// WorkerCount counts the worker processes that the caller may see.
func (e *Engine) WorkerCount(ctx context.Context, c Caller) (out api.WorkerCount, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		out, err = processes(ctx, tx, c)
		return err
	})
	return out, err
}

func processes(ctx context.Context, q queries.Querier, c Caller) (api.WorkerCount, error) {
	n, err := q.CountProcesses(ctx, queries.CountProcessesParams{WorkspaceID: c.WorkspaceID, Me: c.UserID, Admin: db.Flag(c.Role.AtLeast(api.Admin))})
	if err != nil {
		return api.WorkerCount{}, fmt.Errorf("count workers: %w", err)
	}
	return api.WorkerCount{All: n.N, Online: n.Online}, nil
}

func (r *viewReader) workerRows(ctx context.Context, agent api.AgentID) ([]workerRow, error) {
	rows, err := r.q.ListWorkers(ctx, queries.ListWorkersParams{
		WorkspaceID: r.c.WorkspaceID, Before: maxSeq, AgentID: int64(agent), Me: r.c.UserID, Admin: db.Flag(r.c.Role.AtLeast(api.Admin)), N: workersScan,
	})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return rows, nil
}

func (r *viewReader) agentViews(ctx context.Context, rows []agentRow) ([]AgentView, error) {
	agents, err := r.shown(ctx, rows)
	if err != nil {
		return nil, err
	}
	out := make([]AgentView, 0, len(rows))
	for _, a := range agents {
		v := AgentView{Agent: a}
		runs, err := r.runs(ctx, a.ID, 3*medianOf)
		if err != nil {
			return nil, err
		}
		v.Expected = medianRun(runs)
		v.Runs = runs[max(0, len(runs)-barLength):]
		workers, err := r.q.WorkersOfAgent(ctx, a.ID)
		if err != nil {
			return nil, fmt.Errorf("read the workers of agent %s: %w", a.Slug, err)
		}
		for _, w := range workers {
			if w.State == api.Online {
				v.Online++
			}
		}
		out = append(out, v)
	}
	return out, nil
}
