package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"stint/worker/proc"
)

const (
	// patience bounds one call: a checkout of a large repository takes minutes, and a setting
	// that includes a pipe never ends.
	patience = 5 * time.Minute
	// mostOutput bounds what is kept of a call's output; the rest is thrown away.
	mostOutput = 8 << 20
	mostErrors = 4 << 10
)

// Error says that git refused a call.
type Error struct {
	Call   string // git's own name of it, such as "worktree add"
	Stderr string // what it printed, cut, without what it quotes of files
	Err    error  // how it ended
}

// Error returns git's own words, on one line.
func (e *Error) Error() string {
	text := strings.Join(strings.Fields(e.Stderr), " ")
	if text == "" {
		text = e.Err.Error()
	}
	return "git " + e.Call + ": " + text
}

// Unwrap returns how it ended.
func (e *Error) Unwrap() error { return e.Err }

// settings hold for every call, whatever the repository's own say. Filters and configured hooks,
// which can only be overridden by name, are added: see overrides.
var settings = [][2]string{
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"core.sshCommand", "false"},
	{"core.gitProxy", ""},
	{"core.askPass", "false"},
	{"core.pager", "cat"},
	{"core.editor", "false"},
	{"core.alternateRefsCommand", "false"},
	{"core.commitGraph", "false"}, // a file that can say other parents and files of a commit than the commit
	{"credential.helper", ""},
	{"protocol.allow", "never"},
	{"protocol.ext.allow", "never"},
	{"submodule.recurse", "false"},
	{"status.submoduleSummary", "false"},
	{"status.showStash", "false"},
	{"log.showSignature", "false"},
	{"commit.gpgSign", "false"},
	{"diff.external", ""},
	{"diff.default.binary", "auto"}, // else no file's diff is shown
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"checkout.workers", "1"},
	{"advice.detachedHead", "false"},
}

// tree is a git directory with its work tree.
type tree struct {
	common string // what all trees of a repository share
	dir    string // this one's git directory
	top    string // where its files are
}

// program is an installed git and the environment that it gets.
type program struct {
	path   string
	env    []string
	source []string // what it was made of
}

// noGrafts names a file that can't be there. The repository's own could say other parents of a
// commit than the commit, so that what is shown isn't what is merged.
const noGrafts = "GIT_GRAFT_FILE=/dev/null/none"

// passedOn are the variables of the worker's that git gets.
var passedOn = []string{"PATH", "HOME", "TZ", "TMPDIR"}

func find(env []string) (program, error) {
	path, err := proc.LookPath("git", "/", env)
	if err != nil {
		return program{}, fmt.Errorf("%w: %w", ErrNoGit, err)
	}
	own := []string{
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_EDITOR=false", "GIT_PAGER=cat",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", noGrafts,
		"GIT_ALLOW_PROTOCOL=", "GIT_PROTOCOL_FROM_USER=0", "GIT_SSH_COMMAND=false",
	}
	for _, assignment := range env {
		if name, _, ok := strings.Cut(assignment, "="); ok && slices.Contains(passedOn, name) {
			own = append(own, assignment)
		}
	}
	return program{path, own, env}, nil
}

// call runs git and returns what it printed, without the overrides for filters.
func (p program) call(ctx context.Context, at tree, extra [][2]string, args ...string) (string, error) {
	return p.do(ctx, at, Call{Args: args, set: extra})
}

// do runs git once.
func (p program) do(ctx context.Context, at tree, c Call) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, append([]string{"--no-pager", "--literal-pathspecs"}, c.Args...)...)
	cmd.Dir = at.top
	cmd.Env = p.environment(at, c)
	if c.Input != "" {
		cmd.Stdin = strings.NewReader(c.Input)
	}
	stdout, stderr := &capped{most: mostOutput}, &capped{most: mostErrors}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// A session of its own: nothing that it starts can ask on a terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	read := readBy(cmd, c.Read)
	err := cmd.Run()
	if failed := read(); err == nil {
		err = failed
	} else if errors.Is(failed, errEnough) {
		err = nil
	}
	if err != nil && !errors.Is(err, errEnough) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return stdout.String(), &Error{Call: called(c.Args), Stderr: unquoted(stderr.String()), Err: err}
	}
	return stdout.String(), nil
}

// called is the call without its arguments, for messages.
func called(args []string) string {
	if len(args) > 1 && args[0] == "worktree" {
		return args[0] + " " + args[1]
	}
	return args[0]
}

// run calls git on a repository with everything switched off that the repository's settings
// name.
func (p program) run(ctx context.Context, at tree, args ...string) (string, error) {
	off, err := p.overrides(ctx, at)
	if err != nil {
		return "", err
	}
	return p.call(ctx, at, off, args...)
}

// overrides switch off each filter and hook that the repository's settings name, including those
// of included files and of the work tree. Reading settings executes nothing.
func (p program) overrides(ctx context.Context, at tree) ([][2]string, error) {
	list, err := p.call(ctx, at, nil, "config", "--includes", "--list", "--name-only", "-z")
	if err != nil {
		return nil, err
	}
	if len(list) == mostOutput {
		return nil, errTooMany
	}
	var off [][2]string
	for _, name := range named(list, "hook") {
		off = append(off, [2]string{"hook." + name + ".event", ""}, [2]string{"hook." + name + ".enabled", "false"})
	}
	for _, name := range named(list, "filter") {
		filter := "filter." + name
		off = append(off, [2]string{filter + ".smudge", ""}, [2]string{filter + ".clean", ""}, [2]string{filter + ".process", ""}, [2]string{filter + ".required", "false"})
	}
	return off, nil
}

// capped keeps the beginning of what is written.
type capped struct {
	bytes.Buffer
	most int
}

// Write accepts everything and keeps what fits.
func (c *capped) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), max(0, c.most-c.Len()))])
	return len(p), nil
}

// owned refuses what belongs to somebody else: git itself only checks this when it finds the
// repository by itself.
func owned(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Getuid() && s.Uid != 0 {
		return fmt.Errorf("%w: %s", ErrForeign, path)
	}
	return nil
}

// Version is the version of the git that an environment's PATH leads to.
func Version(ctx context.Context, env []string) (string, error) {
	p, err := find(env)
	if err != nil {
		return "", err
	}
	out, err := p.call(ctx, tree{top: "/"}, nil, "version")
	return strings.TrimPrefix(strings.TrimSpace(out), "git version "), err
}

// clean resolves links and dots.
func clean(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}
