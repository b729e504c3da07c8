package enginetest

import (
	"context"

	"stint/api"
	"stint/engine"
	"stint/queries"

	"stint/db"
)

// Task creates a task of the owner's. change may change what is set.
func (w *Fixture) Task(title string, change ...func(*api.TaskInput)) api.Task {
	w.Helper()
	in := engine.DefaultTask()
	in.Title = title
	for _, c := range change {
		c(&in)
	}
	t, _, err := w.CreateTask(context.Background(), w.Owner, in, engine.Idempotency{})
	if err != nil {
		w.Fatalf("create task %q: %v", title, err)
	}
	return t
}

// TaskNow is a task as the owner sees it now.
func (w *Fixture) TaskNow(ref string) api.Task {
	w.Helper()
	t, err := w.Engine.Task(context.Background(), w.Owner, ref)
	if err != nil {
		w.Fatalf("read task %s: %v", ref, err)
	}
	return t
}

// Dispatch has an agent work on a task, for the owner.
func (w *Fixture) Dispatch(ref string, in api.DispatchInput) api.Dispatched {
	w.Helper()
	d, _, err := w.DispatchTask(context.Background(), w.Owner, ref, in, engine.Idempotency{})
	if err != nil {
		w.Fatalf("dispatch task %s: %v", ref, err)
	}
	return d
}

// Colleague is a new member of the owner's workspace.
func (w *Fixture) Colleague(name string, role api.Role) engine.Caller {
	w.Helper()
	id := w.User(name)
	err := w.Store.Write(context.Background(), func(tx *db.Tx) error {
		return tx.InsertMember(context.Background(), queries.InsertMemberParams{WorkspaceID: w.Owner.WorkspaceID, UserID: id.UserID, Role: role, CreatedAt: tx.Now.UnixMicro()})
	})
	if err != nil {
		w.Fatalf("make %s a member: %v", name, err)
	}
	return engine.Caller{WorkspaceID: w.Owner.WorkspaceID, Workspace: w.Owner.Workspace, UserID: id.UserID, Name: name, Role: role}
}
