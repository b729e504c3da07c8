package api

import (
	"fmt"
	"regexp"
	"slices"
)

// RunChoice is how a run's program thinks: what an agent says, or what a run says in its place. It never
// widens what may be done. contract 15.6
type RunChoice struct {
	Model    string `json:"model,omitzero"`    // empty = the program's own choice, or the agent's
	Effort   string `json:"effort,omitzero"`   // how much the model is to think, in the program's words; likewise
	PlanMode bool   `json:"planMode,omitzero"` // it only looks and plans; a run can't switch its agent's off
}

// Over is the choice of a run over that of its agent.
func (c RunChoice) Over(agents RunChoice) RunChoice {
	if c.Model == "" {
		c.Model = agents.Model
	}
	if c.Effort == "" {
		c.Effort = agents.Effort
	}
	c.PlanMode = c.PlanMode || agents.PlanMode
	return c
}

// Choice is what an agent says.
func (r Run) Choice() RunChoice {
	return RunChoice{Model: r.Model, Effort: r.Effort, PlanMode: r.PlanMode}
}

// claudeEfforts are those of Claude Code; Codex and programs by ACP take what the model offers.
var claudeEfforts = []string{"low", "medium", "high", "xhigh", "max"}

var (
	modelForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}$`)
	effortForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,29}$`)
)

// Check refuses what an agent's type can't have, by field and with the mend. prefix stands before
// the fields' names.
func (c RunChoice) Check(v *Invalid, prefix string, kind AgentType) {
	if kind == TypeCommand {
		for _, f := range []struct {
			name string
			said bool
		}{{"model", c.Model != ""}, {"effort", c.Effort != ""}, {"planMode", c.PlanMode}} {
			if f.said {
				v.Add(prefix+f.name, "an agent of type command has none: leave it out, or give it to the command itself")
			}
		}
		return
	}
	if c.Model != "" && !modelForm.MatchString(c.Model) {
		v.Add(prefix+"model", "must be the name of a model: letters, digits and . _ : / @ + - [ ], at most 200")
	}
	switch {
	case c.Effort == "":
	case kind == TypeClaudeCode && !slices.Contains(claudeEfforts, c.Effort):
		v.Add(prefix+"effort", fmt.Sprintf("%q must be one of Claude Code's: %s", c.Effort, OrList(claudeEfforts)))
	case !effortForm.MatchString(c.Effort):
		v.Add(prefix+"effort", "must be one word in small letters that the model offers, such as low, medium or high")
	}
}

// Allows refuses a run's model that its agent doesn't let runs choose.
func (r Run) Allows(v *Invalid, model string) {
	if model != "" && model != r.Model && len(r.Models) > 0 && !slices.Contains(r.Models, model) {
		v.Add("model", fmt.Sprintf("%q is none that runs of this agent may use: %s", model, OrList(r.Models)))
	}
}
