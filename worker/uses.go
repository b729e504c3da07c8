package worker

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/proc"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// mayUse checks that the agent's program can be let use what its owner's settings say, and only
// what the owner accepted of that where others or the agent could have written it. It is looked at just before
// the program starts, in the folder in which it does. contract 15.5
func (c *conversation) mayUse(job agent.Job) *api.Failure {
	p := c.plan
	if err := job.Uses.Refused(p.kind, p.executable); err != nil {
		return refuse(CodePolicyBlocked, "The worker owner's settings of this agent ask for what its program can't do: %v.", err)
	}
	if len(job.Uses.Names()) == 0 {
		return nil
	}
	slug := c.s.claim.Trusted.AgentSlug
	accepted, err := setup.Find(c.s.p.opts.StateDir).Accepted(slug)
	if err != nil {
		return refuse(CodePolicyBlocked, "What was accepted for this agent can't be read; “stint worker trust %s” on the worker's machine says why.", slug)
	}
	sources, err := job.Uses.Sources(p.kind, p.executable, job.Dir, job.Env)
	if err != nil {
		return refuse(CodePolicyBlocked, "What the agent is to use can't be looked at: %v.", err)
	}
	if left := accepted.Unaccepted(sources); len(left) > 0 {
		where := ""
		if p.workspace.Mode != "" && p.workspace.Mode != workflow.ModeFolder {
			where = " --in " + agent.ShellQuote(job.Dir)
		}
		return refuse(CodePolicyBlocked, "This worker's user has not accepted, in the form that it has now: %s. Look at it and accept it with “stint worker trust %s%s”, or switch it off in the [uses] of the settings.",
			usedWords(left), slug, where)
	}
	return nil
}

// usedWords name sources, with the reason why they have to be accepted.
func usedWords(sources []agent.Source) string {
	words := make([]string, len(sources))
	for i, s := range sources {
		words[i] = SourceWords(s)
	}
	return strings.Join(words, "; ")
}

// SourceWords name a source, the switch that lets it be loaded, and why it has to be accepted.
func SourceWords(s agent.Source) string {
	why := "the agent could have changed it, and it is executed"
	if s.Foul != "" {
		why = s.Foul
	}
	return fmt.Sprintf("%s (%s; %s)", s.Name, s.Use, why)
}

// Sources are what an agent's program may load by the settings of a worker's owner, in a folder, "" for
// its work folder, and those of them that are still to be accepted. source is the worker's environment.
func Sources(stateDir string, record api.Agent, slug, folder string, source []string) (all, left []agent.Source, err error) {
	files := setup.Find(stateDir)
	i := Inspection{}
	if i.own, _, err = files.Agent(slug); err != nil || len(i.own.Used().Names()) == 0 {
		return nil, nil, err
	}
	if i.accepted, err = files.Accepted(slug); err != nil {
		return nil, nil, err
	}
	if i.own.Workflow != "" {
		i.own = i.follow(i.own, i.accepted, cmp.Or(i.own.Type, record.Type))
	}
	set, err := i.own.Variables()
	if err != nil {
		return nil, nil, err
	}
	env, err := proc.Env(source, slices.Concat(record.Run.Env, i.own.Env), set)
	if err != nil {
		return nil, nil, err
	}
	return i.sources(record, folder, env)
}

func (i Inspection) sources(record api.Agent, folder string, env []string) (all, left []agent.Source, err error) {
	o := recordSettings(api.Trusted{Type: record.Type, Run: record.Run}, Options{})
	if err := o.override(i.own, i.flow, api.Claim{}); err != nil {
		return nil, nil, err
	}
	o.adapt(ownAdapters())
	if folder == "" {
		folder = filepath.Join(o.workFolder, o.workspace.Directory)
	}
	f, failure := openFolder(folder)
	if failure != nil {
		return nil, nil, errors.New(failure.Message)
	}
	all, err = o.uses.Sources(o.kind, o.executable, f.real, env)
	return all, i.accepted.Unaccepted(all), err
}

// uses says what the agent may use of what there is already, and what of that is to be accepted.
func (i *Inspection) uses(kind api.AgentType, own setup.Agent, record api.Agent, env []string) {
	argv := own.Executable
	if len(argv) == 0 && record.Run.Executable != "" {
		argv = []string{record.Run.Executable}
	}
	if len(argv) == 0 {
		argv = record.Run.Command
	}
	used := own.Used()
	i.Uses = used.Words(kind, argv)
	if len(used.Names()) == 0 {
		return
	}
	if err := used.Refused(kind, argv); err != nil {
		i.check("uses", refuse(CodePolicyBlocked, "%v", err))
		return
	}
	all, left, err := i.sources(record, "", env)
	switch {
	case err != nil:
		i.check("uses", refuse(CodePolicyBlocked, "%v", err))
	case len(left) > 0 && i.Mode != workflow.ModeFolder:
		i.check("uses", nil) // the worktree's own content counts
		i.Checks[len(i.Checks)-1].Detail = "not accepted as it is in the repository's folder: " + usedWords(left)
	case len(left) > 0:
		i.check("uses", refuse(CodePolicyBlocked, "not accepted in the form that it has now: %s. Accept it with: stint worker trust %s", usedWords(left), record.Slug))
	default:
		i.check("uses", nil)
	}
	for _, s := range all {
		if words := s.Use + ": " + s.Name; !slices.Contains(i.Loads, words) {
			i.Loads = append(i.Loads, words)
		}
	}
}
