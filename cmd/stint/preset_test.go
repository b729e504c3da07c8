package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stint/api"
	"stint/worker/agent"
)

// What the dashboard and the command line write into an agent is what workers
// mean by the preset of that name.
func TestPresets_AreTheWorkersOwn(t *testing.T) {
	var theirs []api.Preset
	for _, p := range agent.Presets(nil) {
		run := api.Run{Permissions: string(p.Permissions), Unattended: p.Policy.Unattended}
		for _, r := range p.Policy.Rules {
			run.Rules = append(run.Rules, api.RunRule{Area: string(r.Area), Pattern: r.Pattern, Ruling: string(r.Ruling)})
		}
		if p.Policy.Unattended != (p.Policy.Otherwise == agent.Deny) {
			t.Errorf("%s: a record can't say what holds where no rule does", p.Name)
		}
		theirs = append(theirs, api.Preset{Name: p.Name, Title: p.Title, Sentence: p.Sentence, Run: run})
	}
	if d := cmp.Diff(theirs, api.Presets()); d != "" {
		t.Error(d)
	}
}
