package worker

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/git"
	"stint/worker/proc"
	"stint/worker/setup"
	"stint/worker/workflow"
)

// Inspection is what the owner's files of an agent amount to on this machine.
type Inspection struct {
	File      string      `json:"file"`  // where the settings are, or would be
	Found     bool        `json:"found"` // there are some
	Checks    []api.Check `json:"checks"`
	Type      string      `json:"type,omitzero"`
	Program   Program     `json:"program,omitzero"`
	Git       string      `json:"git,omitzero"` // its version
	Mode      string      `json:"mode,omitzero"`
	Folder    string      `json:"folder,omitzero"`
	Root      string      `json:"root,omitzero"` // where workspaces are made
	Workflow  *FlowReport `json:"workflow,omitzero"`
	Variables []string    `json:"variables,omitzero"` // names out of env files
	Tools     bool        `json:"tools,omitzero"`     // the agent gets Stint's own
	Land      string      `json:"land,omitzero"`      // how far changes may be landed from elsewhere
	Protected []string    `json:"protected,omitzero"` // branches that nothing is landed on then
	// Rights, Policy and Holds are what the agent may do: its permissions, the rules in words,
	// and for each area what applies to its type.
	Rights string            `json:"rights,omitzero"`
	Policy []string          `json:"policy,omitzero"`
	Holds  map[string]string `json:"holds,omitzero"`
	// Uses says for each switch of the settings whether the agent may use that; Loads are the files
	// and folders there now that it lets be loaded.
	Uses  []string `json:"uses,omitzero"`
	Loads []string `json:"loads,omitzero"`

	own      setup.Agent // with what it leaves to the workflow filled in
	flow     workflow.Workflow
	accepted setup.Accepted
}

// FlowReport is what is known of an agent's workflow file.
type FlowReport struct {
	Path     string   `json:"path"`
	Digest   string   `json:"digest,omitzero"` // of what it executes; empty = it executes nothing
	Accepted bool     `json:"accepted"`        // what it executes is what the owner accepted
	Ignored  []string `json:"ignored,omitzero"`
	Unknown  []string `json:"unknown,omitzero"` // variables and tags of the template that are left as written
}

// Fine reports whether every check passed.
func (i Inspection) Fine() bool {
	return !slices.ContainsFunc(i.Checks, func(c api.Check) bool { return !c.OK })
}

// Inspect checks the owner's files of an agent, and the programs and folders that they name.
// record is the agent's own, the zero value when the coordinator wasn't asked. It starts git
// and the agent's program, to ask them for their versions.
func Inspect(ctx context.Context, stateDir string, record api.Agent, slug string, source []string) Inspection {
	files := setup.Find(stateDir)
	i := Inspection{File: files.Path(slug)}
	own, found, err := files.Agent(slug)
	i.Found = found
	i.check("settings", unfit(CodePolicyBlocked, err))
	if err != nil {
		return i
	}
	accepted, err := files.Accepted(slug)
	i.check("what was accepted", unfit(CodePolicyBlocked, err))
	i.accepted = accepted
	if own.Workflow != "" {
		own = i.follow(own, accepted, cmp.Or(own.Type, record.Type))
	}
	i.own, i.Tools = own, own.StintTools
	i.Land, i.Protected = string(cmp.Or(own.Land, api.LandOff)), own.LandProtected
	kind := cmp.Or(own.Type, record.Type)
	i.Type = string(kind)
	set, err := own.Variables()
	if len(own.EnvFiles) > 0 {
		i.check("env files", unfit(CodePolicyBlocked, err))
	}
	for name := range set {
		i.Variables = append(i.Variables, name)
	}
	slices.Sort(i.Variables)
	env, err := proc.Env(source, slices.Concat(record.Run.Env, own.Env), set)
	if err != nil {
		i.check("environment", unfit(CodePolicyBlocked, err))
		return i
	}
	i.allow(kind, own)
	i.workplace(ctx, own, record, stateDir, env)
	i.uses(kind, own, record, env)
	i.program(ctx, kind, own, record, env)
	return i
}

func (i *Inspection) check(name string, f *api.Failure) {
	c := api.Check{Name: name, OK: f == nil}
	if f != nil {
		c.Code, c.Detail = f.Code, f.Message
	}
	i.Checks = append(i.Checks, c)
}

