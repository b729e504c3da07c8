package account

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	invitationPrefix = "stint_inv_"
	invitationLife   = 7 * 24 * time.Hour
	maxNote          = 200 // bytes
)

// Invite makes a one-time code whose holder may take a role within seven days.
// Rights: owner. Errors: forbidden, invalid.
func (a *Accounts) Invite(ctx context.Context, c Caller, in api.InvitationInput) (out api.Invitation, err error) {
	if err := c.May(ManageMembers); err != nil {
		return out, err
	}
	in.Note = strings.TrimSpace(in.Note)
	var v api.Invalid
	if !in.Role.AtLeast(api.Viewer) {
		v.Add("role", "must be owner, admin, member or viewer")
	}
	v.CheckText("note", in.Note, maxNote)
	v.CheckLine("note", in.Note)
	if err := v.Err(); err != nil {
		return out, err
	}
	err = a.writeAs(ctx, c, func(tx *db.Tx) error {
		code, hash := randomSecret(invitationPrefix)
		now, ends := db.Micros(tx.Now), db.Micros(tx.Now.Add(invitationLife))
		id := api.InviteID(tx.NewID())
		err := tx.InsertInvitation(tx.Context(), queries.InsertInvitationParams{
			ID: id, WorkspaceID: c.WorkspaceID, Role: in.Role, Note: in.Note, Hash: hash, InvitedBy: c.UserID, CreatedAt: now, ExpiresAt: ends,
		})
		if err != nil {
			return fmt.Errorf("keep an invitation: %w", err)
		}
		out = api.Invitation{
			ID: id, Role: in.Role, Note: in.Note, InvitedBy: c.Name, CreatedAt: api.At(now), ExpiresAt: api.At(ends), Code: code,
		}
		return tx.Log(db.Event{Workspace: c.WorkspaceID, Actor: c.Actor(), Type: api.EventInvited, Data: api.EventData{"invitation": id.String(), "role": in.Role, "note": in.Note}})
	})
	return out, err
}

// Invitations lists the open ones, newest first. Rights: owner.
func (a *Accounts) Invitations(ctx context.Context, c Caller, page api.Page) (out api.List[api.Invitation], err error) {
	if err := c.May(ManageMembers); err != nil {
		return out, err
	}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = a.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.InvitationsOf(ctx, queries.InvitationsOfParams{
			WorkspaceID: c.WorkspaceID, Now: db.Micros(a.store.Now()), Before: api.InviteID(before), N: n + 1,
		})
		if err != nil {
			return fmt.Errorf("list invitations: %w", err)
		}
		out = db.ListOf(rows, n, func(r queries.InvitationsOfRow) api.Invitation {
			i := r.Invitation
			return api.Invitation{
				ID: i.ID, Role: i.Role, Note: i.Note, InvitedBy: r.InvitedByName, CreatedAt: api.At(i.CreatedAt), ExpiresAt: api.At(i.ExpiresAt),
			}
		}, func(r queries.InvitationsOfRow) int64 { return int64(r.Invitation.ID) })
		return nil
	})
	return out, err
}

// RevokeInvitation ends an open invitation. Rights: owner. Errors: forbidden, not_found.
func (a *Accounts) RevokeInvitation(ctx context.Context, c Caller, id api.InviteID) error {
	if err := c.May(ManageMembers); err != nil {
		return err
	}
	return a.writeAs(ctx, c, func(tx *db.Tx) error {
		n, err := tx.RevokeInvitation(tx.Context(), queries.RevokeInvitationParams{Now: db.Micros(tx.Now), ID: id, WorkspaceID: c.WorkspaceID})
		if err != nil {
			return fmt.Errorf("revoke invitation %s: %w", id, err)
		}
		if n == 0 {
			return db.NotFound("invitation")
		}
		return tx.Log(db.Event{Workspace: c.WorkspaceID, Actor: c.Actor(), Type: api.EventInvitationRevoked, Data: api.EventData{"invitation": id.String()}})
	})
}

var errNoInvitation = api.Refuse(api.CodeUnauthenticated, "This invitation is unknown, used, revoked or older than 7 days. Ask for a new one.")

