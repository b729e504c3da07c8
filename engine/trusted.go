package engine

import (
	"encoding/json"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// trustedOf is a claim's trusted part: the version of the agent that was in force when the
// claim was granted, with the stamps of that version, and the worker's instructions as they
// were then. Changes made meanwhile are for the next claim (contract 4.2).
func trustedOf(tx *db.Tx, c *claimRow, a *agentRow) (api.Trusted, error) {
	in, v := input(a), queries.AgentVersion{Version: a.Version, RunSetBy: a.RunSetBy, TimeoutsSetBy: a.TimeoutsSetBy}
	if c.AgentVersion != a.Version {
		var err error
		v, err = tx.AgentVersion(tx.Context(), queries.AgentVersionParams{AgentID: c.AgentID, Version: c.AgentVersion})
		if err != nil {
			return api.Trusted{}, fmt.Errorf("read version %d of agent %s: %w", c.AgentVersion, c.AgentID, err)
		}
		in = api.AgentInput{}
		if err := json.Unmarshal([]byte(v.Snapshot), &in); err != nil {
			return api.Trusted{}, fmt.Errorf("read version %d of agent %s: %w", c.AgentVersion, c.AgentID, err)
		}
	}
	return api.Trusted{
		AgentSlug: in.Slug, AgentVersion: v.Version, Type: in.Type, Run: in.Run, RunSetBy: v.RunSetBy, Instructions: in.Instructions,
		TurnTimeoutSeconds: in.TurnTimeoutSeconds, StallTimeoutSeconds: in.StallTimeoutSeconds, TimeoutsSetBy: v.TimeoutsSetBy,
		WorkerInstructions: c.WorkerInstructions, WorkerInstructionsSetBy: c.WorkerInstructionsSetBy,
	}, nil
}
