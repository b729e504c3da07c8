package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/worker"
	"stint/worker/proc"
)

// How the program is started: with short clocks, or unchanged.
const (
	shortClocks = "stint-with-short-clocks"
	asIs        = "stint-as-it-is"
)

// hastyEngine are the coordinator's clocks in crash tests: leases lapse between
// two kills, and a slow restart is an outage.
func hastyEngine() engine.Config {
	cfg := engine.DefaultConfig()
	cfg.TickEvery = time.Second
	cfg.AliveEvery, cfg.OutageAfter, cfg.Grace = 200*time.Millisecond, time.Second, time.Second
	cfg.BeatEvery, cfg.StaleAfter, cfg.OfflineAfter = time.Second, 2*time.Second, 4*time.Second
	cfg.AffinityWait = time.Second
	cfg.MinLease, cfg.DefaultLease, cfg.MaxLease = time.Second, 2*time.Second, 6*time.Second
	return cfg
}

// hastyStages are how long a command has to end, in `up` with short clocks.
func hastyStages() proc.Stages {
	return proc.Stages{Interrupt: 300 * time.Millisecond, Term: 300 * time.Millisecond, Kill: 2 * time.Second}
}

func hastyWorker() worker.Options {
	return worker.Options{Stages: hastyStages(), Clocks: worker.Clocks{
		Beat: time.Second, Signal: 300 * time.Millisecond, Poll: 2 * time.Second, Agents: time.Second,
		Hold: 5 * time.Second, Look: 50 * time.Millisecond, Answer: 2 * time.Second,
	}}
}

// mainWithShortClocks is main with short clocks.
func mainWithShortClocks() {
	endWithTest()
	if err := db.UseOFDLocks(); err != nil {
		panic(err)
	}
	c := newCLI()
	c.engineConfig, c.workerOptions = hastyEngine, hastyWorker
	os.Exit(int(run(c, os.Args[1:])))
}

// mainAsItIs is main, but ends with the test that started it.
func mainAsItIs() {
	endWithTest()
	main()
}

// endWithTest ends this process when its input ends: a test that dies leaves nothing behind.
func endWithTest() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(99)
	}()
}

// home is the environment and the data directory of one user's programs.
type home struct {
	testing.TB
	dir string
	env []string
}

func newHome(t testing.TB) *home {
	t.Helper()
	return newHomeIn(t, t.TempDir())
}

// newHomeIn is one in a folder that the caller chose.
func newHomeIn(t testing.TB, dir string) *home {
	t.Helper()
	return &home{TB: t, dir: dir, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TZ=UTC", "STINT_LOG_FORMAT=json", "STINT_LOG_LEVEL=warn",
		"XDG_DATA_HOME=" + filepath.Join(dir, "share"), "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
		"STINT_DATA_DIR=" + filepath.Join(dir, "data"),
	}}
}

func (h *home) data() dataDir { return dataDir(filepath.Join(h.dir, "data")) }

// must ends the test on an error in its own set-up.
func (h *home) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// program is a process of the program.
type program struct {
	home   *home
	cmd    *exec.Cmd
	stderr bytes.Buffer
	lines  chan string // the first line of stdout
	ended  chan struct{}
	err    error // how it ended; read after ended
	begun  time.Time
}

// start executes the program under a name that TestMain knows, and doesn't wait.
func (h *home) start(name string, args ...string) *program {
	h.Helper()
	self, err := os.Executable()
	h.must(err)
	if built := os.Getenv("STINT_TEST_BINARY"); built != "" && name == asIs {
		self = built
	}
	p := &program{home: h, cmd: exec.Command(self, args...), lines: make(chan string, 1), ended: make(chan struct{})}
	p.cmd.Args[0], p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = name, h.env, h.dir, &p.stderr
	stdin, err := p.cmd.StdinPipe() // its end is the program's end, see endWithTest
	h.must(err)
	stdout, err := p.cmd.StdoutPipe()
	h.must(err)
	p.begun = time.Now()
	h.must(p.cmd.Start())
	go func() {
		defer close(p.ended)
		r := bufio.NewReader(stdout)
		line, _ := r.ReadString('\n')
		p.lines <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, r)
		p.err = p.cmd.Wait()
		_ = stdin.Close()
	}()
	h.Cleanup(func() {
		p.kill()
		p.wait()
	})
	return p
}

// serve starts the program on any port and returns once it is ready.
func (h *home) serve(name, verb string) *program {
	h.Helper()
	args := []string{verb, "--addr", "127.0.0.1:0"}
	if verb == "up" {
		args = append(args, "--no-open")
	}
	p := h.start(name, args...)
	p.ready()
	return p
}

// ready waits for the line with the URL.
func (p *program) ready() string {
	p.home.Helper()
	select {
	case url := <-p.lines:
		if !strings.HasPrefix(url, "http://") {
			p.wait()
			p.home.Fatalf("%q printed %q, not its URL\n%s", p.cmd.Args, url, &p.stderr)
		}
		p.lines <- url
		return url
	case <-time.After(patience):
		p.home.Fatalf("%q is not ready after %v", p.cmd.Args, patience)
		return ""
	}
}

// kill sends SIGKILL; it may be called from any goroutine and more than once.
func (p *program) kill() { _ = p.cmd.Process.Kill() }

// wait waits for the end of the process.
func (p *program) wait() {
	p.home.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.home.Fatalf("process %d doesn't end", p.cmd.Process.Pid)
	}
}

// killed waits for the end and requires that SIGKILL caused it.
func (p *program) killed() {
	p.home.Helper()
	p.wait()
	var ended *exec.ExitError
	if !errors.As(p.err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		p.home.Fatalf("it was to be killed and ended with %v\n%s", p.err, &p.stderr)
	}
}

// stop ends the process as a person does.
func (p *program) stop() {
	p.home.Helper()
	p.home.must(p.cmd.Process.Signal(syscall.SIGTERM))
	p.wait()
	if p.err != nil {
		p.home.Fatalf("it ended with %v\n%s", p.err, &p.stderr)
	}
}

// complaints are the errors that the program logged. Read them after its end.
func (p *program) complaints() (out []string) {
	for line := range strings.Lines(p.stderr.String()) {
		if strings.Contains(line, `"level":"ERROR"`) || !strings.HasPrefix(line, "{") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// client calls the program as the owner, through the given transport or a default one.
func (p *program) client(via *wire) *api.Client {
	p.home.Helper()
	token, err := p.home.data().readToken()
	p.home.must(err)
	cfg := api.ClientConfig{URL: p.ready(), Token: token, Agent: "crash-test"}
	if via != nil {
		cfg.Transport = via
	}
	c, err := api.NewClient(cfg)
	p.home.must(err)
	return c
}
