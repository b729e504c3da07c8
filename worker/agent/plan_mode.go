package agent

import (
	"slices"
	"strings"

	"stint/api"
)

// planWords tell an agent in plan mode what is expected, in its system channel.
const planWords = "This run only plans. Look at what you need, change nothing, and end your turn with the plan: " +
	"what you would do, in which files, in which order. Commands and tools that change something are refused."

// planned is the job of an agent that only plans: its policy is narrowed to what looks, whatever it
// allows else, and nobody is asked to widen it. sandboxed says that commands run where they can't write; without
// that only those that look are run. contract 15.6
func (j Job) planned(sandboxed bool) Job {
	if !j.PlanMode {
		return j
	}
	p := j.Policy
	p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r Rule) bool {
		return r.Ruling == Allow && (r.Area == Filesystem || r.Area == SideEffects || r.Area == Shell && !sandboxed)
	})
	p.Rules = append(p.Rules, Rule{Area: Filesystem, Ruling: Deny}, Rule{Area: SideEffects, Ruling: Deny})
	if !sandboxed {
		p.Rules = append(p.Rules, lookingCommands()...)
	}
	p.Otherwise = Deny
	j.Policy, j.Permissions = p, Autonomous
	j.System = strings.TrimSpace(j.System + "\n\n" + planWords)
	return j
}

// lookingCommands allow those that only look.
func lookingCommands() []Rule {
	preset, _ := api.PresetNamed("unattended")
	return slices.DeleteFunc(slices.Clone(preset.Run.Rules), func(r Rule) bool { return r.Area != Shell || r.Ruling != Allow })
}
