package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// instance is a server that a script started.
type instance struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	rest   chan string // what came on stdout after the first line, when it ended
}

var errTooSlow = errors.New("it took too long")

// start runs a server and waits for the one line that it prints.
func start(ts *testscript.TestScript, name string, args []string) {
	if !strings.Contains(strings.Join(args, " "), "--addr") {
		args = append(args, "--addr", "127.0.0.1:0")
	}
	path, err := exec.LookPath(name)
	ts.Check(err)
	i := &instance{cmd: exec.Command(path, args...), stderr: &bytes.Buffer{}, rest: make(chan string, 1)}
	i.cmd.Args[0] = name
	i.cmd.Env = environ(ts)
	i.cmd.Dir = ts.MkAbs(".")
	i.cmd.Stderr = i.stderr
	stdout, err := i.cmd.StdoutPipe()
	ts.Check(err)
	begun := time.Now()
	ts.Check(i.cmd.Start())
	line := make(chan string, 1)
	go func() {
		r := bufio.NewReader(stdout)
		first, _ := r.ReadString('\n')
		line <- first
		rest, _ := io.ReadAll(r)
		i.rest <- string(rest)
	}()
	ts.Defer(func() {
		if i.cmd.ProcessState == nil {
			_ = i.cmd.Process.Kill()
			_ = i.cmd.Wait() // for its output, too
		}
		ts.Logf("[%s %s stderr]\n%s", name, strings.Join(args, " "), i.stderr)
	})
	select {
	case url := <-line:
		url = strings.TrimSpace(url)
		if !strings.HasPrefix(url, "http://") {
			_ = i.cmd.Wait()
			ts.Fatalf("%s %s printed %q, not its URL\n%s", name, strings.Join(args, " "), url, i.stderr)
		}
		ts.Logf("ready after %v", time.Since(begun).Round(time.Millisecond))
		ts.Setenv("URL", url)
		ts.Setenv("ADDR", strings.TrimPrefix(url, "http://"))
		ts.Setenv("PID", strconv.Itoa(i.cmd.Process.Pid))
	case <-time.After(patience):
		ts.Fatalf("%s %s: %v", name, strings.Join(args, " "), errTooSlow)
	}
	stateOf(ts).server = i
}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "XDG_DATA_HOME", "STINT_DATA_DIR", "TZ", "TMPDIR", "STINT_LOG_LEVEL", "STINT_LOG_FORMAT", "DISPLAY", "BAD_DISK", "GOCOVERDIR", "SECRET_MARKER", "STINT_MIN_LEASE", "STINT_OUTAGE_GRACE", "STINT_ACCESS_LIFE", "STINT_RUN_DEPTH", "WORK",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

var signals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1,
}

func down(ts *testscript.TestScript, _ bool, args []string) {
	sig := syscall.SIGTERM
	if len(args) > 0 {
		sig = signals[args[0]]
	}
	i := stateOf(ts).server
	begun := time.Now()
	ts.Check(i.cmd.Process.Signal(sig))
	waited := make(chan error, 1)
	kill := time.AfterFunc(patience, func() { _ = i.cmd.Process.Kill() })
	rest := <-drained(i, waited)
	kill.Stop()
	err := <-waited
	if took := time.Since(begun); took > 5*time.Second+time.Second { // a second for a busy machine
		ts.Fatalf("it took %v to end", took)
	}
	if err != nil {
		ts.Fatalf("it ended with %v\n%s", err, i.stderr)
	}
	if rest != "" {
		ts.Fatalf("it printed more than one line: %q", rest)
	}
	ts.Check(os.WriteFile(ts.MkAbs("server.stderr"), i.stderr.Bytes(), 0o600))
}

// drained waits for an instance to end, its output read to the end first.
func drained(i *instance, waited chan<- error) <-chan string {
	out := make(chan string, 1)
	go func() {
		rest := <-i.rest
		waited <- i.cmd.Wait()
		out <- rest
	}()
	return out
}

func crash(ts *testscript.TestScript, _ bool, _ []string) {
	i := stateOf(ts).server
	ts.Check(i.cmd.Process.Kill())
	waited := make(chan error, 1)
	<-drained(i, waited)
}
