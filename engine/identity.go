package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// The kinds of secrets that stand for a user, and how long they live.
const (
	tokenBearer = "bearer"
	tokenCookie = "cookie"
	tokenLink   = "link"

	bearerLife = 10 * 365 * 24 * time.Hour
	cookieLife = 30 * 24 * time.Hour
	linkLife   = 10 * time.Minute

	// DefaultWorkspace is the slug of the workspace that the first start makes.
	DefaultWorkspace = "default"
)

// Identity is a user who proved who he is.
type Identity struct {
	UserID  api.UserID
	Name    string
	TokenID api.TokenID
}

// EnsureOwner makes the first workspace, its one owner and a bearer token, once.
// The token is returned only by the call that made it.
func (e *Engine) EnsureOwner(ctx context.Context) (token string, created bool, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		token, created = "", false
		if _, err := tx.FirstUser(wctx()); !none(err) {
			return err
		}
		now := micros(tx.Now)
		ws, user := api.WorkspaceID(tx.NewID()), api.UserID(tx.NewID())
		if err := tx.InsertWorkspace(wctx(), queries.InsertWorkspaceParams{ID: ws, Slug: DefaultWorkspace, Name: "Default", CreatedAt: now}); err != nil {
			return fmt.Errorf("make the first workspace: %w", err)
		}
		if err := tx.InsertUser(wctx(), queries.InsertUserParams{ID: user, Name: "owner", CreatedAt: now}); err != nil {
			return fmt.Errorf("make the owner: %w", err)
		}
		if err := tx.InsertMember(wctx(), queries.InsertMemberParams{WorkspaceID: ws, UserID: user, Role: api.Owner, CreatedAt: now}); err != nil {
			return fmt.Errorf("make the owner a member: %w", err)
		}
		created = true
		token, err = issue(tx, user, tokenBearer, bearerLife)
		return err
	})
	return token, created, err
}

// issue makes a secret of 256 random bits; only its SHA-256 is kept.
func issue(tx *db.Tx, user api.UserID, kind string, life time.Duration) (string, error) {
	var raw [32]byte
	rand.Read(raw[:])
	secret := "stk_" + base64.RawURLEncoding.EncodeToString(raw[:])
	hash := sha256.Sum256([]byte(secret))
	err := tx.InsertToken(wctx(), queries.InsertTokenParams{
		ID: api.TokenID(tx.NewID()), UserID: user, Kind: kind, Hash: hash[:],
		CreatedAt: micros(tx.Now), ExpiresAt: micros(tx.Now.Add(life)),
	})
	if err != nil {
		return "", fmt.Errorf("keep a %s token: %w", kind, err)
	}
	return secret, nil
}

// NewBearer makes a further bearer token of a user.
func (e *Engine) NewBearer(ctx context.Context, user api.UserID) (secret string, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		secret, err = issue(tx, user, tokenBearer, bearerLife)
		return err
	})
	return secret, err
}

// Owner returns the user that the first start made.
func (e *Engine) Owner(ctx context.Context) (out Identity, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		u, err := tx.FirstUser(ctx)
		u, err = load(u, err, "owner")
		out = Identity{UserID: u.ID, Name: u.Name}
		return err
	})
	return out, err
}

// Authenticate finds out whose a bearer token or cookie is. Error: unauthenticated.
func (e *Engine) Authenticate(ctx context.Context, secret string) (out Identity, err error) {
	hash := sha256.Sum256([]byte(secret))
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		t, err := tx.TokenByHash(ctx, hash[:])
		if none(err) || (err == nil && (t.Kind == tokenLink || t.RevokedAt != 0 || t.ExpiresAt <= micros(e.Now()))) {
			return api.Refuse(api.CodeUnauthenticated, "The sign-in is missing, unknown, expired or revoked.")
		}
		if err != nil {
			return fmt.Errorf("read a token: %w", err)
		}
		u, err := tx.User(ctx, t.UserID)
		if err != nil {
			return fmt.Errorf("read user %s: %w", t.UserID, err)
		}
		out = Identity{UserID: u.ID, Name: u.Name, TokenID: t.ID}
		return nil
	})
	return out, err
}

// NewLink makes a secret that signs a browser in once, within 10 minutes (contract 8.1).
func (e *Engine) NewLink(ctx context.Context, who Identity) (secret string, err error) {
	err = e.write(ctx, func(tx *db.Tx) error {
		secret, err = issue(tx, who.UserID, tokenLink, linkLife)
		return err
	})
	return secret, err
}

// SignIn consumes a one-time link and answers a cookie's value. Error:
// unauthenticated when the link is unknown, used or too old.
func (e *Engine) SignIn(ctx context.Context, link string) (cookie string, expires time.Time, err error) {
	hash := sha256.Sum256([]byte(link))
	err = e.write(ctx, func(tx *db.Tx) error {
		t, err := tx.TokenByHash(wctx(), hash[:])
		if err == nil {
			n, useErr := tx.UseLink(wctx(), queries.UseLinkParams{Now: micros(tx.Now), ID: t.ID})
			if useErr != nil {
				return fmt.Errorf("use a link: %w", useErr)
			}
			if n == 1 {
				expires = tx.Now.Add(cookieLife)
				cookie, err = issue(tx, t.UserID, tokenCookie, cookieLife)
				return err
			}
		}
		if err != nil && !none(err) {
			return fmt.Errorf("read a link: %w", err)
		}
		return api.Refuse(api.CodeUnauthenticated, "This sign-in link is unknown, used or older than 10 minutes. Run “stint open” for a new one.")
	})
	return cookie, expires, err
}

// SignOut revokes a bearer token or cookie; an unknown one is no error.
func (e *Engine) SignOut(ctx context.Context, secret string) error {
	hash := sha256.Sum256([]byte(secret))
	return e.write(ctx, func(tx *db.Tx) error {
		t, err := tx.TokenByHash(wctx(), hash[:])
		if none(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a token: %w", err)
		}
		_, err = tx.RevokeToken(wctx(), queries.RevokeTokenParams{Now: micros(tx.Now), ID: t.ID})
		return err
	})
}

// In makes the caller of an identity in a workspace, named by id or slug.
// Error: not_found when there is none or the user is no member.
func (e *Engine) In(ctx context.Context, who Identity, ref string) (out Caller, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		var ws queries.Workspace
		if id, perr := api.ParseWorkspaceID(ref); perr == nil && id != 0 {
			ws, err = tx.Workspace(ctx, id)
		} else {
			ws, err = tx.WorkspaceBySlug(ctx, ref)
		}
		if ws, err = load(ws, err, "workspace"); err != nil {
			return err
		}
		m, err := tx.Member(ctx, queries.MemberParams{WorkspaceID: ws.ID, UserID: who.UserID})
		if m, err = load(m, err, "workspace"); err != nil {
			return err
		}
		out = Caller{WorkspaceID: ws.ID, Workspace: ws.Slug, UserID: who.UserID, Name: who.Name, Role: m.Role}
		return nil
	})
	return out, err
}

// Workspaces lists the workspaces of which the user is a member.
func (e *Engine) Workspaces(ctx context.Context, who Identity) ([]api.Workspace, error) {
	out := []api.Workspace{}
	err := e.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.WorkspacesOf(ctx, who.UserID)
		for _, w := range rows {
			out = append(out, api.Workspace{ID: w.ID, Slug: w.Slug, Name: w.Name})
		}
		return err
	})
	return out, err
}
