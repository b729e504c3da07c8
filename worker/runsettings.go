package worker

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// runSettings are what a session is run by: what is executed, where and with which rights,
// combined from the owner's own file, the workflow file that it names, and the agent's record,
// in this order. contract 10.2
type runSettings struct {
	trusted    api.Trusted // what counts of the claim's; the session reads nothing else of it
	kind       api.AgentType
	workFolder string
	argv       []string // of a command
	checkArgv  []string // likewise: what decides whether its success counts; empty = nothing
	expect     api.Expectation
	strict     bool        // a run without what is expected fails
	adapter    agent.Agent // of an agent that converses; nil for a command
	executable []string    // likewise
	wrapper    []string    // a sandbox to start it in
	mayLeave   []string    // of a command: names of processes that it may leave running

	choice      api.RunChoice
	models      []string // that a run may choose; none = any
	maxTurns    int
	permissions agent.Permissions
	policy      agent.Policy
	uses        agent.Uses // of what there is already; the owner's file alone says so
	stintTools  bool

	name         string      // of the worker, "" = the process's own
	taskUpdates  *api.Labels // what it leaves of the agent's; nil = all
	land         api.LandLevel
	instructions string // the owner's; trusted
	template     string // the workflow's prompt, filled in for the session
	hooks        workflow.Hooks
	workspace    setup.Workspace
	shared       bool

	envNames []string
	envSet   map[string]string

	turnLimit, stallLimit time.Duration // 0 = none
	answerLimit           time.Duration // of the program's answers; 0 = the adapter's own
	tries                 int           // after the first
	tryPause              time.Duration // at most

	answerWithin time.Duration // how long a question waits for a person; 0 = no limit
	spend        setup.Spend
}

// runSettingsFor combines what a claim is run by, or says why it can't be. What people other
// than the worker's owner set counts only in the form that the owner accepted.
func (p *Process) runSettingsFor(c api.Claim) (runSettings, *api.Failure) {
	t := c.Trusted
	files := setup.Find(p.opts.StateDir)
	own, _, err := files.Agent(t.AgentSlug)
	if err != nil {
		p.log.Warn("the owner's file on an agent can't be used", "agent", t.AgentSlug, "error", err)
		return runSettings{}, refuse(CodePolicyBlocked, "The worker owner's own file on this agent can't be used; “stint worker doctor %s” on its machine says why.", t.AgentSlug)
	}
	accepted, err := files.Accepted(t.AgentSlug)
	if err != nil {
		p.log.Warn("what was accepted for an agent can't be read", "agent", t.AgentSlug, "error", err)
		return runSettings{}, refuse(CodePolicyBlocked, "What was accepted for this agent can't be read; “stint worker trust %s” on the worker's machine says why.", t.AgentSlug)
	}
	t, failure := p.trusts(t, own, accepted)
	if failure != nil {
		return runSettings{}, failure
	}
	var flow workflow.Workflow
	if own.Workflow != "" {
		if flow, failure = p.followFlow(own.Workflow, accepted, t.AgentSlug); failure != nil {
			return runSettings{}, failure
		}
		own = own.Under(flow)
	}
	if t = p.trustsWorker(t, c.Session.Mode); t.WorkerInstructions != c.Trusted.WorkerInstructions {
		p.log.Warn("the worker's instructions were not written by its owner and are left out; to use them, write them on the worker's page", "agent", t.AgentSlug)
	}
	out := recordSettings(t, p.opts)
	if err := out.override(own, flow, c); err != nil {
		return runSettings{}, refuse(CodePolicyBlocked, "The agent's variables can't be read: %v.", err)
	}
	if failure := out.choose(c.Session.RunChoice); failure != nil {
		return runSettings{}, failure
	}
	out.adapt(p.opts.adapters)
	for _, f := range ineffective(out.kind, flow) {
		if p.first("no effect: " + t.AgentSlug + " " + f.Field) {
			p.log.Warn("a field of the workflow file has no effect", "field", f.Field, "reason", f.Reason, "agent", t.AgentSlug)
		}
	}
	return out, nil
}

// choose takes what a run says in place of its agent, within what the owner lets runs choose.
func (o *runSettings) choose(run api.RunChoice) *api.Failure {
	if o.kind == api.TypeCommand {
		return nil // the owner's file made it one
	}
	var v api.Invalid
	run.Check(&v, "", o.kind)
	if err := v.Err(); err != nil {
		return refuse(CodePolicyBlocked, "This worker runs the agent as %s, which can't have what the run says: %s.", o.kind.Word(), api.Plain(err))
	}
	if run.Model != "" && run.Model != o.choice.Model && len(o.models) > 0 && !slices.Contains(o.models, run.Model) {
		return refuse(CodePolicyBlocked, "This worker's user lets runs of this agent use no model %q: choose %s, or leave the model out.", run.Model, api.OrList(o.models))
	}
	o.choice = run.Over(o.choice)
	return nil
}