// unfit puts an error into words, nil for none.
func unfit(code string, err error) *api.Failure {
	if err == nil {
		return nil
	}
	return refuse(code, "%v", err)
}

// follow reads the workflow file and fills in what the settings leave to it.
func (i *Inspection) follow(own setup.Agent, accepted setup.Accepted, kind api.AgentType) setup.Agent {
	i.Workflow = &FlowReport{Path: own.Workflow}
	w, err := LoadWorkflow(own.Workflow)
	i.check("workflow file", unfit(CodePolicyBlocked, err))
	if err != nil {
		return own
	}
	for _, f := range slices.Concat(w.Ignored, ineffective(kind, w)) {
		i.Workflow.Ignored = append(i.Workflow.Ignored, f.Field+": "+f.Reason)
	}
	i.Workflow.Unknown = w.Unknown()
	if e := w.Executing(); len(e) > 0 {
		i.Workflow.Digest = e.Digest()
	}
	follow, changed, err := accepted.Follow(w)
	i.Workflow.Accepted = !changed
	i.check("workflow accepted", unfit(CodePolicyBlocked, err))
	if err == nil && changed {
		last := &i.Checks[len(i.Checks)-1]
		last.Detail = "the file says what to execute or where, and you have not accepted this; sessions run by what you accepted last"
		if accepted.Workflow == nil || accepted.Workflow.Path != w.Path {
			last.Detail = "the file says what to execute or where, and you have not accepted it; sessions run without its hooks, its command and its places"
		}
	}
	i.flow = follow
	return own.Under(follow)
}

// allow says what the owner's settings allow; without settings, what the record allows.
func (i *Inspection) allow(kind api.AgentType, own setup.Agent) {
	i.Holds = map[string]string{}
	for _, h := range agent.Held(kind) {
		i.Holds[string(h.Area)] = h.Sentence
	}
	if !i.Found || kind == api.TypeCommand {
		return
	}
	p := own.Policy()
	i.Rights = string(own.Rights())
	if p.Unattended {
		i.Rights += ", unattended"
	}
	for _, r := range p.Rules {
		i.Policy = append(i.Policy, r.String())
	}
	i.Policy = append(i.Policy, string(cmp.Or(p.Otherwise, agent.Ask))+" otherwise")
}

// workplace checks the folder, and git where it is needed.
func (i *Inspection) workplace(ctx context.Context, own setup.Agent, record api.Agent, stateDir string, env []string) {
	i.Folder = cmp.Or(own.Folder, record.Run.WorkFolder)
	i.Mode = cmp.Or(own.Workspace.Mode, record.Run.Workspace, workflow.ModeFolder)
	if i.Mode != workflow.ModeFolder {
		i.Root = cmp.Or(own.Workspace.Root, WorkspaceRoot(stateDir))
	}
	if i.Mode != workflow.ModeEmpty && own.Folder != "" {
		_, failure := openFolder(own.Folder)
		i.check("folder", failure)
		if failure != nil {
			return
		}
	}
	if i.Mode != workflow.ModeWorktree {
		return
	}
	version, err := git.Version(ctx, env)
	i.Git = version
	i.check("git", unfit(CodeExecutableNotFound, err))
	if err != nil {
		return
	}
	repo, err := git.Open(ctx, i.Folder, git.Caller{Env: env, Room: Scratch(stateDir)})
	if err == nil {
		_, err = repo.Commit(ctx, cmp.Or(own.Workspace.BaseBranch, record.Run.BaseBranch))
	}
	i.check("repository", unfit(CodeFolderNotFound, err))
}

// program checks what is started: the sandbox, if any, and the agent.
func (i *Inspection) program(ctx context.Context, kind api.AgentType, own setup.Agent, record api.Agent, env []string) {
	if len(own.Wrapper) > 0 {
		_, err := proc.LookPath(own.Wrapper[0], "/", env)
		if err != nil {
			i.check("wrapper", executableFailure(own.Wrapper[0], err))
		} else {
			i.check("wrapper", nil)
		}
	}
	argv := own.Executable
	if len(argv) == 0 && record.Run.Executable != "" {
		argv = []string{record.Run.Executable}
	}
	if kind.NamesProgram() && kind != "" && len(argv) == 0 {
		if argv = record.Run.Command; len(argv) == 0 {
			return // the record's own check says so
		}
	}
	if kind == "" {
		return
	}
	p, failure := Probe(ctx, kind, argv, env)
	i.Program = p
	i.check("program", failure)
	if kind == api.TypeACP && failure == nil {
		i.greet(ctx, own, argv, env)
	}
	i.sandbox(ctx, kind, own, record, env)
	if p.SignedIn == "no" {
		i.signIn(ctx, kind, own, argv, env)
	}
}

