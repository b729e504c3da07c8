package api

import (
	"slices"
)

// AgentType says what kind of program an agent is (contract 10.2).
type AgentType string

// The agent types.
const (
	TypeCommand    AgentType = "command"
	TypeClaudeCode AgentType = "claude_code"
	TypeCodex      AgentType = "codex"
	TypeACP        AgentType = "acp" // any program that speaks the Agent Client Protocol
)

// AgentProgram describes the agents of one type.
type AgentProgram struct {
	Type AgentType
	Word string // as people read it

	// What follows is of programs that converse. A command has none of it, and of those that speak
	// ACP each has its own, see [ACPPrograms].

	Program  string   // the executable's name
	SignedIn []string // its arguments that exit with 0 when somebody is signed in
	SignIn   string   // how a person signs in, as a command line
	Resume   string   // the command line that goes on with an agent session, without the session's id
	State    string   // the environment variable that names the folder of its own files
	Steers   bool     // its running turn takes in what people say
}

// AgentTypes are all types of agents, in the order in which people are shown them. A worker's
// adapters, the checks of the coordinator and the words of page and command line go by it.
var AgentTypes = []AgentProgram{
	{Type: TypeCommand, Word: "Command"},
	{
		Type: TypeClaudeCode, Word: "Claude Code", Program: "claude",
		SignedIn: []string{"auth", "status"}, SignIn: "claude auth login", Resume: "claude --resume", State: "CLAUDE_CONFIG_DIR", Steers: true,
	},
	{
		Type: TypeCodex, Word: "Codex", Program: "codex",
		SignedIn: []string{"login", "status"}, SignIn: "codex login", Resume: "codex resume", State: "CODEX_HOME", Steers: true,
	},
	{Type: TypeACP, Word: "Another program, by ACP"},
}

// Describe is what is known of the type, false for one that there isn't.
func (t AgentType) Describe() (AgentProgram, bool) {
	i := slices.IndexFunc(AgentTypes, func(p AgentProgram) bool { return p.Type == t })
	if i < 0 {
		return AgentProgram{Type: t, Word: string(t)}, false
	}
	return AgentTypes[i], true
}

// NamesProgram reports whether the agents of a type have no program but the one that their
// settings name.
func (t AgentType) NamesProgram() bool {
	p, _ := t.Describe()
	return p.Program == ""
}

// Word is the type as people read it, the type itself where it isn't known.
func (t AgentType) Word() string {
	p, _ := t.Describe()
	return p.Word
}

// Steers reports whether the running turn of such an agent takes in what people say. The others
// take it in between their turns.
func (t AgentType) Steers() bool {
	p, _ := t.Describe()
	return p.Steers
}

// AgentTypeNames lists the types in words: "command, claude_code, codex or acp".
func AgentTypeNames() string {
	names := make([]string, len(AgentTypes))
	for i, p := range AgentTypes {
		names[i] = string(p.Type)
	}
	return OrList(names)
}
