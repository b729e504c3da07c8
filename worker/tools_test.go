package worker

import (
	"os"
	"slices"
	"testing"

	"stint/api"
	"stint/worker/setup"
)

// Whether an agent gets Stint's tools is its worker's owner's to say.
func TestTools_TheOwnerSaysWhoGetsThem(t *testing.T) {
	p, files := owner(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	of := func(own setup.Agent) []string {
		t.Helper()
		own.Type, own.Executable, own.Folder = api.TypeCodex, []string{"true"}, t.TempDir()
		if err := files.Save("robot", own); err != nil {
			t.Fatal(err)
		}
		plan, failure := p.planFor(api.Claim{Trusted: api.Trusted{AgentSlug: "robot", Type: api.TypeCodex, RunSetBy: 8}})
		if failure != nil {
			t.Fatal(failure)
		}
		return plan.tools()
	}
	if got := of(setup.Agent{}); got != nil {
		t.Errorf("unasked it gets %q", got)
	}
	if got, want := of(setup.Agent{StintTools: true}), []string{self, "mcp", "--run"}; !slices.Equal(got, want) {
		t.Errorf("it gets %q", got)
	}
}
