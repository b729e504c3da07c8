package engine

import (
	"context"
	"fmt"
	"math"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Agent returns one agent, by id or slug.
func (e *Engine) Agent(ctx context.Context, c Caller, ref string) (out api.Agent, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		a, err := agentOf(ctx, tx, c, ref)
		if err != nil {
			return err
		}
		out, err = e.presentAgent(ctx, tx, a)
		return err
	})
	return out, err
}

// Agents lists the workspace's agents, newest first.
func (e *Engine) Agents(ctx context.Context, c Caller, page api.Page) (api.List[api.Agent], error) {
	return e.agentPage(ctx, page, func(tx *db.ReadTx, before api.AgentID, n int64) ([]agentRow, error) {
		return tx.ListAgents(ctx, queries.ListAgentsParams{WorkspaceID: c.WorkspaceID, Before: before, N: n})
	})
}

// Schedules lists the workspace's agents that have a schedule, newest first.
func (e *Engine) Schedules(ctx context.Context, c Caller, page api.Page) (api.List[api.Agent], error) {
	return e.agentPage(ctx, page, func(tx *db.ReadTx, before api.AgentID, n int64) ([]agentRow, error) {
		return tx.ListSchedules(ctx, queries.ListSchedulesParams{WorkspaceID: c.WorkspaceID, Before: before, N: n})
	})
}

func (e *Engine) agentPage(ctx context.Context, page api.Page, read func(tx *db.ReadTx, before api.AgentID, n int64) ([]agentRow, error)) (api.List[api.Agent], error) {
	out := api.List[api.Agent]{Items: []api.Agent{}}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := read(tx, api.AgentID(before), n+1)
		if err != nil {
			return fmt.Errorf("list agents: %w", err)
		}
		list := db.ListOf(rows, n, func(a agentRow) *agentRow { return &a }, func(a agentRow) int64 { return int64(a.ID) })
		out.NextCursor = list.NextCursor
		for _, a := range list.Items {
			shown, err := e.presentAgent(ctx, tx, a)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, shown)
		}
		return nil
	})
	return out, err
}

func (e *Engine) presentAgent(ctx context.Context, q queries.Querier, a *agentRow) (api.Agent, error) {
	if a.RunSetBy == 0 {
		return e.toAgent(a, nil), nil
	}
	u, err := q.User(ctx, a.RunSetBy)
	if err != nil {
		return api.Agent{}, fmt.Errorf("read user %s: %w", a.RunSetBy, err)
	}
	return e.toAgent(a, &u), nil
}