// openInvitation reads an invitation that is still good: whoever made it must be
// one who may invite now too.
func openInvitation(ctx context.Context, q queries.Querier, hash []byte, now int64) (queries.Invitation, error) {
	i, err := q.InvitationByHash(ctx, hash)
	if db.None(err) || (err == nil && (i.UsedAt != 0 || i.RevokedAt != 0 || i.ExpiresAt <= now)) {
		return i, errNoInvitation
	}
	if err != nil {
		return i, fmt.Errorf("read an invitation: %w", err)
	}
	role, err := RoleOf(ctx, q, i.WorkspaceID, i.InvitedBy)
	if err == nil && !role.AtLeast(ManageMembers.Role()) {
		err = errNoInvitation
	}
	return i, err
}

// readsInvitation refuses a code that is no good before anything is spent on it.
func (a *Accounts) readsInvitation(ctx context.Context, code string) error {
	return a.store.Read(ctx, func(tx *db.ReadTx) error {
		_, err := openInvitation(ctx, tx, hashOf(code), db.Micros(a.store.Now()))
		return err
	})
}

// Join consumes an invitation: it makes a new user of in, signed in by the
// cookie that is answered. Errors: unauthenticated, invalid, too_many_requests.
func (a *Accounts) Join(ctx context.Context, code string, in api.LoginInput, from From) (cookie string, expires time.Time, err error) {
	if err := checkNewLogin(&in); err != nil {
		return "", time.Time{}, err
	}
	if err := a.store.Write(ctx, func(tx *db.Tx) error { return takeAttempt(tx, linkBucket(from)) }); err != nil {
		return "", time.Time{}, err
	}
	if err := a.readsInvitation(ctx, code); err != nil {
		return "", time.Time{}, err
	}
	text, err := a.hashers.hash(ctx, in.Password)
	if err != nil {
		return "", time.Time{}, err
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		user := api.UserID(tx.NewID())
		if err := tx.InsertUser(tx.Context(), queries.InsertUserParams{ID: user, Name: in.Name, CreatedAt: db.Micros(tx.Now)}); err != nil {
			return fmt.Errorf("make a user: %w", err)
		}
		if err := putLogin(tx, user, in, text); err != nil {
			return err
		}
		if _, err := a.joinTx(tx, code, user, in.Name); err != nil {
			return err
		}
		cookie, expires, err = newCookie(tx, user, from)
		return err
	})
	return cookie, expires, err
}

// JoinAs consumes an invitation for a user who is signed in, and answers the
// workspace. Errors: unauthenticated, conflict when they are a member already.
func (a *Accounts) JoinAs(ctx context.Context, who Identity, code string) (out api.Workspace, err error) {
	if err := InPerson(who.Client); err != nil {
		return out, err
	}
	err = a.store.Write(ctx, func(tx *db.Tx) error {
		ws, err := a.joinTx(tx, code, who.UserID, who.Name)
		out = api.Workspace{ID: ws.ID, Slug: ws.Slug, Name: ws.Name}
		return err
	})
	return out, err
}

func (a *Accounts) joinTx(tx *db.Tx, code string, user api.UserID, name string) (ws queries.Workspace, err error) {
	return a.joinHashTx(tx, hashOf(code), user, name)
}

func (a *Accounts) joinHashTx(tx *db.Tx, hash []byte, user api.UserID, name string) (ws queries.Workspace, err error) {
	i, err := openInvitation(tx.Context(), tx, hash, db.Micros(tx.Now))
	if err != nil {
		return ws, err
	}
	err = tx.InsertMember(tx.Context(), queries.InsertMemberParams{WorkspaceID: i.WorkspaceID, UserID: user, Role: i.Role, CreatedAt: db.Micros(tx.Now)})
	if db.IsUnique(err) {
		return ws, api.Refuse(api.CodeConflict, "You are a member of this workspace already.")
	}
	if err != nil {
		return ws, fmt.Errorf("make user %s a member: %w", user, err)
	}
	n, err := tx.UseInvitation(tx.Context(), queries.UseInvitationParams{Now: db.Micros(tx.Now), UsedBy: user, ID: i.ID})
	if err := db.One(n, err); err != nil {
		return ws, fmt.Errorf("use invitation %s: %w", i.ID, err)
	}
	if ws, err = tx.Workspace(tx.Context(), i.WorkspaceID); err != nil {
		return ws, fmt.Errorf("read workspace %s: %w", i.WorkspaceID, err)
	}
	return ws, tx.Log(db.Event{Workspace: ws.ID, Actor: user.String(), Type: api.EventMemberJoined, Data: api.EventData{
		"user": user.String(), "name": name, "role": i.Role, "invitation": i.ID.String(), "invitedBy": i.InvitedBy.String(),
	}})
}
