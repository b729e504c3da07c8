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
	switch kind {
	case api.TypeClaudeCode:
		return []Hold{
			{Filesystem, "Claude Code's own file tools are judged by the file that they really change, links resolved; commands are kept to the work folder and temporary files by its sandbox, where there is one."},
			{Shell, "Every command is judged before it runs, taken apart as a shell would; a program that it starts in turn is not."},
			{Network, "Web tools are judged by address. Commands have no network in the sandbox unless all of it is allowed; without a sandbox only the usual programs are recognised."},
			{Workspace, "Calls of Stint's own tools are judged; what a session may do there at all is the coordinator's to say."},
			{SideEffects, "Commits, pushes, pull requests and publishing are recognised by the usual programs, foreign tool servers by name. A script that pushes is not: keep the network shut, or the keys away."},
		}
	case api.TypeCodex:
		return []Hold{
			{Filesystem, "Codex's sandbox keeps commands and changes to the work folder and temporary files; .git and .codex are read-only in it, .claude and the like are not. Rules for single files hold for its patches, not for commands."},
			{Shell, "Every command is judged before it runs, taken apart as a shell would; a program that it starts in turn is not."},
			{Network, "Commands have no network in the sandbox, the loopback included, unless all of it is allowed. Web search is off unless all of it is allowed."},
			{Workspace, "Calls of Stint's own tools are judged; what a session may do there at all is the coordinator's to say."},
			{SideEffects, "The sandbox stops commits and pushes. Out of it, with a person's or a rule's leave, the usual programs are recognised."},
		}
	default:
		return []Hold{
			{Filesystem, "Nothing holds by itself: a command may do what the worker's user may. Start it in a sandbox of your own."},
			{Shell, "Nothing holds by itself: the command is what you gave."},
			{Network, "Nothing holds by itself: start it in a sandbox of your own."},
			{Workspace, "It has no token but what you give it."},
			{SideEffects, "Nothing holds by itself: keep keys out of its environment, which is an allow list."},
		}
	}
}