// ineffective are the fields that are valid in a workflow file, but not for an agent of this
// type.
func ineffective(kind api.AgentType, flow workflow.Workflow) []workflow.Ignored {
	if kind != api.TypeCommand {
		return nil
	}
	return flow.WithoutConversation()
}

// first reports whether this process has not said a thing before.
func (p *Process) first(what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said[what] {
		return false
	}
	if p.said == nil {
		p.said = map[string]bool{}
	}
	p.said[what] = true
	return true
}

// adapt finds the adapter of an agent that converses, and its usual program.
func (o *runSettings) adapt(all map[api.AgentType]adapter) {
	a, ok := all[o.kind]
	if !ok {
		return
	}
	o.adapter = a.agent
	switch {
	case o.kind == api.TypeACP && len(o.executable) == 0:
		o.executable = o.argv // a record's command
	case len(o.executable) == 0:
		o.executable = []string{a.executable}
	}
	if o.kind == api.TypeACP {
		o.executable = api.ACPCommand(o.executable)
	}
}

// trusts decides whether the record's run block and instructions count.
func (p *Process) trusts(t api.Trusted, own setup.Agent, accepted setup.Accepted) (api.Trusted, *api.Failure) {
	return trusted(t, t.RunSetBy != 0 && t.RunSetBy == p.me.UserID, p.me.Name, own, accepted)
}

// trustsWorker leaves out instructions on a local worker's record that its owner didn't write
// by a sign-in of their own (contract 10.2, 10.3).
func (p *Process) trustsWorker(t api.Trusted, mode api.Mode) api.Trusted {
	if mode != api.Cloud && (t.WorkerInstructionsSetBy == 0 || t.WorkerInstructionsSetBy != p.me.UserID) {
		t.WorkerInstructions = ""
	}
	return t
}

// trusted is what counts of a record: all of it when the worker's owner set it by a sign-in of
// their own, or accepted exactly this. Otherwise the owner's own file must say what to run.
// contract 10.2
func trusted(t api.Trusted, byOwner bool, owner string, own setup.Agent, accepted setup.Accepted) (api.Trusted, *api.Failure) {
	if byOwner {
		return t, nil
	}
	digest, err := setup.RunDigest(t.Type, t.Run, t.Instructions)
	if err == nil && accepted.Runs(digest) {
		return t, nil
	}
	if own.Type != "" && (!own.Type.NamesProgram() || len(own.Executable) > 0) {
		t.Type, t.Run, t.Instructions = own.Type, api.Run{}, ""
		return t, nil
	}
	return t, refuse(CodePolicyBlocked,
		"What the agent %s executes was last changed by somebody else than this worker's user %s, so this worker does not run it. Look at it and accept it with “stint worker trust %s”, or save the agent yourself.",
		t.AgentSlug, owner, t.AgentSlug)
}

// recordSettings are the terms of an agent's record alone.
func recordSettings(t api.Trusted, o Options) runSettings {
	run := t.Run
	out := runSettings{
		trusted: t, kind: t.Type, workFolder: run.WorkFolder, argv: run.Command, checkArgv: run.Check, choice: run.Choice(), maxTurns: int(run.MaxTurns),
		permissions: cmp.Or(agent.Permissions(run.Permissions), agent.Approval), shared: o.FolderShared,
		workspace: setup.Workspace{Mode: run.Workspace, BaseBranch: run.BaseBranch}, envNames: run.Env,
		turnLimit: seconds(t.TurnTimeoutSeconds), stallLimit: seconds(t.StallTimeoutSeconds),
		tries: o.MaxRetryAttempts, tryPause: o.MaxRetryBackoff,
	}
	if e, err := api.ParseExpect(run.Expect); err == nil { // the coordinator takes no other
		out.expect, out.strict = e, run.Strict
	}
	if run.Executable != "" {
		out.executable = []string{run.Executable}
	}
	if t.Type != api.TypeCommand { // contract 10.6: off by default for commands only
		out.turnLimit, out.stallLimit = cmp.Or(out.turnLimit, defaultTurnLimit), cmp.Or(out.stallLimit, defaultStallLimit)
	}
	out.policy = agent.PolicyOf(run)
	return out
}

