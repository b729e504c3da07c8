package engine

import (
	"context"
	"fmt"
	"math"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// Members lists the people of the workspace, the newest users first. Rights: viewer.
func (e *Engine) Members(ctx context.Context, c Caller, page api.Page) (out api.List[api.WorkspaceMember], err error) {
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		rows, err := tx.MembersOf(ctx, queries.MembersOfParams{WorkspaceID: c.WorkspaceID, Before: api.UserID(before), N: n + 1})
		if err != nil {
			return fmt.Errorf("list members: %w", err)
		}
		out = db.ListOf(rows, n, func(m queries.MembersOfRow) api.WorkspaceMember {
			shown := api.WorkspaceMember{UserID: m.UserID, Name: m.Name, Role: m.Role, JoinedAt: api.At(m.CreatedAt)}
			if c.Can(account.ManageMembers) || m.UserID == c.UserID {
				shown.Login = m.Login
			}
			return shown
		}, func(m queries.MembersOfRow) int64 { return int64(m.UserID) })
		return nil
	})
	return out, err
}

// memberOf reads a member and refuses what would leave the workspace without an owner. next is
// the member's future role, "" for none.
func memberOf(tx *db.Tx, c Caller, user api.UserID, next api.Role) (queries.Member, error) {
	m, err := tx.Member(tx.Context(), queries.MemberParams{WorkspaceID: c.WorkspaceID, UserID: user})
	if m, err = db.Load(m, err, "member"); err != nil || m.Role != api.Owner || next == api.Owner {
		return m, err
	}
	owners, err := tx.CountOwners(tx.Context(), c.WorkspaceID)
	if err == nil && owners <= 1 {
		return m, api.Refuse(api.CodeLastOwner, "This is the last owner; make somebody else an owner first.")
	}
	return m, err
}

// checkRole names what is wrong with a role.
func checkRole(role api.Role) error {
	var v api.Invalid
	if !role.AtLeast(api.Viewer) {
		v.Add("role", "must be owner, admin, member or viewer")
	}
	return v.Err()
}

// SetRole gives a member another role, at once for every request and stream of theirs. What
// they no longer have a right to ends with it: no longer an owner their invitations, no longer
// an admin their webhooks, as a viewer their local sessions, and the agents that run as them
// pause; what they asked to be landed and may not any more is refused. Rights: owner. Errors: forbidden, not_found, last_owner, invalid.
func (e *Engine) SetRole(ctx context.Context, c Caller, user api.UserID, role api.Role) (out api.WorkspaceMember, err error) {
	if err := c.May(account.ManageMembers); err != nil {
		return out, err
	}
	if err := checkRole(role); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		m, err := memberOf(tx, c, user, role)
		if err != nil {
			return err
		}
		u, err := tx.User(tx.Context(), user)
		if err != nil {
			return fmt.Errorf("read user %s: %w", user, err)
		}
		out = api.WorkspaceMember{UserID: user, Name: u.Name, Role: role, JoinedAt: api.At(m.CreatedAt)}
		if m.Role == role {
			return nil
		}
		tx.LessRights()
		err = db.One(tx.SetRole(tx.Context(), queries.SetRoleParams{Role: role, WorkspaceID: c.WorkspaceID, UserID: user, FromRole: m.Role}))
		if err != nil {
			return fmt.Errorf("set the role of user %s: %w", user, err)
		}
		data := api.EventData{"user": user.String(), "from": m.Role, "to": role}
		if err := e.demote(tx, c, u, role, data); err != nil {
			return err
		}
		return tx.Log(db.Event{Workspace: c.WorkspaceID, Actor: c.Actor(), Type: api.EventMemberRole, Data: data})
	})
	return out, err
}

// RemoveMember ends a membership and everything that depends on it, in one transaction: the
// member's open sessions are cancelled, their local workers deleted, their API keys and open
// invitations revoked, the trigger URLs that they opened closed, their webhooks disabled, the
// agents that run as them paused, and if it was their last membership every sign-in of theirs
// ends (contract 2.5). Rights: owner, or oneself. Errors: forbidden, not_found, last_owner.
func (e *Engine) RemoveMember(ctx context.Context, c Caller, user api.UserID) (out api.MemberRemoved, err error) {
	if user != c.UserID || c.InPerson() == 0 || c.KeyID != 0 || c.Run != nil {
		if err := c.May(account.ManageMembers); err != nil {
			return out, err
		}
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		out = api.MemberRemoved{}
		m, err := memberOf(tx, c, user, "")
		if err != nil {
			return err
		}
		u, err := tx.User(tx.Context(), user)
		if err != nil {
			return fmt.Errorf("read user %s: %w", user, err)
		}
		why := u.Name + " is no longer a member."
		if out.Sessions, err = e.cancelOf(tx, c, user, ending{"member_removed", why, func(*sessionRow) bool { return true }}); err != nil {
			return err
		}
		if out.Workers, err = e.forgetWorkersOf(tx, c, user); err != nil {
			return err
		}
		if out.Agents, err = e.pauseAgentsOf(tx, c, user, why); err != nil {
			return err
		}
		if err := e.endTasksOf(tx, c, user); err != nil {
			return err
		}
		if err := e.closeTriggersBy(tx, c, user); err != nil {
			return err
		}
		if err := e.disableWebhooksOf(tx, c, user, "", u.Name+" is no longer a member"); err != nil {
			return err
		}
		if err := e.endRightsOf(tx, c, user, m.Role); err != nil {
			return err
		}
		if err := e.refuseLandingsOf(tx, c, u); err != nil { // of cloud sessions, and on workers that stay
			return err
		}
		return tx.Log(db.Event{Workspace: c.WorkspaceID, Actor: c.Actor(), Type: api.EventMemberRemoved, Data: api.EventData{
			"user": user.String(), "name": u.Name, "cancelledSessions": out.Sessions, "deletedWorkers": out.Workers, "pausedAgents": out.Agents,
		}})
	})
	return out, err
}

