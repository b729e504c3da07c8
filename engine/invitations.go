package engine

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
)

// Invite makes a one-time code whose holder may take a role within seven days.
// Rights: owner. Errors: forbidden, invalid.
func (e *Engine) Invite(ctx context.Context, c Caller, in api.InvitationInput) (out api.Invitation, err error) {
	if err := c.may(mayManageMembers); err != nil {
		return out, err
	}
	in.Note = strings.TrimSpace(in.Note)
	var v api.Invalid
	if !in.Role.AtLeast(api.Viewer) {
		v.Add("role", "must be owner, admin, member or viewer")
	}
	checkText(&v, "note", in.Note, maxTitle)
	if err := v.Err(); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		code, hash := randomSecret(invitationPrefix)
		now, ends := micros(tx.Now), micros(tx.Now.Add(invitationLife))
		id := api.InviteID(tx.NewID())
		err := tx.InsertInvitation(wctx(), queries.InsertInvitationParams{
			ID: id, WorkspaceID: c.WorkspaceID, Role: in.Role, Note: in.Note, Hash: hash, InvitedBy: c.UserID, CreatedAt: now, ExpiresAt: ends,
		})
		if err != nil {
			return fmt.Errorf("keep an invitation: %w", err)
		}
		out = api.Invitation{
			ID: id, Role: in.Role, Note: in.Note, InvitedBy: c.Name, CreatedAt: api.At(now), ExpiresAt: api.At(ends), Code: code,
		}
		return e.logPeople(tx, c.WorkspaceID, c.actor(), evInvited, api.EventData{"invitation": id.String(), "role": in.Role, "note": in.Note})
	})
	return out, err
}

// Invitations lists the open ones, newest first. Rights: owner.
func (e *Engine) Invitations(ctx context.Context, c Caller, page api.Page) (out api.List[api.Invitation], err error) {
	if err := c.may(mayManageMembers); err != nil {
		return out, err
	}
	n, before, err := pageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.InvitationsOf(ctx, queries.InvitationsOfParams{
			WorkspaceID: c.WorkspaceID, Now: micros(e.Now()), Before: api.InviteID(before), N: n + 1,
		})
		if err != nil {
			return fmt.Errorf("list invitations: %w", err)
		}
		out = listOf(rows, n, func(r queries.InvitationsOfRow) api.Invitation {
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
func (e *Engine) RevokeInvitation(ctx context.Context, c Caller, id api.InviteID) error {
	if err := c.may(mayManageMembers); err != nil {
		return err
	}
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		n, err := tx.RevokeInvitation(wctx(), queries.RevokeInvitationParams{Now: micros(tx.Now), ID: id, WorkspaceID: c.WorkspaceID})
		if err != nil {
			return fmt.Errorf("revoke invitation %s: %w", id, err)
		}
		if n == 0 {
			return notFound("invitation")
		}
		return e.logPeople(tx, c.WorkspaceID, c.actor(), evInvitationRevoked, api.EventData{"invitation": id.String()})
	})
}

var errNoInvitation = api.Refuse(api.CodeUnauthenticated, "This invitation is unknown, used, revoked or older than 7 days. Ask for a new one.")

// openInvitation reads an invitation that is still good: whoever made it must be
// one who may invite now too.
func openInvitation(ctx context.Context, q queries.Querier, hash []byte, now int64) (queries.Invitation, error) {
	i, err := q.InvitationByHash(ctx, hash)
	if none(err) || (err == nil && (i.UsedAt != 0 || i.RevokedAt != 0 || i.ExpiresAt <= now)) {
		return i, errNoInvitation
	}
	if err != nil {
		return i, fmt.Errorf("read an invitation: %w", err)
	}
	role, err := roleOf(ctx, q, i.WorkspaceID, i.InvitedBy)
	if err == nil && !role.AtLeast(rights[mayManageMembers].role) {
		err = errNoInvitation
	}
	return i, err
}

// readsInvitation refuses a code that is no good before anything is spent on it.
func (e *Engine) readsInvitation(ctx context.Context, code string) error {
	return e.store.Read(ctx, func(tx *db.ReadTx) error {
		_, err := openInvitation(ctx, tx, hashOf(code), micros(e.Now()))
		return err
	})
}

// Join consumes an invitation: it makes a new user of in, signed in by the
// cookie that is answered. Errors: unauthenticated, invalid, too_many_requests.
func (e *Engine) Join(ctx context.Context, code string, in api.LoginInput, from From) (cookie string, expires time.Time, err error) {
	if err := checkNewLogin(&in); err != nil {
		return "", time.Time{}, err
	}
	if err := e.write(ctx, func(tx *db.Tx) error { return takeTry(tx, linkBucket(from)) }); err != nil {
		return "", time.Time{}, err
	}
	if err := e.readsInvitation(ctx, code); err != nil {
		return "", time.Time{}, err
	}
	text, err := e.hashers.hash(ctx, in.Password)
	if err != nil {
		return "", time.Time{}, err
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		user := api.UserID(tx.NewID())
		if err := tx.InsertUser(wctx(), queries.InsertUserParams{ID: user, Name: in.Name, CreatedAt: micros(tx.Now)}); err != nil {
			return fmt.Errorf("make a user: %w", err)
		}
		if err := putLogin(tx, user, in, text); err != nil {
			return err
		}
		if _, err := e.joinTx(tx, code, user, in.Name); err != nil {
			return err
		}
		cookie, expires, err = newCookie(tx, user, from)
		return err
	})
	return cookie, expires, err
}

