package agent

import "stint/api"

// Hold says in a sentence how far a policy holds in one area.
type Hold struct {
	Area     Area
	Sentence string
}

// Held says how far a policy really holds for a type of agent. docs/agents.md has the same
// sentences. What doesn't hold on a given machine is in [Command.Unheld].
func Held(kind api.AgentType) []Hold {
	if a, ok := For(kind); ok {
		return a.Held()
	}
	return []Hold{
		{Filesystem, "Nothing holds by itself: a command may do what the worker's user may. Start it in a sandbox of your own."},
		{Shell, "Nothing holds by itself: the command is what you gave."},
		{Network, "Nothing holds by itself: start it in a sandbox of your own."},
		{Workspace, "It has no token but what you give it."},
		{SideEffects, "Nothing holds by itself: keep keys out of its environment, which is an allow list."},
	}
}