// greet has a program that speaks ACP introduce itself, within the owner's wrapper where there is
// one. Whether somebody is signed in shows when a session begins.
func (i *Inspection) greet(ctx context.Context, own setup.Agent, argv, env []string) {
	ctx, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	argv = slices.Concat(own.Wrapper, api.ACPCommand(argv))
	path, err := proc.LookPath(argv[0], "/", env)
	if err != nil {
		return // the check of it says so
	}
	argv[0] = path
	met, err := agent.Greet(ctx, argv, env)
	if err != nil {
		i.check("protocol", refuse(CodeCrashed, "%s does not answer by the Agent Client Protocol: %s.", i.Program.Path, api.Plain(err)))
		return
	}
	i.Program.Version = met.Version
	i.check("protocol", nil)
	if !met.Resumes {
		i.Checks[len(i.Checks)-1].Detail = "it can't go on with an earlier conversation: one that is interrupted begins anew, told what was said so far"
	}
}

// sandbox tries the sandbox of a program that has one, inside the owner's own where there is
// one: one within the other may fail, and then no command runs.
func (i *Inspection) sandbox(ctx context.Context, kind api.AgentType, own setup.Agent, record api.Agent, env []string) {
	policy := agent.PolicyOf(record.Run)
	if i.Found {
		policy = own.Policy()
	}
	trial := agent.Trial(kind, policy, env)
	if len(trial) == 0 {
		return
	}
	words, err := try(ctx, env, slices.Concat(own.Wrapper, trial))
	if err == nil {
		i.check("sandbox", nil)
		return
	}
	where, mend := "", "Make sure bubblewrap may create user namespaces on this machine."
	if len(own.Wrapper) > 0 {
		where = " within the wrapper"
		mend = "Run the worker as an ordinary user, or have the wrapper keep the system's /proc: --bind /proc /proc in place of --proc /proc, and no --unshare-pid."
	}
	i.check("sandbox", refuse(CodePermissionsUnsupported, "The sandbox in which %s starts commands does not work%s (%s), so it runs none. %s",
		i.Program.Path, where, cmp.Or(lastLines(words, 1), api.Plain(err)), mend))
}

// signIn says what to do when nobody is signed in. Codex may use a model provider that needs
// no sign-in.
func (i *Inspection) signIn(ctx context.Context, kind api.AgentType, own setup.Agent, argv, env []string) {
	path := i.Program.Path
	program, _ := kind.Describe()
	words := fmt.Sprintf("%s says that nobody is signed in. Run: %s", path, program.SignIn)
	if kind != api.TypeCodex {
		i.check("sign-in", refuse("AGENT_NOT_SIGNED_IN", "%s", words))
		return
	}
	if used := own.Used(); !used.Settings && !used.Provider {
		if name := agent.CodexProvider(env); name != "" {
			words += fmt.Sprintf(", or, as its own settings, which a worker doesn't read, name the model provider %q, let it be used (provider = true in [uses]) or name it in the executable", name)
		}
		empty, err := os.MkdirTemp("", "stint-")
		if err != nil {
			i.check("sign-in", unfit("AGENT_NOT_SIGNED_IN", err))
			return
		}
		defer os.RemoveAll(empty)
		env = with(env, []string{"CODEX_HOME=" + empty})
	}
	ctx, cancel := context.WithTimeout(ctx, programPatience)
	defer cancel()
	if needs, err := agent.CodexNeedsAccount(ctx, append([]string{path}, argv[min(1, len(argv)):]...), env); err == nil && !needs {
		i.Program.SignedIn = ""
		i.check("sign-in", nil)
		i.Checks[len(i.Checks)-1].Detail = "nobody is signed in to Codex, and its model provider needs no Codex sign-in"
		return
	}
	i.check("sign-in", refuse("AGENT_NOT_SIGNED_IN", "%s", words))
}
