package api

import (
	"path/filepath"
	"slices"
)

// ACPProgram is a program that speaks the Agent Client Protocol and can be named in one word.
type ACPProgram struct {
	Name    string   // as an agent's settings name it
	Word    string   // as people read it
	Program string   // the executable's name
	Args    []string // what makes it speak the protocol
	SignIn  string   // how a person signs in, as a command line
	Resume  string   // the command line that goes on with an agent session, up to the session's id, which follows a = at once; "" = there is none
	State   string   // the environment variable that names the folder of its own files, "" = none is known
}

// ACPPrograms are the programs that can be named in one word; any other is given with its
// arguments. contract 15.1
var ACPPrograms = []ACPProgram{
	{Name: "opencode", Word: "opencode", Program: "opencode", Args: []string{"acp"}, SignIn: "opencode auth login", Resume: "opencode --session"},
	{Name: "gemini", Word: "Gemini CLI", Program: "gemini", Args: []string{"--acp"}, SignIn: "gemini", Resume: "gemini --resume", State: "GEMINI_CLI_HOME"},
	{Name: "copilot", Word: "GitHub Copilot CLI", Program: "copilot", Args: []string{"--acp"}, SignIn: "copilot", Resume: "copilot --resume="},
	{Name: "qwen", Word: "Qwen Code", Program: "qwen", Args: []string{"--acp"}, SignIn: "qwen", Resume: "qwen --resume"},
	{Name: "goose", Word: "goose", Program: "goose", Args: []string{"acp"}, SignIn: "goose configure", Resume: "goose session --resume --session-id"},
	{Name: "kimi", Word: "Kimi CLI", Program: "kimi", Args: []string{"acp"}, SignIn: "kimi", Resume: "kimi --session"},
	{Name: "cursor", Word: "Cursor CLI", Program: "cursor-agent", Args: []string{"acp"}, SignIn: "cursor-agent login", Resume: "cursor-agent --resume"},
}

// ACPNames lists the names in words: "opencode, gemini, … or cursor".
func ACPNames() string {
	names := make([]string, len(ACPPrograms))
	for i, p := range ACPPrograms {
		names[i] = p.Name
	}
	return OrList(names)
}

// ACPProgramOf is the known program that a command line starts, by the name of its first word,
// false for any other.
func ACPProgramOf(argv []string) (ACPProgram, bool) {
	if len(argv) == 0 {
		return ACPProgram{}, false
	}
	name := filepath.Base(argv[0])
	i := slices.IndexFunc(ACPPrograms, func(p ACPProgram) bool { return name == p.Program || argv[0] == p.Name })
	if i < 0 {
		return ACPProgram{}, false
	}
	return ACPPrograms[i], true
}

// ACPCommand is the command line that an agent's settings mean: a known program, by its name or
// its path, gets the arguments with which it speaks the protocol; whatever has arguments already
// stays as it is.
func ACPCommand(argv []string) []string {
	p, known := ACPProgramOf(argv)
	if len(argv) != 1 || !known {
		return argv
	}
	program := argv[0]
	if program == p.Name {
		program = p.Program
	}
	return append([]string{program}, p.Args...)
}

// ProgramWord is the kind of program that an agent is, as people read it: the one that it names,
// where its type has several.
func (in AgentInput) ProgramWord() string {
	argv := in.Run.Command
	if in.Run.Executable != "" {
		argv = []string{in.Run.Executable}
	}
	if p, known := ACPProgramOf(argv); known && in.Type == TypeACP {
		return p.Word
	}
	return in.Type.Word()
}
