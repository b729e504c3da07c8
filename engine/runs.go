package engine

import (
	"fmt"
	"slices"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// runProof is what a run's write is under: its own claim, which it need not name.
func runProof(r *account.Run, worker api.WorkerID, session api.SessionID, given api.UnderClaim) (api.UnderClaim, error) {
	own := api.UnderClaim{ClaimID: r.Claim, InstanceID: r.Instance}
	if worker != r.Worker || session != r.Session {
		return own, db.NotFound("session")
	}
	if !given.ClaimID.IsZero() && given.ClaimID != own.ClaimID {
		return own, db.NotFound("claim")
	}
	return own, nil
}

// runActivities are the activities that an agent may note itself. The others say what its
// worker decided or observed.
var runActivities = []api.ActivityType{api.ActivityProgress, api.ActivityPlanUpdated, api.ActivityExternalURL}

func mayNote(c Caller, in api.ActivityInput) error {
	if c.Run == nil || slices.Contains(runActivities, in.Type) && in.Mark == "" {
		return nil
	}
	return runRefused("An agent can't note this itself; it notes " + fmt.Sprint(runActivities) + ".")
}

func mayAppend(c Caller, items []api.ItemInput) error {
	if c.Run == nil || !slices.ContainsFunc(items, func(i api.ItemInput) bool { return i.Kind != api.ItemText }) {
		return nil
	}
	return runRefused("An agent appends text itself; its worker writes the rest.")
}

// mayPatch keeps an agent from changing what its limits are counted by, and the prompt.
func mayPatch(c Caller, in api.SessionPatch) error {
	if c.Run == nil || in.AgentSessionID == nil && in.WorkPath == nil && in.ResumeCommand == nil && in.Usage == nil && in.Status == "" && in.Prompt == nil && !in.TurnEnded && in.LastConsumed == 0 && in.Tries == 0 && len(in.Taken) == 0 {
		return nil
	}
	return runRefused("An agent sets the plan and the external URL itself; its worker reports the rest.")
}

func runRefused(why string) error { return api.Refuse(api.CodeForbidden, why) }

// startedBy fills in that an agent started a session, and counts it: no deeper and no more
// than the limits say (contract 8.4).
func (e *Engine) startedBy(tx *db.Tx, r *account.Run, n *newSession) error {
	if r.Depth >= e.cfg.RunDepth {
		return runRefused(fmt.Sprintf("Agents start each other %d deep and no deeper.", e.cfg.RunDepth))
	}
	counted, err := tx.CountStart(tx.Context(), queries.CountStartParams{ID: r.Claim.Key, Now: db.Micros(tx.Now), Most: e.cfg.RunStarts})
	if err != nil {
		return fmt.Errorf("count what claim %s starts: %w", r.Claim, err)
	}
	if counted == 0 {
		return runRefused(fmt.Sprintf("An agent starts %d sessions under one claim and no more, and none after its end.", e.cfg.RunStarts))
	}
	n.by, n.parent, n.depth = api.ByAgent, r.Session, r.Depth+1
	return nil
}
