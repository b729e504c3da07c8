package enginetest

import (
	"context"

	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/queries"
)

// User makes a user who is a member of nothing and can't sign in.
func (w *World) User(name string) engine.Identity {
	w.Helper()
	var id api.UserID
	err := w.Store.Write(context.Background(), func(tx *db.Tx) error {
		id = api.UserID(tx.NewID())
		return tx.InsertUser(context.Background(), queries.InsertUserParams{ID: id, Name: name, CreatedAt: tx.Now.UnixMicro()})
	})
	if err != nil {
		w.Fatalf("make a user: %v", err)
	}
	return engine.Identity{UserID: id, Name: name}
}
