package proc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test binary plays three roles besides running the tests: guardian, agent, and a worker
// that can be killed.
func TestMain(m *testing.M) {
	GuardianMain()
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "fake-agent":
			fakeAgent(os.Args[2], os.Args[3:])
			syscall.Exit(0) // at once even with the race detector, as in GuardianMain
		case "fake-worker":
			fakeWorker(os.Args[2], os.Args[3:])
			syscall.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// must ends a fake with a message that the test can see.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake:", err)
		syscall.Exit(99)
	}
}

func agentArgv(role string, args ...string) []string {
	self, err := os.Executable()
	must(err)
	return append([]string{self, "fake-agent", role}, args...)
}

// fakeAgents are the roles that an agent can play, by name.
func fakeAgent(role string, args []string) {
	switch role {
	case "escape": // DIR RECIPE exit|stay
		escape(args[0], args[1], args[2])
	case "attack": // DIR RECIPE ATTACK
		attack(args[0], args[1], args[2])
	case "branch": // DIR WHAT ARGS
		branch(args[0], args[1], args[2:])
	case "exit":
		code, err := strconv.Atoi(args[0])
		must(err)
		syscall.Exit(code)
	case "signal":
		n, err := strconv.Atoi(args[0])
		must(err)
		must(syscall.Kill(os.Getpid(), syscall.Signal(n)))
		time.Sleep(time.Hour)
	case "polite": // SIGNAL..., ends with 7 at the first of INT and TERM that is not among them
		polite(args)
	case "print": // TEXT, then waits for the end of its input
		fmt.Print(args[0])
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "flood": // BYTES LINE, writes that many bytes in lines of that length
		flood(args)
	case "census":
		printSelf()
	case "sleep":
		fmt.Println("ready")
		time.Sleep(time.Hour)
	default:
		must(fmt.Errorf("no such agent %q", role))
	}
}

func polite(ignored []string) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	for _, name := range ignored {
		signal.Ignore(unix.SignalNum(name))
	}
	fmt.Println("ready")
	fmt.Println("got", unix.SignalName((<-c).(syscall.Signal)))
	syscall.Exit(7)
}

func flood(args []string) {
	total, err := strconv.Atoi(args[0])
	must(err)
	length, err := strconv.Atoi(args[1])
	must(err)
	line := bytes.Repeat([]byte("x"), length)
	line[length-1] = '\n'
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	for left := total; left > 0; left -= length {
		if left < length {
			line = line[length-left:]
		}
		_, err := w.Write(line)
		must(err)
	}
	must(w.Flush())
}

// seen is what an agent can see of its surroundings.
type seen struct {
	Env       []string
	Dir       string
	FDs       []int
	Blocking  bool
	Leader    bool
	Terminal  bool
	CoreLimit uint64
	Ignored   uint64 // the signals, the first in the lowest bit
}

// libcSignals are SIGCANCEL, SIGSETXID and the one after: the C library reserves them, and the
// Go runtime leaves them as the process that started the tests had them.
const libcSignals = 1<<31 | 1<<32 | 1<<33

func printSelf() {
	var s seen
	s.Env = os.Environ()
	s.Dir, _ = os.Getwd()
	s.Blocking = true
	for fd := range 256 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			continue
		}
		link, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if strings.HasPrefix(link, "anon_inode:") || strings.HasPrefix(link, "/sys/fs/cgroup/") {
			continue // opened by the runtime of this very process
		}
		s.FDs = append(s.FDs, fd)
		s.Blocking = s.Blocking && flags&unix.O_NONBLOCK == 0
	}
	sid, _ := unix.Getsid(0)
	s.Leader = sid == os.Getpid()
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		s.Terminal = true
		tty.Close()
	}
	var limit syscall.Rlimit
	must(syscall.Getrlimit(syscall.RLIMIT_CORE, &limit))
	s.CoreLimit = limit.Max
	status, err := os.ReadFile("/proc/self/status")
	must(err)
	_, after, _ := strings.Cut(string(status), "SigIgn:\t")
	hex, _, _ := strings.Cut(after, "\n")
	s.Ignored, err = strconv.ParseUint(hex, 16, 64)
	must(err)
	s.Ignored &^= libcSignals
	must(json.NewEncoder(os.Stdout).Encode(s))
}

