package engine

import (
	"fmt"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// demote ends what a member of a lesser role has no right to any more, in the
// transaction that gives it to them. Who may run nothing would have no way to end
// what runs for them alone either: their local sessions end, and the agents that run
// as them pause. It adds to data what it did.
func (e *Engine) demote(tx *db.Tx, c Caller, user queries.User, role api.Role, data api.EventData) error {
	if err := e.refuseLandingsOf(tx, c, user); err != nil {
		return err
	}
	if !role.AtLeast(account.ManageMembers.Role()) {
		_, err := tx.RevokeInvitationsBy(tx.Context(), queries.RevokeInvitationsByParams{Now: db.Micros(tx.Now), WorkspaceID: c.WorkspaceID, InvitedBy: user.ID})
		if err != nil {
			return fmt.Errorf("revoke the invitations of user %s: %w", user.ID, err)
		}
	}
	if !role.AtLeast(account.ManageWebhooks.Role()) {
		if err := e.disableWebhooksOf(tx, c, user.ID, role, user.Name+" is no longer an admin here"); err != nil {
			return err
		}
	}
	if role.AtLeast(account.TriggerLocal.Role()) {
		return nil
	}
	if err := e.endTasksOf(tx, c, user.ID); err != nil { // who may run nothing may edit no task either
		return err
	}
	why := user.Name + " may no longer run agents here."
	sessions, err := e.cancelOf(tx, c, user.ID, ending{"role_changed", why, func(s *sessionRow) bool { return s.Mode == api.Local }})
	if err != nil {
		return err
	}
	agents, err := e.pauseAgentsOf(tx, c, user.ID, why)
	if err != nil {
		return err
	}
	data["cancelledSessions"], data["pausedAgents"] = sessions, agents
	return nil
}

// checkRunsAs refuses an edit after which an agent would make local sessions that
// nobody may see, claim or end (contract 8.3).
func checkRunsAs(tx *db.Tx, a *agentRow, in api.AgentInput) error {
	var v api.Invalid
	switch {
	case in.Mode != api.Local:
		return nil
	case in.RunsAsUserID == 0:
		open, err := tx.TriggerURLsOfAgent(tx.Context(), queries.TriggerURLsOfAgentParams{AgentID: a.ID, Before: maxSeq, N: 1})
		if err != nil {
			return fmt.Errorf("list the trigger URLs of agent %s: %w", a.ID, err)
		}
		if len(open) > 0 {
			v.Add("runsAsUserId", "can't be empty while a trigger URL is open, which starts the agent for that user: close it first")
		}
	case !in.Paused:
		role, err := account.RoleOf(tx.Context(), tx, a.WorkspaceID, in.RunsAsUserID)
		if err != nil {
			return err
		}
		if !role.AtLeast(account.TriggerLocal.Role()) {
			v.Add("runsAsUserId", "is a user who may not run agents here any more: set it to yourself, or leave the agent paused")
		}
	}
	return v.Err()
}
