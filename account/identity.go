package account

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// DefaultWorkspace is the slug of the workspace that the first start makes.
const DefaultWorkspace = "default"

// Identity is a user who proved who they are, or an API key that acts for them.
type Identity struct {
	UserID  api.UserID
	Name    string
	TokenID api.TokenID // of the sign-in; 0 for an API key

	Client   string // the program that was signed in through a browser and acts for them; "" = they themselves
	Resource string // path of the part of the server that the program may call; "" = the API
	Granted  string // what the program may do there, as words with spaces between them; "" = all
	Run      *Run   // the agent's run that acts; nil = none

	KeyID       api.KeyID // 0 = the user themselves
	Scopes      []api.Scope
	WorkspaceID api.WorkspaceID // the only one that the key is good for
}

// via is what acts for the user, as the log tells it; "" for themselves.
func (i Identity) via() string {
	if i.Client != "" {
		return i.Client
	}
	return i.KeyID.String()
}

// From is where a sign-in comes from, as the account page shows it.
type From struct {
	Label   string // the browser's or program's name
	Address string
}

// EnsureOwner makes the first workspace, its one owner and a bearer token, once.
// The token is returned only by the call that made it.
func (a *Accounts) EnsureOwner(ctx context.Context) (token string, created bool, err error) {
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		token, created = "", false
		if _, err := tx.FirstUser(tx.Context()); !db.None(err) {
			return err
		}
		now := db.Micros(tx.Now)
		ws, user := api.WorkspaceID(tx.NewID()), api.UserID(tx.NewID())
		if err := tx.InsertWorkspace(tx.Context(), queries.InsertWorkspaceParams{ID: ws, Slug: DefaultWorkspace, Name: "Default", CreatedAt: now}); err != nil {
			return fmt.Errorf("make the first workspace: %w", err)
		}
		if err := tx.InsertUser(tx.Context(), queries.InsertUserParams{ID: user, Name: "owner", CreatedAt: now}); err != nil {
			return fmt.Errorf("make the owner: %w", err)
		}
		if err := tx.InsertMember(tx.Context(), queries.InsertMemberParams{WorkspaceID: ws, UserID: user, Role: api.Owner, CreatedAt: now}); err != nil {
			return fmt.Errorf("make the owner a member: %w", err)
		}
		created = true
		token, err = issue(tx, user, tokenBearer, bearerLife, From{Label: ownerLabel})
		return err
	})
	return token, created, err
}

// ownerLabel is what the token in the data directory is called.
const ownerLabel = "Token in the data directory"

const maxLabelText = 200 // bytes

// short cuts a text that somebody else chose.
func short(text string, most int) string {
	if text = strings.ToValidUTF8(text, ""); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// Owner returns the first of the owners: whom the data directory's token stands for.
func (a *Accounts) Owner(ctx context.Context) (out Identity, err error) {
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		u, err := tx.FirstOwner(ctx)
		u, err = db.Load(u, err, "owner")
		out = Identity{UserID: u.ID, Name: u.Name}
		return err
	})
	return out, err
}

var errNotSignedIn = api.Refuse(api.CodeUnauthenticated, "The sign-in is missing, unknown, expired or revoked.")

// Authenticate finds out whose a bearer token, cookie or API key is, and notes
// that it was used. Error: unauthenticated.
func (a *Accounts) Authenticate(ctx context.Context, secret string) (out Identity, err error) {
	switch {
	case strings.HasPrefix(secret, keyPrefix):
		return a.authenticateKey(ctx, secret)
	case strings.HasPrefix(secret, accessPrefix):
		return a.authenticateProgram(ctx, secret)
	case strings.HasPrefix(secret, runPrefix):
		return a.authenticateRun(ctx, secret)
	}
	var lastUsed int64
	err = a.store.ReadRights(ctx, func(tx *db.ReadTx) error {
		t, err := tx.TokenByHash(ctx, hashOf(secret))
		if db.None(err) || (err == nil && !good(&t, a.store.Now())) {
			return errNotSignedIn
		}
		if err != nil {
			return fmt.Errorf("read a token: %w", err)
		}
		u, err := tx.User(ctx, t.UserID)
		if err != nil {
			return fmt.Errorf("read user %s: %w", t.UserID, err)
		}
		out = Identity{UserID: u.ID, Name: u.Name, TokenID: t.ID}
		lastUsed = t.LastUsedAt
		return nil
	})
	if err == nil && lastUsed+db.Span(touchEvery) <= db.Micros(a.store.Now()) {
		a.touch(ctx, func(tx *db.Tx) error {
			_, err := tx.TouchToken(tx.Context(), queries.TouchTokenParams{Now: db.Micros(tx.Now), ID: out.TokenID})
			return err
		})
	}
	return out, err
}

// touch notes a use. Where the store can't take it, nobody is kept out for it.
func (a *Accounts) touch(ctx context.Context, do func(*db.Tx) error) {
	if err := a.store.Write(ctx, do); err != nil && ctx.Err() == nil {
		a.log.Debug("A use was not noted.", "cause", err)
	}
}

// Epoch changes with every commit that takes a right away, so that whoever keeps
// what Authenticate and In answered knows when to ask again.
func (a *Accounts) Epoch() uint64 { return a.store.RightsEpoch() }

