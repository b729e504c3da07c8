package worker

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"stint/api"
	"stint/worker/proc"
)

// Program is what is known of an agent's program on this machine.
type Program struct {
	Path     string `json:"path,omitzero"`
	Version  string `json:"version,omitzero"`
	SignedIn string `json:"signedIn,omitzero"` // yes, no or empty: nobody can tell
}

// programs are the agent programs that can be asked about themselves. It is a table.
var programs = map[api.AgentType]struct {
	name   string
	signIn []string // exits with 0 when somebody is signed in
	fix    string
}{
	api.TypeCodex:      {"codex", []string{"login", "status"}, "codex login"},
	api.TypeClaudeCode: {"claude", []string{"auth", "status"}, "claude auth login"},
}

// SignInCommand is how a person signs a type's program in; "" when there is no need.
func SignInCommand(kind api.AgentType) string { return programs[kind].fix }

const (
	programPatience = 15 * time.Second
	programAnswer   = 4 << 10 // bytes that are read of it
)

var versionWord = regexp.MustCompile(`\d+\.\d+[0-9A-Za-z.+-]*`)

// Probe looks for the program of an agent and asks it for its version and whether it
// is signed in. argv is what to start; empty = the type's own program. env is the
// exact environment. A failure is about a program that isn't there.
func Probe(ctx context.Context, kind api.AgentType, argv, env []string) (Program, *api.Failure) {
	known, asks := programs[kind]
	if len(argv) == 0 {
		argv = []string{known.name}
	}
	if argv[0] == "" {
		return Program{}, refuse(CodeExecutableNotFound, "The agent names no command.")
	}
	path, err := proc.LookPath(argv[0], "/", env)
	if err != nil {
		return Program{}, executableFailure(argv[0], err)
	}
	p := Program{Path: path}
	if !asks { // a command: to start it is to run it
		return p, nil
	}
	if out, err := ask(ctx, env, path, append(argv[1:len(argv):len(argv)], "--version")); err == nil {
		p.Version = versionWord.FindString(out)
	}
	switch _, err := ask(ctx, env, path, append(argv[1:len(argv):len(argv)], known.signIn...)); {
	case err == nil:
		p.SignedIn = "yes"
	case refused(err):
		p.SignedIn = "no"
	}
	return p, nil
}

// refused reports whether a program answered, by an exit code of its own.
func refused(err error) bool {
	var ended *exec.ExitError
	return errors.As(err, &ended) && ended.ExitCode() > 0
}

// ask runs a program for its answer, away from any folder that it might read settings from.
func ask(ctx context.Context, env []string, path string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, programPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := &beginning{}
	cmd.Stdout = out
	err := cmd.Run()
	return string(*out), err
}

// beginning keeps the first bytes of what is written.
type beginning []byte

// Write takes all and keeps what fits.
func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), programAnswer-len(*b))]...)
	return len(p), nil
}
