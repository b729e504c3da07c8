package account

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Run is the claim by which an agent acts for itself (contract 8.4). It may write of
// its own session what can do no harm to the worker's account of it, keep its lease,
// read its session and those that it started, and start sessions of other agents.
type Run struct {
	Claim    api.ClaimID
	Session  api.SessionID
	Worker   api.WorkerID
	Instance string
	Depth    int64 // of the session
}

const runPrefix = api.RunTokenPrefix

// RunToken is the token of the agent that a claim's holder runs. It is derived from
// the claim's secret, so that nothing more is written with each claim, every answer
// to the same claim tells the same one, and it is nothing once the claim is closed.
func RunToken(c *queries.Claim) string {
	sum := hmac.New(sha256.New, c.Secret)
	sum.Write([]byte(runPrefix))
	token := runPrefix + strings.TrimPrefix(c.ID.String(), claimPrefix) + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:24])
	return token + checksum(token)
}

const (
	claimPrefix = "clm_"
	claimDigits = 10
)

// claimOfRun is which claim a run's token says that it is of.
func claimOfRun(token string) (key api.ClaimKey, ok bool) {
	if !sound(token, runPrefix) || len(token) < len(runPrefix)+claimDigits {
		return 0, false
	}
	err := key.UnmarshalText([]byte(claimPrefix + token[len(runPrefix):len(runPrefix)+claimDigits]))
	return key, err == nil
}

// authenticateRun finds out which run an agent's token is of. It acts for the
// session's owner, or for who triggered a cloud session; one that the scheduler
// or a webhook triggered acts for nobody.
func (a *Accounts) authenticateRun(ctx context.Context, token string) (out Identity, err error) {
	key, ok := claimOfRun(token)
	if !ok {
		return out, errNotSignedIn
	}
	err = a.store.ReadRights(ctx, func(tx *db.ReadTx) error {
		row, err := tx.RunOfClaim(ctx, key)
		if db.None(err) || (err == nil && (subtle.ConstantTimeCompare([]byte(RunToken(&row.Claim)), []byte(token)) != 1 || row.Claim.ClosedAt != 0 || row.Claim.ExpiresAt <= db.Micros(a.store.Now()))) {
			return errNotSignedIn
		}
		if err != nil {
			return fmt.Errorf("read a run's token: %w", err)
		}
		c := row.Claim
		out = Identity{UserID: row.OwnerUserID, WorkspaceID: row.WorkspaceID, Run: &Run{
			Claim: api.NewClaimID(c.ID, c.Secret), Session: c.SessionID, Worker: c.WorkerID, Instance: c.InstanceID, Depth: row.Depth,
		}}
		if out.UserID == 0 {
			out.UserID = row.TriggeredByUserID
		}
		u, err := tx.User(ctx, out.UserID)
		if err != nil && !db.None(err) {
			return fmt.Errorf("read user %s: %w", out.UserID, err)
		}
		out.Name = u.Name
		return nil
	})
	return out, err
}

// runIn is In for a run: it is in its session's workspace, with the role that the
// person it acts for has there now, or with none.
func runIn(ctx context.Context, tx *db.ReadTx, who Identity, ws *queries.Workspace) (Caller, error) {
	m, err := tx.Member(ctx, queries.MemberParams{WorkspaceID: ws.ID, UserID: who.UserID})
	if err != nil && !db.None(err) {
		return Caller{}, fmt.Errorf("read the membership of user %s: %w", who.UserID, err)
	}
	return Caller{WorkspaceID: ws.ID, Workspace: ws.Slug, UserID: who.UserID, Name: who.Name, Role: m.Role, Run: who.Run}, nil
}

// Person reports whether a user acts in person, or a program that they signed in:
// neither an API key nor a run.
func (i Identity) Person() bool { return i.KeyID == 0 && i.Run == nil }
