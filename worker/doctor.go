package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"stint/api"
	"stint/worker/proc"
)

// Report says exactly what a command of one agent would find on this machine.
type Report struct {
	Agent      string      `json:"agent"`
	Runs       bool        `json:"runs"`   // whether a worker here would start it
	Checks     []api.Check `json:"checks"` // Code and Detail as a session would say them; with OK, sessions run all the same
	Command    []string    `json:"command"`
	Check      []string    `json:"check,omitzero"`      // what decides whether the command's success counts
	Executable string      `json:"executable,omitzero"` // where the command's first word was found
	WorkFolder string      `json:"workFolder"`
	RealFolder string      `json:"realFolder,omitzero"` // with links resolved
	FolderKey  string      `json:"folderKey,omitzero"`
	User       string      `json:"user"` // as whom it would run on this machine
	Env        []Variable  `json:"env"`
	// Setup is the state of the owner's settings; missing where there are none and none are
	// needed.
	Setup *Inspection `json:"setup,omitzero"`
	// Cleaned is what the worker with this state directory removed of workspaces; missing where
	// it has not looked yet.
	Cleaned *Cleaned `json:"cleaned,omitzero"`

	told string // the agent's instructions, if they count here
}

// Variable is one variable of the command's environment.
type Variable struct {
	Name   string `json:"name"`
	Value  string `json:"value"`           // masked when Secret
	Secret bool   `json:"secret,omitzero"` // its value would be masked in the output, and is here
	Stint  bool   `json:"stint,omitzero"`  // set by the worker for each session; the value is an example
}

// Doctor asks the coordinator for an agent and reports what its command would find, with this
// process's environment and user. It starts git and the agent's own program, to ask for
// versions and sign-in, and needs no state directory.
func Doctor(ctx context.Context, o Options, agentRef string) (Report, error) {
	o.StateDir = cmp.Or(o.StateDir, os.TempDir())
	o, err := o.complete()
	if err != nil {
		return Report{}, err
	}
	client, err := api.NewClient(api.ClientConfig{URL: o.URL, Token: o.Token, Credentials: o.Credentials, Workspace: o.Workspace, Agent: "stint-doctor/" + o.Version, Transport: o.transport})
	if err != nil {
		return Report{}, err
	}
	me, err := client.Whoami(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("ask who we are: %w", err)
	}
	agent, err := client.Agent(ctx, agentRef)
	if err != nil {
		return Report{}, fmt.Errorf("look up the agent: %w", err)
	}
	machine, err := machineID(o.MachineFile)
	if err != nil {
		return Report{}, err
	}
	seen := Inspect(ctx, o.StateDir, agent, agent.Slug, o.environ)
	r := examine(agent, me, o, seen)
	if cleaned, found, err := LastCleaned(o.StateDir); err == nil && found {
		r.Cleaned = &cleaned
	}
	r.FolderKey = folderKey(machine, r.WorkFolder)
	agent.Instructions = r.told
	r.Env = append(r.Env, sessionVariables(client, agent)...)
	slices.SortStableFunc(r.Env, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

func examine(a api.Agent, me api.Whoami, o Options, seen Inspection) Report {
	r := Report{Agent: a.Slug, User: systemUser(), Command: []string{}, Env: []Variable{}, Runs: true}
	if seen.Found || a.Type != api.TypeCommand {
		r.Setup, r.Runs = &seen, seen.Fine()
	}
	check := func(name string, f *api.Failure) {
		c := api.Check{Name: name, OK: f == nil}
		if f != nil {
			c.Code, c.Detail = f.Code, f.Message
			r.Runs = false
		}
		r.Checks = append(r.Checks, c)
	}
	mine := a.RunSetBy == me.UserID.String() || a.RunSetBy == me.Name
	record, foreign := trusted(api.Trusted{AgentSlug: a.Slug, Type: a.Type, Run: a.Run, Instructions: a.Instructions}, mine, me.Name, seen.own, seen.accepted)
	check("yours or accepted", foreign)
	r.told = record.Instructions
	t := recordSettings(record, o)
	if err := t.override(seen.own, seen.flow, api.Claim{}); err != nil {
		check("env files", refuse(CodePolicyBlocked, "%v.", err))
	}
	t.adapt(o.adapters)
	r.WorkFolder = t.workFolder
	if words := t.words(); len(words) > 0 {
		r.Command = words
	}
	r.Check = t.checkArgv
	f, failure := openFolder(t.workFolder)
	check("work folder", failure)
	r.RealFolder = f.real
	if failure == nil {
		plan, unfit := t.check(o.environ, o.Env)
		check("command", unfit)
		r.Executable = plan.path
	}
	env, err := proc.Env(o.environ, slices.Concat(o.Env, t.envNames), t.envSet)
	if err != nil {
		check("environment", refuse(CodePolicyBlocked, "%v.", err))
		return r
	}
	check("environment", nil)
	secrets := secretsOf(env, t.secrets(o.Token)...)
	for _, assignment := range env {
		name, value, _ := strings.Cut(assignment, "=")
		masked := maskString(value, secrets)
		r.Env = append(r.Env, Variable{Name: name, Value: masked, Secret: masked != value})
	}
	return r
}

// sessionVariables are those that each session sets, with example values.
func sessionVariables(client *api.Client, a api.Agent) []Variable {
	c := api.Claim{SessionID: 1, WorkerID: 1, Fence: 1, RunToken: "<the run's own, good as long as it holds its claim>"}
	c.Session.Attempt, c.Session.TriggeredBy = 1, api.ByUser
	c.Trusted.AgentSlug, c.Trusted.Instructions = a.Slug, a.Instructions
	files := promptFiles{prompt: "<a file of the worker's>", extra: "<a file of the worker's, when there is context>", text: cmp.Or(a.Prompt, "<the prompt>")}
	set := sessionEnv(c, client.URL(), client.Workspace(), files, 1)
	set[proc.SessionVar], set[proc.MarkVar] = c.SessionID.String(), "<random>"
	set["STINT_TRIGGERED_AT"] = "<when it was triggered>"
	out := make([]Variable, 0, len(set))
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, Variable{Name: name, Value: set[name], Stint: true})
	}
	return out
}
