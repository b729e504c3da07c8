package worker

import (
	"regexp"
	"strings"

	"stint/api"
	"stint/worker/agent"
)

// plainID matches an agent session's id that a shell takes as one word.
var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// resumeCommand is what the worker's owner types to continue an agent session by hand, ""
// where there is no simple way. Only they are shown it: it names their folders.
func (c *conversation) resumeCommand(agentSession string) string {
	p, _ := c.plan.kind.Describe()
	if known, speaks := api.ACPProgramOf(c.plan.executable); speaks && c.plan.kind == api.TypeACP {
		p.Resume, p.State = known.Resume, known.State
	}
	if p.Resume == "" || !plainID.MatchString(agentSession) {
		return ""
	}
	words := "cd " + agent.ShellQuote(c.plan.folder.real) + " && "
	for _, v := range with(c.plan.env, c.env) {
		if name, value, _ := strings.Cut(v, "="); name == p.State && name != "" {
			words += name + "=" + agent.ShellQuote(value) + " "
		}
	}
	return words + resumeWords(p.Resume, agentSession)
}

func resumeWords(resume, agentSession string) string {
	if !strings.HasSuffix(resume, "=") {
		resume += " "
	}
	return resume + agentSession
}
