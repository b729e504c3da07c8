package worker

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"stint/api"
	"stint/worker/proc"
)

// Program is what is known about an agent's program on this machine.
type Program struct {
	Path     string `json:"path,omitzero"`
	Version  string `json:"version,omitzero"`
	SignedIn string `json:"signedIn,omitzero"` // yes, no or empty: can't be told
}

const (
	programPatience = 15 * time.Second
	greetPatience   = time.Minute // programs that speak ACP take long to start
	programAnswer   = 4 << 10     // bytes that are read of it
)

var versionWord = regexp.MustCompile(`\d+\.\d+[0-9A-Za-z.+-]*`)

// Probe looks for the program of an agent and asks it for its version and whether it is signed
// in. argv is what to start; empty = the type's own program. env is the exact environment. It
// fails only for a program that isn't there.
func Probe(ctx context.Context, kind api.AgentType, argv, env []string) (Program, *api.Failure) {
	known, _ := kind.Describe()
	if len(argv) == 0 {
		argv = []string{known.Program}
	}
	if argv[0] == "" {
		return Program{}, refuse(CodeExecutableNotFound, "%s", nothingNamed(kind))
	}
	if kind == api.TypeACP {
		argv = api.ACPCommand(argv)
	}
	path, err := proc.LookPath(argv[0], "/", env)
	if err != nil {
		return Program{}, executableFailure(argv[0], err)
	}
	p := Program{Path: path}
	if kind.NamesProgram() { // a command: starting it would run it; what speaks ACP says itself what it is
		return p, nil
	}
	if out, err := ask(ctx, env, path, append(argv[1:len(argv):len(argv)], "--version")); err == nil {
		p.Version = versionWord.FindString(out)
	}
	switch _, err := ask(ctx, env, path, append(argv[1:len(argv):len(argv)], known.SignedIn...)); {
	case err == nil:
		p.SignedIn = "yes"
	case refused(err):
		p.SignedIn = "no"
	}
	return p, nil
}

// refused reports whether a program answered by an exit code of its own.
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

// try runs a command to see whether it ends well, and what it prints about that.
func try(ctx context.Context, env, argv []string) (words string, err error) {
	path, err := proc.LookPath(argv[0], "/", env)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, programPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", env, time.Second
	said := &beginning{}
	cmd.Stdout, cmd.Stderr = said, said
	err = cmd.Run()
	return strings.TrimSpace(string(*said)), err
}

// beginning keeps the first bytes of what is written.
type beginning []byte

// Write accepts everything and keeps what fits.
func (b *beginning) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), programAnswer-len(*b))]...)
	return len(p), nil
}
