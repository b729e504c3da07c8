package engine

import (
	"context"
	"fmt"
	"math"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Workers lists workers, newest first: one's own, cloud ones, and for an admin all.
func (e *Engine) Workers(ctx context.Context, c Caller, agentRef string, page api.Page) (api.List[api.Worker], error) {
	out := api.List[api.Worker]{Items: []api.Worker{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		var agent api.AgentID
		if agentRef != "" {
			a, err := agentOf(ctx, tx, c, agentRef)
			if err != nil {
				return err
			}
			agent = a.ID
		}
		rows, err := tx.ListWorkers(ctx, queries.ListWorkersParams{
			WorkspaceID: c.WorkspaceID, Before: api.WorkerID(before), AgentID: int64(agent), Me: c.UserID,
			Admin: db.Flag(c.Role.AtLeast(api.Admin)), N: n + 1,
		})
		if err != nil {
			return fmt.Errorf("list workers: %w", err)
		}
		list := db.ListOf(rows, n, func(w workerRow) *workerRow { return &w }, func(w workerRow) int64 { return int64(w.ID) })
		out.NextCursor = list.NextCursor
		for _, w := range list.Items {
			a, err := agentEvenDeleted(ctx, tx, w.AgentID)
			if err != nil {
				return fmt.Errorf("read agent %s: %w", w.AgentID, err)
			}
			shown, err := e.presentWorker(ctx, tx, w, a.Slug)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, shown)
		}
		return nil
	})
	return out, err
}

// Worker returns one worker. Errors: not_found.
func (e *Engine) Worker(ctx context.Context, c Caller, id api.WorkerID) (api.Worker, error) {
	out, _, err := e.workerNow(ctx, c, id)
	return out, err
}

func (e *Engine) workerNow(ctx context.Context, c Caller, id api.WorkerID) (out api.Worker, row *workerRow, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := tx.Worker(ctx, id)
		if db.None(err) || (err == nil && !seesWorker(c, &w)) {
			return db.NotFound("worker")
		}
		if err != nil {
			return fmt.Errorf("read worker %s: %w", id, err)
		}
		row = &w
		out, err = e.showWorker(ctx, tx, &w)
		return err
	})
	return out, row, err
}

// showWorker is presentWorker where the agent's slug isn't known yet.
func (e *Engine) showWorker(ctx context.Context, q queries.Querier, w *workerRow) (api.Worker, error) {
	a, err := agentEvenDeleted(ctx, q, w.AgentID)
	if err != nil {
		return api.Worker{}, fmt.Errorf("read agent %s: %w", w.AgentID, err)
	}
	return e.presentWorker(ctx, q, w, a.Slug)
}

func (e *Engine) presentWorker(ctx context.Context, q queries.Querier, w *workerRow, agentSlug string) (api.Worker, error) {
	load, err := q.WorkerLoad(ctx, queries.WorkerLoadParams{WorkerID: w.ID})
	if err != nil {
		return api.Worker{}, fmt.Errorf("read the load of worker %s: %w", w.ID, err)
	}
	pending, err := pendingSignal(ctx, q, w.ID)
	if err != nil {
		return api.Worker{}, err
	}
	asked, err := askedLanding(ctx, q, w.ID)
	if err != nil {
		return api.Worker{}, err
	}
	notices, err := noticesOf(w)
	if err != nil {
		return api.Worker{}, err
	}
	types := make([]api.AgentType, 0, len(w.Types))
	for _, t := range w.Types {
		types = append(types, api.AgentType(t))
	}
	return api.Worker{
		ID: w.ID, AgentID: w.AgentID, AgentSlug: agentSlug, Mode: w.Mode, OwnerUserID: w.OwnerUserID, Name: w.Name,
		Instructions: w.Instructions, SetBy: w.InstructionsSetBy, Types: types, Labels: w.Labels, MaxConcurrent: w.MaxConcurrent,
		Platform: w.Platform, Version: w.Version, State: w.State, DesiredState: w.Desired, TaskUpdates: w.TaskUpdates, Running: load.Running,
		LastBeatAt: api.At(w.LastBeatAt), CreatedAt: api.At(w.CreatedAt),
		PendingSignal: pending, Land: w.Land, Landing: asked, Notices: notices, NoticesSince: api.At(w.NoticesSince),
	}, nil
}
