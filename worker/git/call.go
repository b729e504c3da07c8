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
	// patience bounds one call: a checkout of a large repository takes minutes.
	patience = 5 * time.Minute
	// brief bounds a call that only reads a few small files, and waits longer only where one of
	// them is a pipe: settings can include one.
	brief = 10 * time.Second
	// look is when a call that is not over yet is first looked after, see watched.
	look = time.Second
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

// settings hold for every call, whatever else says otherwise.
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
	{"core.splitIndex", "false"},  // its other half would be written into a view
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
	source Caller        // what it was made of
	brief  time.Duration // see the constants
	look   time.Duration
	known  *known
}

// Caller is who calls git.
type Caller struct {
	// Env supplies PATH and HOME; nothing else in it reaches git, but for what is sent.
	Env []string
	// Room is an absolute folder for what is needed for a moment, made when it is missing. It has
	// to be one in which no agent can write: git reads its settings there. Its entries whose names
	// begin with one of [Left] are a call's, or were left by one that was killed.
	Room string
}

// noGrafts names a file that can't be there. The repository's own could say other parents of a
// commit than the commit, so that what is shown isn't what is merged.
const noGrafts = "GIT_GRAFT_FILE=/dev/null/none"

// passedOn are the variables of the worker's that git gets.
var passedOn = []string{"PATH", "HOME", "TZ", "TMPDIR"}

func find(c Caller) (program, error) {
	env := c.Env
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
	return program{path, own, c, brief, look, &known{}}, nil
}

// read runs git on the repository as it is, for what executes nothing whatever the settings say:
// they are read and not obeyed. It takes a moment or is given up.
func (p program) read(ctx context.Context, at tree, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.brief, errSlow)
	defer cancel()
	return p.do(ctx, at, Call{Args: args})
}

var errSlow = errors.New("the repository's settings could not be read: perhaps they include a named pipe")

// do runs git once.
func (p program) do(ctx context.Context, at tree, c Call) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.of.common != "" {
		var stop func()
		ctx, stop = p.watched(ctx, c.of)
		defer stop()
	}
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
		if errors.Is(err, ErrPipe) || errors.Is(err, errSlow) {
			return stdout.String(), err // in our words
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

// run calls git on a repository in a view: nothing that its settings name is known there.
func (p program) run(ctx context.Context, at tree, c Call) (out string, err error) {
	v, err := p.view(ctx, at, c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	out, err = p.do(ctx, v.at, v.call)
	v.putBack()
	return out, err
}

// home is the user's home folder, as git sees it.
func (p program) home() (dir string) {
	for _, assignment := range p.env {
		if value, ok := strings.CutPrefix(assignment, "HOME="); ok {
			dir = value
		}
	}
	return dir
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
	p, err := find(Caller{Env: env})
	if err != nil {
		return "", err
	}
	out, err := p.read(ctx, tree{top: "/"}, "version")
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
