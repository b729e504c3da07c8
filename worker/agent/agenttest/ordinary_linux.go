package agenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// AsOrdinaryUser runs the tests with the real programs as an ordinary user with a home of its
// own where root started them by tools/with-agents, which names the programs, and then doesn't
// return: much works for root that doesn't work for the programs' users. Call it in TestMain
// before any test. Other tests, and those of an ordinary user, run as they were started.
func AsOrdinaryUser() {
	if os.Getuid() != 0 || os.Getenv(ClaudeVar) == "" || !slices.ContainsFunc(os.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "-test.run=") && strings.Contains(arg, "Real")
	}) {
		return
	}
	code, err := runOrdinary()
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests can't be run as an ordinary user:", err)
		code = 1
	}
	os.Exit(code)
}

func runOrdinary() (code int, err error) {
	uid, gid, err := ordinary()
	if err != nil {
		return 0, err
	}
	home, err := os.MkdirTemp("/home", "stint-test-") // not in a temporary folder: sandboxes leave those open
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	self, err = within(home, self)
	for _, name := range []string{ClaudeVar, CodexVar, OpencodeVar, GeminiVar, NodeVar, "STINT_TEST_BINARY"} {
		if program := os.Getenv(name); program != "" && err == nil {
			program, err = within(home, program)
			env = append(env, name+"="+program)
		}
	}
	if err = errors.Join(err, os.Chown(home, uid, gid)); err != nil {
		return 0, err
	}
	runtime.LockOSThread() // the tests end with the thread that started them
	cmd := exec.CommandContext(context.Background(), self, os.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = home, env, os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, Pdeathsig: syscall.SIGKILL,
	}
	err = cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return max(ended.ExitCode(), 1), nil
	}
	return 0, err
}

// ordinary is a user of this machine without any rights.
func ordinary() (uid, gid int, err error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return 65534, 65534, nil // no user table, as in some containers
	}
	uid, err = strconv.Atoi(u.Uid)
	if err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, err
}

// within makes a program executable for the home's user: with its whole package, if it belongs
// to one.
func within(home, program string) (string, error) {
	from := filepath.Dir(program)
	for dir := from; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
			from = dir
			break
		}
	}
	to, err := os.MkdirTemp(home, "program-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(to, 0o755); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, program)
	if err != nil {
		return "", err
	}
	if rel == filepath.Base(program) && from == filepath.Dir(program) && !exists(filepath.Join(from, "package.json")) {
		return filepath.Join(to, rel), share(program, filepath.Join(to, rel))
	}
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		if e.IsDir() {
			return os.MkdirAll(at, 0o755)
		}
		return share(path, at)
	})
	return filepath.Join(to, rel), err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// share links a file under another name, or copies it if it can't be linked.
func share(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