// ending says which of a user's open sessions are cancelled, and why.
type ending struct {
	code, why string
	of        func(*sessionRow) bool
}

func (e *Engine) cancelOf(tx *db.Tx, c Caller, user api.UserID, end ending) (n int, err error) {
	open, err := tx.OpenOfMember(tx.Context(), queries.OpenOfMemberParams{WorkspaceID: c.WorkspaceID, UserID: user})
	if err != nil {
		return 0, fmt.Errorf("list what is open of user %s: %w", user, err)
	}
	for _, id := range open {
		// Read one by one: cancelling one may have cancelled its followers.
		s, err := tx.Session(tx.Context(), id)
		if err != nil {
			return 0, fmt.Errorf("read session %s: %w", id, err)
		}
		if s.Status.Terminal() || !end.of(&s) {
			continue
		}
		if err := e.cancelTx(tx, &s, c.Actor(), end.code, end.why); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

func (e *Engine) forgetWorkersOf(tx *db.Tx, c Caller, user api.UserID) (int, error) {
	workers, err := tx.WorkersOfMember(tx.Context(), queries.WorkersOfMemberParams{WorkspaceID: c.WorkspaceID, UserID: user})
	if err != nil {
		return 0, fmt.Errorf("list the workers of user %s: %w", user, err)
	}
	for i := range workers {
		if err := e.deleteWorkerTx(tx, c, &workers[i]); err != nil {
			return 0, err
		}
	}
	return len(workers), nil
}

func (e *Engine) pauseAgentsOf(tx *db.Tx, c Caller, user api.UserID, why string) (n int, err error) {
	agents, err := tx.AgentsRunAs(tx.Context(), queries.AgentsRunAsParams{WorkspaceID: c.WorkspaceID, UserID: user})
	if err != nil {
		return 0, fmt.Errorf("list the agents that run as user %s: %w", user, err)
	}
	for i := range agents {
		in := input(&agents[i])
		in.Paused = true
		changed, err := e.editTx(tx, c, &agents[i], in, why)
		if err != nil {
			return 0, fmt.Errorf("pause agent %s: %w", agents[i].ID, err)
		}
		if changed {
			n++
		}
	}
	return n, nil
}

func (e *Engine) endRightsOf(tx *db.Tx, c Caller, user api.UserID, from api.Role) error {
	tx.LessRights()
	now := db.Micros(tx.Now)
	if err := db.One(tx.DeleteMember(tx.Context(), queries.DeleteMemberParams{WorkspaceID: c.WorkspaceID, UserID: user, FromRole: from})); err != nil {
		return fmt.Errorf("remove user %s: %w", user, err)
	}
	if _, err := tx.RevokeKeysOf(tx.Context(), queries.RevokeKeysOfParams{Now: now, WorkspaceID: c.WorkspaceID, UserID: user}); err != nil {
		return fmt.Errorf("revoke the keys of user %s: %w", user, err)
	}
	if _, err := tx.RevokeInvitationsBy(tx.Context(), queries.RevokeInvitationsByParams{Now: now, WorkspaceID: c.WorkspaceID, InvitedBy: user}); err != nil {
		return fmt.Errorf("revoke the invitations of user %s: %w", user, err)
	}
	left, err := tx.CountMemberships(tx.Context(), user)
	if err != nil || left > 0 {
		return err
	}
	if _, err := tx.RevokeTokensOf(tx.Context(), queries.RevokeTokensOfParams{Now: now, UserID: user}); err != nil {
		return fmt.Errorf("end the sign-ins of user %s: %w", user, err)
	}
	if _, err := tx.RevokeProgramsOf(tx.Context(), queries.RevokeProgramsOfParams{Now: now, UserID: user}); err != nil {
		return fmt.Errorf("sign the programs of user %s out: %w", user, err)
	}
	return nil
}
