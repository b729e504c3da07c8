package api

import "slices"

// Preset is a named way of running an agent, for people who don't want to write rules. It sets
// permissions, unattended and rules of a run block.
type Preset struct {
	Name     string
	Title    string
	Sentence string
	Run      Run
}

// looking are patterns of commands that look at things and change nothing.
var looking = []string{
	"ls", "ls *", "cat *", "head *", "tail *", "wc *", "grep *", "pwd", "echo *", "true", "diff *", "file *", "stat *", "du *",
	"git status", "git status *", "git diff", "git diff *", "git log", "git log *", "git show", "git show *", "git blame *",
}

// narrowing are options that make such a command write or start programs; git accepts options
// by their first letters.
var narrowing = []RunRule{
	{Area: "shell", Pattern: "git *--ou*", Ruling: "deny"},
	{Area: "shell", Pattern: "git *--ex*", Ruling: "deny"},
}

// Narrows reports whether a rule is one of those by which a preset takes something out of what
// it allows. A command of which nobody can tell isn't allowed by a preset anyway: for these
// rules alone it is left to the sandbox.
func (r RunRule) Narrows() bool { return slices.Contains(narrowing, r) }

// Presets returns the presets of agents that converse, the mildest first: the only list of
// them. The caller may change their runs.
func Presets() []Preset {
	rules := slices.Clone(narrowing)
	for _, command := range looking {
		rules = append(rules, RunRule{Area: "shell", Pattern: command, Ruling: "allow"})
	}
	return []Preset{
		{
			Name: "ask", Title: "Ask me", Run: Run{Permissions: "approval"},
			Sentence: "Works in the folder by itself; asks you before anything that its sandbox doesn't cover.",
		},
		{
			Name: "unattended", Title: "Unattended", Run: Run{Permissions: "approval", Unattended: true, Rules: rules},
			Sentence: "Works in the folder by itself; beyond its sandbox it runs the commands you list, everything else is refused, and it goes on without. Asks nobody.",
		},
		{
			Name: "autonomous", Title: "Autonomous", Run: Run{Permissions: "autonomous", Unattended: true},
			Sentence: "Does anything that its sandbox covers; what lies beyond is refused, and it goes on without. Asks nobody.",
		},
	}
}

// PresetNamed finds a preset by its name.
func PresetNamed(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}
