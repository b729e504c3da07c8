package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Run is the claim by which an agent acts for itself (contract 8.4). What it may
// do is listed here and nowhere else: write of its own session what can do no
// harm to the worker's account of it, keep its lease, read its session and those
// that it started, and start sessions of other agents.
type Run struct {
	Claim    api.ClaimID
	Session  api.SessionID
	Worker   api.WorkerID
	Instance string
	Depth    int64 // of the session
}

const runPrefix = api.RunTokenPrefix

// runToken is the token of the agent that a claim's holder runs. It is derived from
// the claim's secret, so that nothing more is written with each claim, every answer
// to the same claim tells the same one, and it is nothing once the claim is closed.
func runToken(c *claimRow) string {
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
func (e *Engine) authenticateRun(ctx context.Context, token string) (out Identity, err error) {
	key, ok := claimOfRun(token)
	if !ok {
		return out, errNotSignedIn
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		row, err := tx.RunOfClaim(ctx, key)
		if none(err) || (err == nil && (subtle.ConstantTimeCompare([]byte(runToken(&row.Claim)), []byte(token)) != 1 || row.Claim.ClosedAt != 0 || row.Claim.ExpiresAt <= micros(e.Now()))) {
			return errNotSignedIn
		}
		if err != nil {
			return fmt.Errorf("read a run's token: %w", err)
		}
		c := row.Claim
		out = Identity{UserID: row.OwnerUserID, WorkspaceID: row.WorkspaceID, Run: &Run{
			Claim: claimID(&c), Session: c.SessionID, Worker: c.WorkerID, Instance: c.InstanceID, Depth: row.Depth,
		}}
		if out.UserID == 0 {
			out.UserID = row.TriggeredByUserID
		}
		u, err := tx.User(ctx, out.UserID)
		if err != nil && !none(err) {
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
	if err != nil && !none(err) {
		return Caller{}, fmt.Errorf("read the membership of user %s: %w", who.UserID, err)
	}
	return Caller{WorkspaceID: ws.ID, Workspace: ws.Slug, UserID: who.UserID, Name: who.Name, Role: m.Role, Run: who.Run}, nil
}

// Person reports whether a user himself acts, or a program that he signed in:
// neither an API key nor a run.
func (i Identity) Person() bool { return i.KeyID == 0 && i.Run == nil }

// reads reports whether a run may know of a session: its own, or one it started.
func (r *Run) reads(s *sessionRow) bool { return s.ID == r.Session || s.ParentID == r.Session }

// proof is what a run's write is under: its own claim, which it need not name.
func (r *Run) proof(worker api.WorkerID, session api.SessionID, given api.UnderClaim) (api.UnderClaim, error) {
	own := api.UnderClaim{ClaimID: r.Claim, InstanceID: r.Instance}
	if worker != r.Worker || session != r.Session {
		return own, notFound("session")
	}
	if !given.ClaimID.IsZero() && given.ClaimID != own.ClaimID {
		return own, notFound("claim")
	}
	return own, nil
}

// runActivities are the activities that an agent may note itself. The others say
// what its worker decided or saw.
var runActivities = []api.ActivityType{api.ActivityProgress, api.ActivityPlanUpdated, api.ActivityExternalURL}

func (c Caller) mayNote(kind api.ActivityType) error {
	if c.Run == nil || slices.Contains(runActivities, kind) {
		return nil
	}
	return runRefused("An agent can't note this itself; it notes " + fmt.Sprint(runActivities) + ".")
}

func (c Caller) mayAppend(items []api.ItemInput) error {
	if c.Run == nil || !slices.ContainsFunc(items, func(i api.ItemInput) bool { return i.Kind != api.ItemText }) {
		return nil
	}
	return runRefused("An agent appends text itself; its worker writes the rest.")
}

// mayPatch keeps from an agent what its limits are counted by, and the prompt.
func (c Caller) mayPatch(in api.SessionPatch) error {
	if c.Run == nil || in.AgentSessionID == nil && in.Usage == nil && in.Status == "" && in.Prompt == nil {
		return nil
	}
	return runRefused("An agent sets the plan and the external URL itself; its worker reports the rest.")
}

func runRefused(why string) error { return api.Refuse(api.CodeForbidden, why) }

// startedBy fills in that an agent started a session, and counts it: no deeper
// and no more than the limits say (contract 8.4).
func (e *Engine) startedBy(tx *db.Tx, r *Run, n *newSession) error {
	if r.Depth >= e.cfg.RunDepth {
		return runRefused(fmt.Sprintf("Agents start each other %d deep and no deeper.", e.cfg.RunDepth))
	}
	counted, err := tx.CountStart(wctx(), queries.CountStartParams{ID: r.Claim.Key, Now: micros(tx.Now), Most: e.cfg.RunStarts})
	if err != nil {
		return fmt.Errorf("count what claim %s starts: %w", r.Claim, err)
	}
	if counted == 0 {
		return runRefused(fmt.Sprintf("An agent starts %d sessions under one claim and no more, and none after its end.", e.cfg.RunStarts))
	}
	n.by, n.parent, n.depth = api.ByAgent, r.Session, r.Depth+1
	return nil
}
