package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"stint/worker"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
	"stint/worker/proc"
	"stint/worker/workertest"
)

// patience bounds everything that a script waits for. It is not a pace: what is waited for
// usually comes at once.
const patience = time.Minute

func TestMain(m *testing.M) {
	proc.GuardianMain()
	agent.HookMain()
	workertest.AgentMain()
	probeMain()
	if slices.Equal(os.Args[1:], worker.ToolServer) { // a worker under test starts this binary by its own path
		main()
	}
	agenttest.AsOrdinaryUser()
	testscript.Main(m, map[string]func(){
		"stint": main, "stint-on-bad-disk": mainOnBadDisk, shortClocks: mainWithShortClocks, asIs: mainAsItIs,
	})
}

// TestScript drives the real binary, as users do, through testdata/script.
// Besides testscript's own commands there are:
//
//	up|serve ARG…    start it on any free port and wait for its line; sets URL, ADDR and PID
//	down [SIGNAL]    end it (TERM) and wait; it must exit 0 and in time; its stderr is in server.stderr
//	crash            kill -9 it and wait
//	code N CMD ARG…  run a command that must exit with N
//	until N CMD ARG… run a command again until it exits with N
//	prints TEXT CMD ARG… run a command again until its stdout has TEXT
//	shape            the members and types of the JSON of the last stdout, for cmp
//	let NAME         NAME is the last stdout, trimmed
//	mode MODE FILE   a file's permissions
//	get STATUS PATH  what the server answers without a token
//	api METHOD PATH BODY        a call of the workspace's routes with the owner's token; must be 2xx
//	rest PATH        compare the last stdout with what a route of the workspace answers the owner
//	let-json NAME MEMBER.MEMBER a member of the last api answer
//	prefix ID [bare] PREFIX is all but the last digit of ID, without "ses_" if bare
//	signin FILE      post the form of a page that signs in: 303 and a cookie, and then no more
//	detach TEXT CMD ARG… run a command, interrupt it once it has printed TEXT on stderr; it must exit with 130
//	background CMD ARG…  start a command that goes on beside the script; at the script's end it is killed
//	finish N [SIGNAL]    send it a signal, wait for it; it must exit with N; stdout and stderr are its
//	consent FILE NAME PASSWORD allow|deny  wait for a URL in a file, and answer its page as a browser in which a person signs in
//	join URL NAME LOGIN PASSWORD           accept an invitation as somebody new
//	device NAME PASSWORD allow|deny        type the code that the background command shows
//	together N CMD ARG…  run a command N times at once; all must exit with 0
//	workspace ROOT REPO KEY SESSION [open] make a workspace as a worker does; open leaves its session unfinished
//	signal NAME      send SIGHUP or SIGUSR1 to the server
func TestScript(t *testing.T) {
	// If the tests run under nohup, the programs under test must not inherit that: a signal
	// that is caught here has its default there.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	testscript.Run(t, scripts())
}

func scripts() testscript.Params {
	return testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			for _, dir := range []string{"home", "work"} {
				if err := os.Mkdir(filepath.Join(env.WorkDir, dir), 0o700); err != nil {
					return err
				}
			}
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, "home", "share"))
			env.Setenv("STINT_DATA_DIR", filepath.Join(env.WorkDir, "data"))
			env.Setenv("DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("TZ", "UTC")
			env.Values[stateKey{}] = &state{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"up": func(ts *testscript.TestScript, _ bool, args []string) {
				start(ts, "stint", append([]string{"up", "--no-open"}, args...))
			},
			"serve": func(ts *testscript.TestScript, _ bool, args []string) {
				start(ts, "stint", append([]string{"serve"}, args...))
			},
			"start":    func(ts *testscript.TestScript, _ bool, args []string) { start(ts, args[0], args[1:]) },
			"down":     down,
			"crash":    crash,
			"code":     code,
			"until":    until,
			"prints":   prints,
			"shape":    shape,
			"let":      let,
			"mode":     mode,
			"get":      get,
			"api":      callAPI,
			"let-json": letJSON,
			"rest":     rest,
			"signin":   signIn,
			"detach":   detach,
			"prefix":   prefix,

			"background": background,
			"finish":     finish,
			"consent":    consent,
			"device":     typeCode,
			"join":       join,
			"together":   together,
			"workspace":  makeWorkspace,
			"signal": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(stateOf(ts).server.cmd.Process.Signal(signals[args[0]]))
			},
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	}
}

// state is what the commands of one script share. Scripts run side by side.
type state struct {
	server *instance
	answer any // the last answer to `api`

	beside *beside // the background command
}

type stateKey struct{}

func stateOf(ts *testscript.TestScript) *state { return ts.Value(stateKey{}).(*state) }

func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("%s exits with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func until(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := exitCode(ts, ts.Exec(args[1], args[2:]...))
		if got == want {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s exits with %d for %v, want %d", strings.Join(args[1:], " "), got, patience, want)
		}
	}
}

func prints(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_ = ts.Exec(args[1], args[2:]...)
		if strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not print %q in %v", strings.Join(args[1:], " "), args[0], patience)
		}
	}
}

func exitCode(ts *testscript.TestScript, err error) int {
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	ts.Check(err)
	return 0
}

func let(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// shape turns the last stdout, one JSON document a line, into the list of its
// members and their types, and puts that into stdout.
func shape(ts *testscript.TestScript, _ bool, _ []string) {
	found := map[string]bool{}
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			ts.Fatalf("not one JSON document a line: %v: %s", err, line)
		}
		walk(found, "", v)
	}
	for _, l := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintln(ts.Stdout(), l)
	}
}

func walk(found map[string]bool, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if at != "" {
			found[at+" object"] = true
		}
		for name, member := range v {
			walk(found, strings.TrimPrefix(at+"."+name, "."), member)
		}
	case []any:
		found[at+" array"] = true
		for _, element := range v {
			walk(found, at+"[]", element)
		}
	case string:
		found[at+" string"] = true
	case float64:
		found[at+" number"] = true
	case bool:
		found[at+" bool"] = true
	default:
		found[fmt.Sprintf("%s %T", at, v)] = true
	}
}

func mode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := info.Mode().Perm(); got != os.FileMode(want) {
		ts.Fatalf("%s has mode %o, want %o", args[1], got, want)
	}
}

func detach(ts *testscript.TestScript, _ bool, args []string) {
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Env, cmd.Dir = environ(ts), ts.MkAbs(".")
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	stop := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), args[0]) {
			ts.Check(cmd.Process.Signal(os.Interrupt))
		}
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != int(exitInterrupted) {
		ts.Fatalf("%s ends with %v\n%s", strings.Join(args[1:], " "), err, &said)
	}
	fmt.Fprint(ts.Stderr(), said.String())
}