// NewLink makes a secret that signs a browser in once, within 10 minutes (contract
// 8.1). Such a link may be posted from anywhere, so that whoever makes one can have
// somebody else's browser signed in as themselves: only the coordinator makes them, for
// whom TokenID is 0, and whoever has the token in the data directory. Errors:
// user_token_required for a program that somebody signed in, which must not turn its
// sign-in into one of another kind, forbidden for a browser's sign-in.
func (a *Accounts) NewLink(ctx context.Context, who Identity) (secret string, err error) {
	if who.Client != "" || !who.Person() {
		return "", api.Refuse(api.CodeUserTokenRequired, "A program can't sign a browser in; sign in there.")
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		if who.TokenID != 0 {
			t, err := tx.Token(tx.Context(), who.TokenID)
			if err != nil {
				return fmt.Errorf("read a token: %w", err)
			}
			if t.Kind != tokenBearer {
				return api.Refuse(api.CodeForbidden, "Only who has the token in the data directory makes such links; sign in with your name and password.")
			}
		}
		secret, err = issue(tx, who.UserID, tokenLink, linkLife, From{})
		return err
	})
	return secret, err
}

// SignIn consumes a one-time link and answers a cookie's value. Error:
// unauthenticated when the link is unknown, used or too old.
func (a *Accounts) SignIn(ctx context.Context, link string, from From) (cookie string, expires time.Time, err error) {
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		user, err := useLink(tx, link)
		if err != nil {
			return err
		}
		cookie, expires, err = newCookie(tx, user, from)
		return err
	})
	return cookie, expires, err
}

// useLink consumes a one-time link and answers whose it was.
func useLink(tx *db.Tx, link string) (api.UserID, error) { return useLinkHash(tx, hashOf(link)) }

func useLinkHash(tx *db.Tx, hash []byte) (api.UserID, error) {
	t, err := tx.TokenByHash(tx.Context(), hash)
	if err == nil {
		n, useErr := tx.UseLink(tx.Context(), queries.UseLinkParams{Now: db.Micros(tx.Now), ID: t.ID})
		if useErr != nil {
			return 0, fmt.Errorf("use a link: %w", useErr)
		}
		if n == 1 {
			return t.UserID, nil
		}
	}
	if err != nil && !db.None(err) {
		return 0, fmt.Errorf("read a link: %w", err)
	}
	return 0, api.Refuse(api.CodeUnauthenticated, "This sign-in link is unknown, used or older than 10 minutes. Run “stint open” for a new one.")
}

func newCookie(tx *db.Tx, user api.UserID, from From) (cookie string, expires time.Time, err error) {
	if err := noteNetwork(tx, user, from.Address); err != nil {
		return "", time.Time{}, err
	}
	cookie, err = issue(tx, user, tokenCookie, cookieLife, from)
	return cookie, tx.Now.Add(cookieLife), err
}

// SignOut revokes a bearer token or cookie; an unknown one is no error.
func (a *Accounts) SignOut(ctx context.Context, secret string) error {
	return a.store.Write(ctx, func(tx *db.Tx) error {
		t, err := tx.TokenByHash(tx.Context(), hashOf(secret))
		if db.None(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a token: %w", err)
		}
		tx.LessRights()
		_, err = tx.RevokeToken(tx.Context(), queries.RevokeTokenParams{Now: db.Micros(tx.Now), ID: t.ID})
		return err
	})
}

// In makes the caller of an identity in a workspace, named by id or slug.
// Error: not_found when there is none or the user is no member.
func (a *Accounts) In(ctx context.Context, who Identity, ref string) (out Caller, err error) {
	err = a.store.ReadRights(ctx, func(tx *db.ReadTx) error {
		var ws queries.Workspace
		if id, perr := api.ParseWorkspaceID(ref); perr == nil && id != 0 {
			ws, err = tx.Workspace(ctx, id)
		} else {
			ws, err = tx.WorkspaceBySlug(ctx, ref)
		}
		if ws, err = db.Load(ws, err, "workspace"); err != nil {
			return err
		}
		if who.WorkspaceID != 0 && who.WorkspaceID != ws.ID {
			return db.NotFound("workspace")
		}
		if who.Run != nil {
			out, err = runIn(ctx, tx, who, &ws)
			return err
		}
		m, err := tx.Member(ctx, queries.MemberParams{WorkspaceID: ws.ID, UserID: who.UserID})
		if m, err = db.Load(m, err, "workspace"); err != nil {
			return err
		}
		out = Caller{WorkspaceID: ws.ID, Workspace: ws.Slug, UserID: who.UserID, Name: who.Name, Role: m.Role, Client: who.Client, KeyID: who.KeyID, Scopes: who.Scopes, Via: who.via()}
		return nil
	})
	return out, err
}

// Workspaces lists the workspaces of which the user is a member.
func (a *Accounts) Workspaces(ctx context.Context, who Identity) ([]api.Workspace, error) {
	out := []api.Workspace{}
	err := a.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.WorkspacesOf(ctx, who.UserID)
		for _, w := range rows {
			if who.WorkspaceID != 0 && who.WorkspaceID != w.ID {
				continue
			}
			out = append(out, api.Workspace{ID: w.ID, Slug: w.Slug, Name: w.Name})
		}
		return err
	})
	return out, err
}
