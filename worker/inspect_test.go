package worker

import (
	"os"
	"testing"

	"stint/api"
	"stint/worker/workflow"
)

// Where the owner's file says nothing, the record's own way of working is what
// will be done, and what is shown.
func TestInspect_ShowsTheRecordsWorkspaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	repo := w.repository()
	record := api.Agent{AgentInput: api.AgentInput{Slug: "branchy", Type: api.TypeCommand, Run: api.Run{
		Command: []string{"true"}, WorkFolder: repo, Workspace: workflow.ModeWorktree, BaseBranch: "main",
	}}}
	i := Inspect(t.Context(), o.StateDir, record, "branchy", os.Environ())
	if i.Mode != workflow.ModeWorktree || i.Root == "" || i.Git == "" {
		t.Errorf("it shows %+v", i)
	}
	record.Run.BaseBranch = "missing"
	i = Inspect(t.Context(), o.StateDir, record, "branchy", os.Environ())
	for _, c := range i.Checks {
		if c.Name == "repository" && c.Detail != "" {
			return
		}
	}
	t.Errorf("a base branch that isn't there is shown as %+v", i.Checks)
}
