package agent

// Area is what a policy rules over (contract 10.4).
type Area string

// The five areas.
const (
	Filesystem  Area = "filesystem"   // writes; reads outside of the work folder
	Shell       Area = "shell"        // commands
	Network     Area = "network"      // connections, web tools
	Workspace   Area = "workspace"    // writes to the coordinator: triggering agents, tasks
	SideEffects Area = "side_effects" // commit, push, pull request, publishing
)

// Ruling is what a policy says to an action.
type Ruling string

// The rulings, from mildest to hardest.
const (
	Allow    Ruling = "allow"
	Ask      Ruling = "ask"       // a person decides; with nobody to ask it is deny_stop
	Deny     Ruling = "deny"      // the action is refused, the run goes on
	DenyStop Ruling = "deny_stop" // the run ends as POLICY_BLOCKED
)

// Action is something that an agent wants to do.
type Action struct {
	Area Area
	What string // the exact command, path or address
	Tool string // the program's name of the tool
}

// Rule rules over the actions of an area whose text matches a pattern.
type Rule struct {
	Area    Area
	Pattern string // * stands for any text; empty = every action of the area
	Ruling  Ruling
}

// Policy is what the worker's owner allows. The zero value asks about everything
// that the sandbox doesn't cover.
type Policy struct {
	Rules      []Rule // of those that match, the hardest counts
	Otherwise  Ruling // where no rule matches; "" = ask
	Unattended bool   // there is nobody to ask
}