// testStages are short, except KILL: it takes effect at once, and a long time for it keeps a
// deadline far from a machine's hiccups.
var testStages = Stages{Interrupt: 60 * time.Millisecond, Term: 60 * time.Millisecond, Kill: 5 * time.Second}

// patientStages never end on their own while a test runs.
var patientStages = Stages{Interrupt: 10 * time.Minute, Term: 10 * time.Minute, Kill: time.Minute}

// collected gathers output for tests.
type collected struct {
	all   bytes.Buffer
	ready chan struct{} // closed when a line "ready" has come
	found bool
}

func newCollected() *collected { return &collected{ready: make(chan struct{})} }

func (c *collected) sink(chunk Chunk) {
	c.all.Write(chunk.Data)
	if !c.found && bytes.Contains(c.all.Bytes(), []byte("ready\n")) {
		c.found = true
		close(c.ready)
	}
}

func testEnv() []string {
	env, err := Env(os.Environ(), nil, nil)
	must(err)
	return env
}

func testSpec(argv ...string) Spec {
	return Spec{Record: NewRecord("ses_test"), Argv: argv, Dir: os.TempDir(), Env: testEnv(), Stages: testStages}
}

// patience is how long a test waits for what should come soon. It is never waited for
// in a passing test.
const patience = 60 * time.Second

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
}

// run starts the agent, waits for its end and returns what it printed.
func run(t *testing.T, ctx context.Context, spec Spec) (Result, string) {
	t.Helper()
	out := newCollected()
	p, err := Start(ctx, spec, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the agent", p.Done())
	return p.Wait(), out.all.String()
}

// workerReport is what a fake worker prints at its end.
type workerReport struct {
	Record Record
	Cause  string
	Stage  Stage
	Bytes  int
	PeakKB int
}

// fakeWorker runs one agent as a worker would. It prints the record as JSON when the
// agent is ready, takes a deadline per line of its input, and reports at the end.
func fakeWorker(mode string, argv []string) {
	if mode == "sweep" { // HOW RECORD
		sweepBlind(argv[0], argv[1])
		return
	}
	out := newCollected()
	rep := workerReport{}
	sink := out.sink
	if mode == "count" {
		sink = func(c Chunk) { rep.Bytes += len(c.Data) }
	}
	spec := testSpec(argv...)
	if mode == "patient" {
		spec.Stages = patientStages
	}
	p, err := Start(context.Background(), spec, sink)
	must(err)
	enc := json.NewEncoder(os.Stdout)
	if mode != "count" {
		<-out.ready
		must(enc.Encode(workerReport{Record: p.Record()}))
		go func() {
			for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
				at, err := strconv.ParseInt(lines.Text(), 10, 64)
				must(err)
				must(p.SetDeadline(BootTime(at)))
				must(enc.Encode(workerReport{}))
			}
		}()
	}
	r := p.Wait()
	rep.Record, rep.Stage = p.Record(), r.Stage
	if r.Cause != nil {
		rep.Cause = r.Cause.Error()
	}
	status, err := os.ReadFile("/proc/self/status")
	must(err)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	_, err = fmt.Sscanf(after, "%d", &rep.PeakKB)
	must(err)
	must(enc.Encode(rep))
}

// worker is a fake worker seen from outside.
type worker struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	out    *os.File
	report *json.Decoder
	record Record
}

func startWorker(t *testing.T, mode string, argv []string) *worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd: exec.Command(self, append([]string{"fake-worker", mode}, argv...)...)}
	w.start(t)
	if mode != "count" {
		w.record = w.next(t).Record
	}
	return w
}

// start starts w.cmd.
func (w *worker) start(t *testing.T) {
	t.Helper()
	var err error
	w.cmd.Stderr = os.Stderr
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	var theirs *os.File
	if w.out, theirs, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	w.cmd.Stdout = theirs
	err = w.cmd.Start()
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.kill(); w.out.Close() })
	w.report = json.NewDecoder(w.out)
}

func (w *worker) next(t *testing.T) workerReport {
	t.Helper()
	if err := w.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var r workerReport
	if err := w.report.Decode(&r); err != nil {
		t.Fatalf("read the worker's report: %v", err)
	}
	return r
}

func (w *worker) kill() {
	if w.cmd.ProcessState == nil {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	}
}
