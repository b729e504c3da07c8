package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// workerOf reads a worker that the caller may act as; a deleted or foreign one is 404.
func workerOf(ctx context.Context, q queries.Querier, c Caller, id api.WorkerID) (*workerRow, error) {
	w, err := q.Worker(ctx, id)
	if db.None(err) || (err == nil && !actsAs(c, &w)) {
		return nil, db.NotFound("worker")
	}
	if err != nil {
		return nil, fmt.Errorf("read worker %s: %w", id, err)
	}
	return &w, nil
}

// actsAs reports whether the caller may act as this worker.
func actsAs(c Caller, w *workerRow) bool {
	if w.WorkspaceID != c.WorkspaceID {
		return false
	}
	if c.Run != nil {
		return w.ID == c.Run.Worker
	}
	if w.Mode == api.Local {
		return w.OwnerUserID == c.UserID
	}
	return c.Role.AtLeast(api.Admin)
}

// sameInstance refuses a call of a process that another has replaced (contract 5.1).
func sameInstance(w *workerRow, instance string) error {
	if w.InstanceID == instance {
		return nil
	}
	return api.Refuse(api.CodeInstanceSuperseded, "Another process has registered as this worker since; this one must stop.")
}

// pendingSignal reads the signal that a worker has yet to acknowledge, nil when there is none.
func pendingSignal(ctx context.Context, q queries.Querier, w api.WorkerID) (*api.Signal, error) {
	row, err := q.PendingSignal(ctx, w)
	if db.None(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the signal to worker %s: %w", w, err)
	}
	g := row.Signal
	return &api.Signal{ID: g.ID, Signal: g.Kind, SentBy: g.SentBy, SentByName: row.Name, SentAt: api.At(g.SentAt)}, nil
}

func (e *Engine) logWorker(tx *db.Tx, w *workerRow, actor, kind string, data api.EventData) error {
	if data == nil {
		data = api.EventData{}
	}
	data["worker"] = w.ID.String()
	e.wakeWorker(tx, w.ID)
	return tx.Log(db.Event{Workspace: w.WorkspaceID, Agent: w.AgentID, Actor: actor, Type: kind, Data: data})
}
