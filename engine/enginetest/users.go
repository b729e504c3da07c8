package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// User creates a user who is a member of nothing and can't sign in.
func (w *Fixture) User(name string) account.Identity {
	w.Helper()
	var id api.UserID
	err := w.Store.Write(context.Background(), func(tx *db.Tx) error {
		id = api.UserID(tx.NewID())
		return tx.InsertUser(context.Background(), queries.InsertUserParams{ID: id, Name: name, CreatedAt: tx.Now.UnixMicro()})
	})
	if err != nil {
		w.Fatalf("make a user: %v", err)
	}
	return account.Identity{UserID: id, Name: name}
}

// Me is the owner as somebody who proved who they are.
func (w *Fixture) Me() account.Identity {
	return account.Identity{UserID: w.Owner.UserID, Name: w.Owner.Name}
}

// Program signs the command line in for the owner, as a browser would.
func (w *Fixture) Program() account.Tokens {
	w.Helper()
	const there = "http://127.0.0.1/callback"
	sum := sha256.Sum256([]byte("verifier"))
	code, err := w.GiveCode(context.Background(), w.Me(), account.Grant{Client: account.CLI, Redirect: there, Challenge: base64.RawURLEncoding.EncodeToString(sum[:])})
	if err != nil {
		w.Fatalf("give a code: %v", err)
	}
	out, err := w.TradeCode(context.Background(), account.Presented{Client: account.CLI}, code, there, "verifier")
	if err != nil {
		w.Fatalf("trade a code: %v", err)
	}
	return out
}
