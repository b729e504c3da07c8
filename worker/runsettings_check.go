package worker

import (
	"errors"
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
	CodeCheckFailed            = "CHECK_FAILED"
	CodeExpectationFailed      = "EXPECTATION_FAILED"
	CodePostFailed             = "THREAD_POST_FAILED"
	CodeItemTooLarge           = "THREAD_ITEM_TOO_LARGE"
	CodeTurnTimeout            = "TURN_TIMEOUT"
	CodeStalled                = "STALLED"
)

func refuse(code, format string, args ...any) *api.Failure {
	return api.NewFailure(code, format, args...)
}

// plan is what a session will execute, after all checks.
type plan struct {
	folder folder
	path   string   // where the executable was found
	env    []string // without the session's own variables
	runSettings
}

// planFor decides what a claim makes this worker execute, or why it executes nothing. Whose
// settings count is decided before the checks of contract 10.2, which come in its order.
func (p *Process) planFor(c api.Claim) (plan, *api.Failure) {
	o, failure := p.runSettingsFor(c)
	if failure != nil {
		return plan{}, failure
	}
	return o.check(p.source, p.opts.Env)
}

// check checks terms against this machine. source is the worker's own environment, extra the
// names that the worker passes on to every agent.
func (o runSettings) check(source, extra []string) (plan, *api.Failure) {
	f, failure := openFolder(o.workFolder)
	if failure != nil {
		return plan{}, failure
	}
	out := plan{folder: f, runSettings: o}
	if o.adapter == nil && o.kind != api.TypeCommand {
		return plan{}, refuse(CodeTypeUnsupported, "This worker doesn't run agents of type %q.", string(o.kind))
	}
	if o.permissions != agent.Approval && o.permissions != agent.Autonomous {
		return plan{}, refuse(CodePermissionsUnsupported, "The permissions %q are not supported; use approval or autonomous.", string(o.permissions))
	}
	words := o.words()
	if len(words) == 0 || words[0] == "" {
		return plan{}, refuse(CodeExecutableNotFound, "%s", nothingNamed(o.kind))
	}
	if i := slices.IndexFunc(words, func(arg string) bool { return strings.ContainsRune(arg, 0) }); i >= 0 {
		return plan{}, refuse(CodePolicyBlocked, "Argument %d of the agent's command holds a NUL, which no program can be given.", i)
	}
	var err error
	if out.env, err = proc.Env(source, slices.Concat(extra, o.envNames), o.envSet); err != nil {
		return plan{}, refuse(CodePolicyBlocked, "The agent's environment is not possible: %v.", err)
	}
	for _, program := range [][]string{o.wrapper, o.checkArgv, words} {
		if len(program) == 0 {
			continue
		}
		if out.path, err = proc.LookPath(program[0], f.real, out.env); err != nil {
			return plan{}, executableFailure(program[0], err)
		}
	}
	return out, nil
}

// nothingNamed says what an agent lacks whose settings name no program.
func nothingNamed(kind api.AgentType) string {
	if kind == api.TypeACP {
		return "The agent names no program; set run.executable to " + api.ACPNames() + ", or run.command to another one and its arguments."
	}
	return "The agent names no command; set run.command."
}

// words are what is started, before an adapter adds to them.
func (o runSettings) words() []string {
	if o.adapter != nil {
		return o.executable
	}
	return o.argv
}

func executableFailure(name string, err error) *api.Failure {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return refuse(CodeExecutableNotFound, "No executable %q is in the PATH that the agent gets; “stint worker doctor” on the worker's machine shows it.", name)
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
