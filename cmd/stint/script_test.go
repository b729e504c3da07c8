package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"stint/worker/proc"
	"stint/worker/workertest"
)

// patience bounds everything that a script waits for. It is no pace: what is
// waited for usually comes at once.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	proc.GuardianMain()
	workertest.AgentMain()
	witnessMain()
	testscript.Main(m, map[string]func(){
		"stint": main, "stint-on-bad-disk": mainOnBadDisk, hasty: mainInAHurry, leashed: mainAsItIs,
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
//	let-json NAME MEMBER.MEMBER a member of the last api answer
//	prefix ID [bare] PREFIX is all but the last digit of ID, without "ses_" if bare
//	signin FILE      post the form of a page that signs in: 303 and a cookie, and then no more
//	detach TEXT CMD ARG… run a command, interrupt it once it has printed TEXT on stderr; it must exit with 130
//	usr1             send SIGUSR1 to the server
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
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
			"signin":   signIn,
			"detach":   detach,
			"prefix":   prefix,
			"usr1": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(stateOf(ts).server.cmd.Process.Signal(syscall.SIGUSR1))
			},
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

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
			_, _ = i.cmd.Process.Wait()
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

// state is what the commands of one script share. Scripts run side by side.
type state struct {
	server *instance
	answer any // the last answer to `api`
}

type stateKey struct{}

func stateOf(ts *testscript.TestScript) *state { return ts.Value(stateKey{}).(*state) }

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "XDG_DATA_HOME", "STINT_DATA_DIR", "TZ", "TMPDIR", "STINT_LOG_LEVEL", "STINT_LOG_FORMAT", "DISPLAY", "BAD_DISK", "GOCOVERDIR", "SECRET_MARKER"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func down(ts *testscript.TestScript, _ bool, args []string) {
	sig := syscall.SIGTERM
	if len(args) > 0 {
		sig = map[string]syscall.Signal{"INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM}[args[0]]
	}
	i := stateOf(ts).server
	begun := time.Now()
	ts.Check(i.cmd.Process.Signal(sig))
	waited := make(chan error, 1)
	rest := <-drained(i, waited)
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

func get(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get(ts.Getenv("URL") + args[1])
	ts.Check(err)
	ts.Check(resp.Body.Close())
	if got := strconv.Itoa(resp.StatusCode); got != args[0] {
		ts.Fatalf("GET %s answers %s, want %s", args[1], got, args[0])
	}
}

func callAPI(ts *testscript.TestScript, _ bool, args []string) {
	token, err := os.ReadFile(filepath.Join(ts.MkAbs(ts.Getenv("STINT_DATA_DIR")), "owner.token"))
	ts.Check(err)
	req, err := http.NewRequest(args[0], ts.Getenv("URL")+"/api/v1/workspaces/default/"+args[1], strings.NewReader(args[2]))
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	body, err := io.ReadAll(resp.Body)
	ts.Check(errors.Join(err, resp.Body.Close()))
	if resp.StatusCode/100 != 2 {
		ts.Fatalf("%s %s answers %d: %s", args[0], args[1], resp.StatusCode, body)
	}
	var answer any
	ts.Check(json.Unmarshal(body, &answer))
	stateOf(ts).answer = answer
}

func letJSON(ts *testscript.TestScript, _ bool, args []string) {
	v := stateOf(ts).answer
	for name := range strings.SplitSeq(args[1], ".") {
		object, ok := v.(map[string]any)
		if !ok || object[name] == nil {
			ts.Fatalf("the answer has no %s", args[1])
		}
		v = object[name]
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

func prefix(ts *testscript.TestScript, _ bool, args []string) {
	id := args[0][:len(args[0])-1]
	if len(args) > 1 {
		id = strings.TrimPrefix(id, "ses_")
	}
	ts.Setenv("PREFIX", id)
}

func signIn(ts *testscript.TestScript, _ bool, args []string) {
	page := ts.ReadFile(args[0])
	field := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if m == nil {
			ts.Fatalf("%s has no %s", args[0], pattern)
		}
		return html.UnescapeString(m[1])
	}
	action, link := field(`action="([^"]*)"`), field(`name="link" value="([^"]*)"`)
	client := &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, ts.Getenv("ADDR"))
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	post := func() *http.Response {
		req, err := http.NewRequest(http.MethodPost, action, strings.NewReader(url.Values{"link": {link}}.Encode()))
		ts.Check(err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", "null") // as a browser sends it for a file
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		resp, err := client.Do(req)
		ts.Check(err)
		ts.Check(resp.Body.Close())
		return resp
	}
	first := post()
	if first.StatusCode != http.StatusSeeOther || len(first.Cookies()) != 1 {
		ts.Fatalf("signing in answers %s with %d cookies", first.Status, len(first.Cookies()))
	}
	if second := post(); second.StatusCode != http.StatusUnauthorized {
		ts.Fatalf("the same link again answers %s", second.Status)
	}
	req, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(action, "/signin")+"/", nil)
	ts.Check(err)
	req.AddCookie(first.Cookies()[0])
	resp, err := client.Do(req)
	ts.Check(err)
	ts.Check(resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("the dashboard answers %s", resp.Status)
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