// JoinAs consumes an invitation for a user who is signed in, and answers the
// workspace. Errors: unauthenticated, conflict when he is a member already.
func (e *Engine) JoinAs(ctx context.Context, who Identity, code string) (out api.Workspace, err error) {
	if err := inPerson(who.Client); err != nil {
		return out, err
	}
	err = e.write(ctx, func(tx *db.Tx) error {
		ws, err := e.joinTx(tx, code, who.UserID, who.Name)
		out = api.Workspace{ID: ws.ID, Slug: ws.Slug, Name: ws.Name}
		return err
	})
	return out, err
}

func (e *Engine) joinTx(tx *db.Tx, code string, user api.UserID, name string) (ws queries.Workspace, err error) {
	return e.joinHashTx(tx, hashOf(code), user, name)
}

func (e *Engine) joinHashTx(tx *db.Tx, hash []byte, user api.UserID, name string) (ws queries.Workspace, err error) {
	i, err := openInvitation(wctx(), tx, hash, micros(tx.Now))
	if err != nil {
		return ws, err
	}
	err = tx.InsertMember(wctx(), queries.InsertMemberParams{WorkspaceID: i.WorkspaceID, UserID: user, Role: i.Role, CreatedAt: micros(tx.Now)})
	if db.IsUnique(err) {
		return ws, api.Refuse(api.CodeConflict, "You are a member of this workspace already.")
	}
	if err != nil {
		return ws, fmt.Errorf("make user %s a member: %w", user, err)
	}
	n, err := tx.UseInvitation(wctx(), queries.UseInvitationParams{Now: micros(tx.Now), UsedBy: user, ID: i.ID})
	if err := one(n, err); err != nil {
		return ws, fmt.Errorf("use invitation %s: %w", i.ID, err)
	}
	if ws, err = tx.Workspace(wctx(), i.WorkspaceID); err != nil {
		return ws, fmt.Errorf("read workspace %s: %w", i.WorkspaceID, err)
	}
	return ws, e.logPeople(tx, ws.ID, user.String(), evMemberJoined, api.EventData{
		"user": user.String(), "name": name, "role": i.Role, "invitation": i.ID.String(), "invitedBy": i.InvitedBy.String(),
	})
}
