package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"stint/api"
)

// Uses are the switches for what a program's user, or the work folder, has already: each lets
// the program take one kind of it. Only the settings of the worker's owner have them; the zero
// value takes nothing. contract 15.5
type Uses struct {
	Instructions bool `toml:"instructions,omitempty" json:"instructions,omitzero" comment:"the instructions in the work folder, such as CLAUDE.md and AGENTS.md"`
	Skills       bool `toml:"skills,omitempty" json:"skills,omitzero" comment:"your skills and the work folder's"`
	ToolServers  bool `toml:"tool_servers,omitempty" json:"toolServers,omitzero" comment:"your tool servers and the work folder's (MCP), which run as you, outside every sandbox"`
	Provider     bool `toml:"provider,omitempty" json:"provider,omitzero" comment:"the model provider that your own settings of the program name, with its keys"`
	Settings     bool `toml:"settings,omitempty" json:"settings,omitzero" comment:"all else in your own settings of the program and the work folder's: permissions, hooks, plugins, memories"`
}

// UsesAll is every switch on.
var UsesAll = Uses{Instructions: true, Skills: true, ToolServers: true, Provider: true, Settings: true}

// The names of the switches, as in a worker's settings.
const (
	UseInstructions = "instructions"
	UseSkills       = "skills"
	UseToolServers  = "tool_servers"
	UseProvider     = "provider"
	UseSettings     = "settings"
)

// Use is a switch: its name, and what it opens.
type Use struct{ Name, Opens string }

// UseNames are the switches, in the order in which people are shown them.
var UseNames = useNames()

func useNames() (out []Use) {
	for f := range reflect.TypeFor[Uses]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		out = append(out, Use{name, f.Tag.Get("comment")})
	}
	return out
}

// Has reports whether the switch of a name is on.
func (u Uses) Has(name string) bool { return slices.Contains(u.Names(), name) }

// Names are those that are on.
func (u Uses) Names() (out []string) {
	v := reflect.ValueOf(u)
	for i, n := range UseNames {
		if v.Field(i).Bool() {
			out = append(out, n.Name)
		}
	}
	return out
}

// UsesOf turns the switches of these names on; an error names one that there isn't.
func UsesOf(names []string) (u Uses, err error) {
	v := reflect.ValueOf(&u).Elem()
	for _, name := range names {
		i := slices.IndexFunc(UseNames, func(n Use) bool { return n.Name == name })
		if i < 0 {
			return Uses{}, fmt.Errorf("%q is not %s", name, UseList())
		}
		v.Field(i).SetBool(true)
	}
	return u, nil
}

// UseList lists the switches in words.
func UseList() string {
	names := make([]string, len(UseNames))
	for i, n := range UseNames {
		names[i] = n.Name
	}
	return api.OrList(names)
}

// Refused says which switches a type's program can't have apart from others, and the mend; nil
// where it can. A program of type acp is told by argv; an empty kind is checked for what no
// program can.
func (u Uses) Refused(kind api.AgentType, argv []string) error {
	needs := func(name, other, why string) error {
		if u.Has(name) && !u.Has(other) {
			return fmt.Errorf("uses.%s: %s; set uses.%s as well, or leave both out", name, why, other)
		}
		return nil
	}
	if u == (Uses{}) || u == UsesAll {
		return nil
	}
	if kind == api.TypeCommand {
		return fmt.Errorf("uses.%s: an agent of type command takes what its program takes; leave it out", u.Names()[0])
	}
	if err := needs(UseSettings, UseProvider, "a program's own settings name its model provider too"); err != nil {
		return err
	}
	if kind != api.TypeACP {
		return nil
	}
	program, _ := api.ACPProgramOf(argv)
	if program.Name != "opencode" {
		return fmt.Errorf("uses.%s: %s can't be told to take one thing and leave another; set all of them (own_settings = true), or none",
			u.Names()[0], or(program.Word, "this program"))
	}
	if err := needs(UseSettings, UseInstructions, "opencode reads the instructions with the settings of the work folder"); err != nil {
		return err
	}
	return needs(UseSettings, UseSkills, "opencode reads skills with the settings of the work folder")
}

// Words say in a sentence for each switch what it does for a type's program: what is opened,
// or, where it is off and the program can't be kept from it, that.
func (u Uses) Words(kind api.AgentType, argv []string) (out []string) {
	if kind == api.TypeCommand {
		return nil
	}
	for _, n := range UseNames {
		words := "off"
		if u.Has(n.Name) {
			words = "on: " + n.Opens
		}
		if always := usedAnyway(kind, argv, n.Name); always != "" {
			words = strings.TrimPrefix(words+", and "+always, "off, and ")
		}
		out = append(out, n.Name+" "+words)
	}
	return out
}

// usedAnyway says what a program takes whatever the switch says, "" for nothing.
func usedAnyway(kind api.AgentType, argv []string, name string) string {
	if kind != api.TypeACP {
		return ""
	}
	switch program, _ := api.ACPProgramOf(argv); {
	case program.Name == "opencode" && name == UseProvider:
		return "always: the provider in ~/.config/opencode, or there is no model"
	case program.Name == "opencode" && name == UseSettings:
		return "always: your own ~/.config/opencode (permissions apart), its plugins and AGENTS.md among it"
	case program.Name == "opencode":
		return ""
	case program.Name == "gemini":
		return "always: what lies in ~/.gemini"
	default:
		return "always: whatever the program takes by itself"
	}
}
