package api

import "strings"

// Area is what a policy decides about (contract 10.4).
type Area string

// The five areas.
const (
	AreaFilesystem  Area = "filesystem"   // writes; reads outside the work folder
	AreaShell       Area = "shell"        // commands
	AreaNetwork     Area = "network"      // connections, web tools
	AreaWorkspace   Area = "workspace"    // writes to the coordinator: triggering agents, tasks
	AreaSideEffects Area = "side_effects" // commit, push, pull request, publishing, foreign tool servers
)

// Areas lists the areas.
var Areas = []Area{AreaFilesystem, AreaShell, AreaNetwork, AreaWorkspace, AreaSideEffects}

// Ruling is what a policy says about an action.
type Ruling string

// The rulings, from mildest to strictest.
const (
	RulingAllow    Ruling = "allow"
	RulingAsk      Ruling = "ask"       // a person decides; with nobody to ask it is deny_stop
	RulingDeny     Ruling = "deny"      // the action is refused, the run continues
	RulingDenyStop Ruling = "deny_stop" // the run ends as POLICY_BLOCKED
)

// Rulings lists the rulings from mildest to strictest.
var Rulings = []Ruling{RulingAllow, RulingAsk, RulingDeny, RulingDenyStop}

// RunRule decides about the actions of one area whose text matches a pattern (contract 10.4).
type RunRule struct {
	Area    Area   `json:"area" toml:"area"`
	Pattern string `json:"pattern" toml:"pattern,omitempty"` // * stands for any text; empty = every action of the area
	Ruling  Ruling `json:"ruling" toml:"ruling"`
}

// String is the rule as a line: ruling, area, pattern.
func (r RunRule) String() string {
	return strings.TrimSpace(string(r.Ruling) + " " + string(r.Area) + " " + r.Pattern)
}
