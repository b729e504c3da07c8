package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Call is one call of git, for packages that do more with a repository than this one.
type Call struct {
	Args []string
	// Input is its standard input.
	Input string
	// Set are settings on top of this package's.
	Set [][2]string
	// Env are variables on top of this package's.
	Env []string
	// Read gets what it prints, as it comes. When it returns [Enough], git is ended and that is
	// no error. nil = the output is returned, up to 8 MiB.
	Read func(io.Reader) error
	// owner puts the settings of the user and of the system in force, and lets git reach
	// other machines and the user's programs for that. Only for repositories of our own.
	owner bool

	of      tree // the repository behind it
	index   string
	objects string
}

var errEnough = errors.New("enough was read")

// Enough says that nothing more of the output is needed.
func Enough() error { return errEnough }

// Do calls git on the tree without any of what the repository's settings name.
// With an error it returns what was printed before. The error may be an *Error.
func (t Tree) Do(ctx context.Context, c Call) (string, error) {
	return t.repo.program.run(ctx, t.at, c)
}

// Exit is the exit status with which git ended, -1 when it ended otherwise; 0 without an error.
func Exit(err error) int {
	if err == nil {
		return 0
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// readBy hands what a command prints to a reader. The function that it returns waits for it,
// and returns its error.
func readBy(cmd *exec.Cmd, read func(io.Reader) error) (wait func() error) {
	if read == nil {
		return func() error { return nil }
	}
	in, out := io.Pipe()
	cmd.Stdout = out
	done := make(chan error, 1)
	go func() {
		err := read(in)
		if err == nil {
			_, err = io.Copy(io.Discard, in)
		}
		_ = in.CloseWithError(err)
		done <- err
	}()
	return func() error {
		_ = out.Close()
		return <-done
	}
}

// environment is all that a call gets.
func (p program) environment(at tree, c Call) []string {
	all, env := slices.Concat(settings, noHooks(), c.Set), slices.Clone(p.env)
	if c.owner {
		all, env = slices.Concat(sending, noHooks(), c.Set), p.owners()
	}
	if at.dir != "" {
		// Named in full, so that neither a .git file in a folder nor a setting can lead
		// to another repository.
		env = append(env, "GIT_DIR="+at.dir, "GIT_COMMON_DIR="+at.common)
		if at.top != at.dir {
			env = append(env, "GIT_WORK_TREE="+at.top)
		}
	}
	if c.index != "" {
		env = append(env, "GIT_INDEX_FILE="+c.index)
	}
	if c.objects != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+c.objects)
	}
	env = append(env, c.Env...)
	env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(all)))
	for i, s := range all {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

// ownVariables are the variables of git's own that the user may have set on purpose for what
// is sent.
var ownVariables = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_SSH", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}

// sending are the settings for calls with the user's own settings in force.
var sending = [][2]string{
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"core.commitGraph", "false"}, // that of the repository whose objects are sent
	{"core.askPass", "false"},
	{"core.pager", "cat"},
	{"core.editor", "false"},
	{"credential.interactive", "false"},
	{"protocol.ext.allow", "never"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"push.gpgSign", "false"},
	{"push.recurseSubmodules", "no"},
}

// Protocols are those that something may be sent by.
const Protocols = "file:http:https:ssh"

// owners is the user's own environment, without what leads git elsewhere and without what is
// Stint's.
func (p program) owners() []string {
	var env []string
	for _, assignment := range p.source.Env {
		name, _, _ := strings.Cut(assignment, "=")
		if strings.HasPrefix(name, "STINT_") || strings.HasPrefix(name, "GIT_") && !slices.Contains(ownVariables, name) {
			continue
		}
		env = append(env, assignment)
	}
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never",
		"GIT_EDITOR=false", "GIT_PAGER=cat", "GIT_NO_REPLACE_OBJECTS=1", noGrafts, "GIT_ALLOW_PROTOCOL="+Protocols)
}

// own is a program that reads the user's and the system's settings as well. For reading
// settings alone, which executes nothing.
func (p program) own() program {
	env := slices.DeleteFunc(slices.Clone(p.env), func(a string) bool {
		return strings.HasPrefix(a, "GIT_CONFIG_") || strings.HasPrefix(a, "XDG_CONFIG_HOME=")
	})
	for _, assignment := range p.source.Env {
		if name, _, _ := strings.Cut(assignment, "="); name == "XDG_CONFIG_HOME" || strings.HasPrefix(name, "GIT_CONFIG_") && slices.Contains(ownVariables, name) {
			env = append(env, assignment)
		}
	}
	p.env = env
	return p
}

// Owner is a setting as the user's own or the system's files give it for this tree, whatever
// the repository says; "" when they don't.
func (t Tree) Owner(ctx context.Context, key string) (string, error) {
	all, err := t.repo.program.own().settings(ctx, t.at)
	return last(all, key, "system", "global"), err
}

// Setting is a setting as the repository's own files give it, which whoever works in the tree may
// have changed; "" when they don't.
func (t Tree) Setting(ctx context.Context, key string) (string, error) {
	all, err := t.repo.program.settings(ctx, t.at)
	return last(all, key, "local", "worktree"), err
}

// Filters are the names of the filters that some settings define: the repository's, the user's
// or the system's.
func (t Tree) Filters(ctx context.Context) (map[string]bool, error) {
	list, err := t.repo.program.own().settings(ctx, t.at)
	all := map[string]bool{}
	for _, s := range list {
		if name, ok := strings.CutPrefix(s.key, "filter."); ok {
			if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
				all[name[:dot]] = true
			}
		}
	}
	return all, err
}