// override lets what the owner's file and the workflow say replace what the record says.
func (o *runSettings) override(own setup.Agent, flow workflow.Workflow, c api.Claim) (err error) {
	o.kind = cmp.Or(own.Type, o.kind)
	if len(own.Executable) > 0 {
		o.executable, o.argv = own.Executable, own.Executable
	}
	if len(own.Check) > 0 {
		o.checkArgv = own.Check
	}
	if own.Expect != "" {
		if o.expect, err = api.ParseExpect(own.Expect); err != nil {
			return fmt.Errorf("expect: it %w", err)
		}
		o.strict = own.Strict
	}
	o.wrapper, o.mayLeave = own.Wrapper, own.MayLeave
	o.workFolder = cmp.Or(own.Folder, o.workFolder)
	o.choice, o.models = own.Choice().Over(o.choice), own.Models
	if own.Preset != "" || own.Permissions != "" || own.Otherwise != "" || len(own.Rules) > 0 {
		// The owner's policy replaces the record's: no rule of anybody else may widen it.
		o.permissions, o.policy = own.Rights(), own.Policy()
	}
	o.uses, o.stintTools = own.Used(), own.StintTools
	o.shared = o.shared || own.Shared
	o.name, o.instructions = own.Name, own.Instructions
	if own.TaskUpdates != nil {
		left := api.Labels(*own.TaskUpdates).Normal()
		o.taskUpdates = &left
	}
	o.land = cmp.Or(own.Land, api.LandOff)
	if own.Workspace != (setup.Workspace{}) {
		o.workspace = own.Workspace
	}
	if o.workspace.Mode == workflow.ModeEmpty {
		o.workFolder = "/" // unused: each session gets a new folder
	}
	o.envNames = slices.Concat(o.envNames, own.Env)
	if own.MaxRetries != nil {
		o.tries = *own.MaxRetries
	}
	o.answerWithin, o.spend = seconds(own.AnswerWithin), own.Spend
	if o.envSet, err = own.Variables(); err != nil {
		return err
	}
	if flow.Path == "" {
		return nil
	}
	o.hooks = flow.Config.Hooks
	o.template = flow.Render(variablesOf(c))
	if flow.Says("agent.max_turns") {
		o.maxTurns = flow.Config.Agent.MaxTurns
	}
	if flow.Says("agent.max_retry_backoff_ms") {
		o.tryPause = flow.Config.Agent.MaxRetryBackoff
	}
	if flow.Says("codex.read_timeout_ms") {
		o.answerLimit = flow.Config.Codex.ReadTimeout
	}
	// What the owner has written there holds for every kind of agent; the file's defaults
	// don't, and those of a command are off. contract 10.6
	if flow.Says("codex.turn_timeout_ms") {
		o.turnLimit = flow.Config.Codex.TurnTimeout
	}
	if flow.Says("codex.stall_timeout_ms") {
		o.stallLimit = flow.Config.Codex.StallTimeout
	}
	return nil
}

// secrets are the values in the owner's env files, and others that must not appear in what is
// shown.
func (o *runSettings) secrets(others ...string) []string {
	return slices.AppendSeq(others, maps.Values(o.envSet))
}

func attemptText(n int64) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprint(n - 1)
}

// followFlow reads a workflow file, using the parts of it that the owner accepted. If the file
// is invalid now, its last valid version is used.
func (p *Process) followFlow(path string, accepted setup.Accepted, slug string) (workflow.Workflow, *api.Failure) {
	w := p.watcher(path)
	flow, err := w.Current()
	if err != nil && flow.Path == "" {
		return flow, refuse(CodePolicyBlocked, "The workflow file can't be used: %s", problems(err))
	}
	follow, changed, err := accepted.Follow(flow)
	if err != nil {
		return flow, refuse(CodePolicyBlocked, "What was accepted of the workflow file has no meaning any more: %s Look at it and accept it anew with “stint worker trust %s”.", problems(err), slug)
	}
	if changed {
		p.log.Debug("the workflow file executes what its owner has not accepted; what was accepted last holds", "agent", slug, "file", path)
	}
	return follow, nil
}

// watcher follows a workflow file from its first use on.
func (p *Process) watcher(path string) *workflow.Watcher {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.flows[path]
	if w == nil {
		w = workflow.Watch(path, pathVariable, p.log)
		p.flows[path] = w
	}
	return w
}

// pathVariable is a variable that may appear in a workflow's paths.
func pathVariable(name string) string {
	if looksSecret(name) || strings.HasPrefix(name, "STINT_") {
		return ""
	}
	return os.Getenv(name)
}

// LoadWorkflow reads a workflow file as a worker of this user does.
func LoadWorkflow(path string) (workflow.Workflow, error) { return workflow.Load(path, pathVariable) }

// closeFlows ends the watching of workflow files.
func (p *Process) closeFlows() {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.flows))
	p.mu.Unlock()
	for _, w := range all {
		if err := w.Close(); err != nil {
			p.log.Warn("could not stop watching a workflow file", "error", err)
		}
	}
}

// agentState is the folder in which an adapter keeps its own files.
func (p *Process) agentState(kind api.AgentType) string {
	return filepath.Join(p.opts.StateDir, "agents", string(kind))
}

// variablesOf are the variables that a template may name. Without a task only those of the
// session itself have a value (contract 10.5).
func variablesOf(c api.Claim) workflow.Variables {
	v := workflow.Variables{Prompt: c.Untrusted.Prompt, Title: c.Untrusted.Title, Attempt: attemptText(c.Session.Attempt)}
	if t := c.Untrusted.Task; t != nil {
		v.ID, v.Identifier, v.Title, v.Description = t.ID.String(), t.Key, t.Title, t.Description
		v.State, v.Labels = string(t.State), strings.Join(t.Labels, ",")
	}
	return v
}
