package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/proc"
)

// The codes with which a session fails here (contract 10.2). docs/errors.md lists them.
const (
	CodeFolderNotAbsolute      = "WORK_FOLDER_NOT_ABSOLUTE"
	CodeFolderNotFound         = "WORK_FOLDER_NOT_FOUND" // also: it vanished while the command ran
	CodeFolderNotADir          = "WORK_FOLDER_NOT_A_DIR"
	CodeFolderNotReadable      = "WORK_FOLDER_NOT_READABLE"
	CodeTypeUnsupported        = "AGENT_TYPE_UNSUPPORTED"
	CodePermissionsUnsupported = "PERMISSIONS_UNSUPPORTED"
	CodeExecutableNotFound     = "AGENT_EXECUTABLE_NOT_FOUND"
	CodePolicyBlocked          = "POLICY_BLOCKED"
	CodeCrashed                = "AGENT_CRASHED"
	CodeExitNonzero            = "AGENT_EXIT_NONZERO"
	CodeTurnTimeout            = "TURN_TIMEOUT"
	CodeStalled                = "STALLED"
)

func refuse(code, format string, args ...any) *api.Failure {
	return &api.Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// plan is what a session will execute, found fit.
type plan struct {
	folder  folder
	run     api.Run
	adapter agent.Agent // of an agent that converses; nil for a command
	argv    []string    // of a command
	path    string      // where the executable was found
	env     []string    // without the session's own variables
}

// planFor decides what a claim makes this worker execute, or why nothing. The
// order of the checks is contract 10.2's, behind the one that decides whether
// the run block may be looked at: it counts only if the worker's own user set it.
func (p *Process) planFor(t api.Trusted) (plan, *api.Failure) {
	if t.RunSetBy == 0 || t.RunSetBy != p.me.UserID {
		return plan{}, refuse(CodePolicyBlocked,
			"What the agent %s executes was last changed by somebody else than this worker's user %s, so this worker does not run it. Save the agent yourself to accept it.",
			t.AgentSlug, p.me.Name)
	}
	return planRun(t.Type, t.Run, p.source, p.opts.Env, p.opts.adapters)
}

// planRun checks a run block against this machine. source is the worker's own
// environment, extra the names that the worker passes on to every agent.
func planRun(kind api.AgentType, run api.Run, source, extra []string, adapters map[api.AgentType]adapter) (plan, *api.Failure) {
	f, failure := openFolder(run.WorkFolder)
	if failure != nil {
		return plan{}, failure
	}
	out := plan{folder: f, run: run, argv: run.Command}
	name := run.Executable
	if a, ok := adapters[kind]; ok {
		out.adapter = a.agent
		name = or(name, a.executable)
	} else if kind != api.TypeCommand {
		return plan{}, refuse(CodeTypeUnsupported, "This worker doesn't run agents of type %q.", string(kind))
	}
	if !slices.Contains([]string{"", string(agent.Approval), string(agent.Autonomous)}, run.Permissions) {
		return plan{}, refuse(CodePermissionsUnsupported, "The permissions %q are not supported; use approval or autonomous.", run.Permissions)
	}
	if out.adapter == nil {
		if len(run.Command) == 0 || run.Command[0] == "" {
			return plan{}, refuse(CodeExecutableNotFound, "The agent names no command; set run.command.")
		}
		if i := slices.IndexFunc(run.Command, func(arg string) bool { return strings.ContainsRune(arg, 0) }); i >= 0 {
			return plan{}, refuse(CodePolicyBlocked, "Argument %d of the agent's command holds a NUL, which no program can be given.", i)
		}
		name = run.Command[0]
	}
	var err error
	if out.env, err = proc.Env(source, slices.Concat(extra, run.Env), nil); err != nil {
		return plan{}, refuse(CodePolicyBlocked, "The agent's environment is not possible: %v.", err)
	}
	if out.path, err = proc.LookPath(name, f.real, out.env); err != nil {
		return plan{}, executableFailure(name, err)
	}
	return out, nil
}

func executableFailure(name string, err error) *api.Failure {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return refuse(CodeExecutableNotFound, "No executable %q is in the PATH that the agent gets; the worker's doctor command shows it.", name)
	case errors.Is(err, fs.ErrNotExist):
		return refuse(CodeExecutableNotFound, "The executable %q does not exist, or its interpreter doesn't.", name)
	case errors.Is(err, fs.ErrPermission):
		return refuse(CodeExecutableNotFound, "The file %q can't be executed by the worker's user.", name)
	case errors.Is(err, syscall.ENOEXEC):
		return refuse(CodeExecutableNotFound, "The file %q is no program; a script needs a first line such as #!/bin/sh.", name)
	default:
		return refuse(CodeExecutableNotFound, "The executable %q can't be used: %v.", name, err)
	}
}
