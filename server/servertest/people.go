package servertest

import (
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// AddUser creates a user with a role in a workspace, which it creates if it is missing, and
// returns a bearer token of theirs.
func (s *Server) AddUser(workspace string, role api.Role) (token string) {
	s.tb.Helper()
	token = "stk_" + rand.Text()
	hash := sha256.Sum256([]byte(token))
	err := s.Store.Write(s.tb.Context(), func(tx *db.Tx) error {
		ctx, now := s.tb.Context(), tx.Now.UnixMicro()
		ws, err := tx.WorkspaceBySlug(ctx, workspace)
		if errors.Is(err, sql.ErrNoRows) {
			ws.ID = api.WorkspaceID(tx.NewID())
			err = tx.InsertWorkspace(ctx, queries.InsertWorkspaceParams{ID: ws.ID, Slug: workspace, Name: workspace, CreatedAt: now})
		}
		if err != nil {
			return err
		}
		user := api.UserID(tx.NewID())
		if err := tx.InsertUser(ctx, queries.InsertUserParams{ID: user, Name: token[4:12], CreatedAt: now}); err != nil {
			return err
		}
		err = tx.InsertMember(ctx, queries.InsertMemberParams{WorkspaceID: ws.ID, UserID: user, Role: role, CreatedAt: now})
		if err != nil {
			return err
		}
		return tx.InsertToken(ctx, queries.InsertTokenParams{
			ID: api.TokenID(tx.NewID()), UserID: user, Kind: "bearer", Hash: hash[:],
			CreatedAt: now, ExpiresAt: tx.Now.Add(24 * time.Hour).UnixMicro(),
		})
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	return token
}

// As is the same server with another client's token.
func (s *Server) As(token string) *Server {
	other := *s
	other.Token = token
	return &other
}
