package worker

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
	"stint/server"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
	"stint/worker/proc"
	"stint/worker/workertest"
)

const childArg = "worker-process"

func TestMain(m *testing.M) {
	proc.GuardianMain()
	agent.HookMain()
	workertest.AgentMain()
	agenttest.AsOrdinaryUser()
	if len(os.Args) > 2 && os.Args[1] == childArg {
		childMain(os.Args[2])
	}
	if len(os.Args) > 4 && os.Args[1] == coordinatorArg {
		coordinatorMain(os.Args[2], os.Args[3], os.Args[4])
	}
	flag.Parse()
	// They wait for clocks more than they compute: two cores are enough for several at a time.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for something that should come soon; only a failure takes
// that long.
const patience = 3 * time.Minute

// Short durations for everything that is configurable.
func testStages() proc.Stages {
	return proc.Stages{Interrupt: 300 * time.Millisecond, Term: 300 * time.Millisecond, Kill: 500 * time.Millisecond}
}

func testClocks() Clocks {
	return Clocks{
		Beat: time.Second, Signal: 300 * time.Millisecond, Poll: 2 * time.Second, Agents: time.Second,
		Hold: 5 * time.Second, Look: 50 * time.Millisecond, Answer: 2 * time.Second,
	}
}

func testEngine(log *slog.Logger) engine.Config {
	cfg := engine.DefaultConfig()
	cfg.MinLease, cfg.DefaultLease, cfg.BeatEvery = time.Second, time.Minute, time.Second
	cfg.StaleAfter, cfg.Log = 2*time.Second, log
	return cfg
}

// fixture is a real coordinator on a real file behind a proxy, and its owner.
type fixture struct {
	*testing.T
	dir      string
	home     string         //nolint:unused // of the user of real programs, whose tests have a build tag
	engine   *engine.Engine // nil where the coordinator is another process
	accounts *account.Accounts
	proxy    *workertest.Proxy
	direct   string // the coordinator's own URL
	token    string
	client   *api.Client // bypasses the proxy
	me       api.Whoami
	ahead    atomic.Int64 // nanoseconds that the coordinator's clock is ahead
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureWith(t, func(*engine.Config) {})
}

func newFixtureWith(t *testing.T, edit func(*engine.Config)) *fixture {
	t.Helper()
	w := &fixture{T: t, dir: t.TempDir()}
	log := slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	path := filepath.Join(w.dir, "stint.db")
	enginetest.Lay(t, path)
	store, err := db.Open(t.Context(), db.Options{Path: path, Log: log, Clock: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }})
	w.must(err)
	cfg := testEngine(log)
	edit(&cfg)
	w.engine, w.accounts = engine.New(store, cfg), account.New(store, account.DefaultConfig())
	w.token, _, err = w.accounts.EnsureOwner(t.Context())
	w.must(err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	srv := server.New(server.Options{Engine: w.engine, Accounts: w.accounts, Addr: ln.Addr().String(), Log: log})
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = w.engine.Run(ctx) })
	parts.Go(func() { _ = srv.Serve(ctx, ln) })
	transport := &quietTransport{}
	t.Cleanup(func() {
		stop()
		parts.Wait()
		transport.CloseIdleConnections()
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	w.direct = "http://" + ln.Addr().String()
	w.proxy = workertest.NewProxy(t, w.direct)
	w.client, err = api.NewClient(api.ClientConfig{URL: w.direct, Token: w.token, Transport: transport})
	w.must(err)
	w.me, err = w.client.Whoami(t.Context())
	w.must(err)
	return w
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// agent makes an agent with a work folder of its own.
func (w *fixture) agent(slug string, command ...string) api.Agent {
	w.Helper()
	return w.agentWith(slug, nil, command...)
}

func (w *fixture) agentWith(slug string, edit func(*api.AgentInput), command ...string) api.Agent {
	w.Helper()
	in := engine.DefaultConfig().DefaultAgent()
	in.Slug, in.Name, in.Type, in.Mode = slug, slug, api.TypeCommand, api.Local
	in.Run = api.Run{Command: command, WorkFolder: w.TempDir()}
	if edit != nil {
		edit(&in)
	}
	a, err := w.client.CreateAgent(w.Context(), in)
	w.must(err)
	return a
}

func (w *fixture) trigger(a api.Agent, prompt string) api.SessionID {
	w.Helper()
	s, _, err := w.client.CreateSession(w.Context(), a.Slug, api.SessionInput{Prompt: new(prompt)}, "")
	w.must(err)
	return s.ID
}

// until waits for a session to become as wanted.
func (w *fixture) until(id api.SessionID, what string, wanted func(api.Session) bool) api.Session {
	w.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		changed := w.changed()
		s, err := w.client.Session(w.Context(), id)
		w.must(err)
		if wanted(s) {
			return s
		}
		select {
		case <-changed:
		case <-late.C:
			w.Fatalf("the session is not %s but %s (%+v, waits for %+v)", what, s.Status, s.Error, s.WaitingFor)
		}
	}
}

// changed is closed when something has happened.
func (w *fixture) changed() <-chan struct{} {
	if w.engine != nil {
		return w.engine.Changed()
	}
	soon := make(chan struct{}) // the coordinator is another process
	time.AfterFunc(20*time.Millisecond, func() { close(soon) })
	return soon
}

func (w *fixture) untilStatus(id api.SessionID, want api.Status) api.Session {
	w.Helper()
	return w.until(id, string(want), func(s api.Session) bool {
		if s.Status != want && s.Status.Terminal() {
			w.Fatalf("the session ended %s (%+v), not %s", s.Status, s.Error, want)
		}
		return s.Status == want
	})
}

// eventually waits for something that no event announces.
func (w *fixture) eventually(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("never: %s", what)
		}
	}
}

// untilDrained waits until no claim of the agent is live or undrained.
func (w *fixture) untilDrained(a api.Agent) {
	w.Helper()
	w.eventually("all claims are drained", func() bool {
		got, err := w.client.Agent(w.Context(), a.Slug)
		w.must(err)
		return got.Running == 0
	})
}

// items reads all items of a session.
func (w *fixture) items(id api.SessionID) []api.Item {
	w.Helper()
	var out []api.Item
	for after := int64(0); ; {
		page, err := w.client.Items(w.Context(), id, after, 200)
		w.must(err)
		out = append(out, page.Items...)
		if len(page.Items) == 0 {
			return out
		}
		after = page.Items[len(page.Items)-1].Seq
	}
}

// text is what a session printed on a stream.
func (w *fixture) text(id api.SessionID, stream string) string {
	w.Helper()
	var b strings.Builder
	for _, it := range w.items(id) {
		if it.Kind == api.ItemText && it.Stream == stream {
			b.WriteString(it.Text)
		}
	}
	return b.String()
}

// brief makes an agent's leases short, for what happens when they lapse. On a machine that is
// even slower, the session only starts once more.
func brief(in *api.AgentInput) { in.LeaseSeconds = 4 }

// longer makes leases short, but long enough for the command to keep them.
func longer(in *api.AgentInput) { in.LeaseSeconds = 8 }

// options are those of a worker that reaches the coordinator through the proxy.
func (w *fixture) options() Options {
	// Own settings files: those of whoever runs the tests stay out of it.
	w.must(os.MkdirAll(filepath.Join(w.dir, "worker", "setup"), 0o700))
	return Options{
		URL: w.proxy.URL, Token: w.token, StateDir: filepath.Join(w.dir, "worker"), MachineFile: filepath.Join(w.dir, "machine"),
		Name: "w1", Stages: testStages(), Clocks: testClocks(), Version: "test",
		Log: slog.New(slog.NewTextHandler(testLog{w.T}, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
}

// guest is a worker process inside the test process.
type guest struct {
	w    *fixture
	o    Options
	stop context.CancelFunc
	done chan struct{}
	code int
	err  error
}

func (w *fixture) start(o Options) *guest {
	w.Helper()
	ctx, stop := context.WithCancel(context.Background())
	g := &guest{w: w, o: o, stop: stop, done: make(chan struct{})}
	transport := &quietTransport{}
	if o.transport == nil {
		o.transport = transport
	}
	go func() {
		defer close(g.done)
		defer transport.CloseIdleConnections()
		g.code, g.err = Run(ctx, o)
	}()
	w.Cleanup(func() { g.end() })
	return g
}

// end stops the worker and waits for it.
func (g *guest) end() int {
	g.w.Helper()
	g.stop()
	return g.wait()
}

func (g *guest) wait() int {
	g.w.Helper()
	select {
	case <-g.done:
	case <-time.After(patience):
		g.w.Fatal("the worker does not end")
	}
	return g.code
}

// testLog sends log lines to the test's own log, as long as it runs.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

var _ io.Writer = testLog{}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func countLines(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// inState counts the outbox entries and the claims in the worker's state file.
func (w *fixture) inState() (n [2]int) {
	w.Helper()
	s, err := openState(w.options().StateDir)
	w.must(err)
	defer func() { w.must(s.close()) }()
	w.must(s.db.QueryRowContext(w.Context(), "SELECT (SELECT count(*) FROM outbox), (SELECT count(*) FROM held)").Scan(&n[0], &n[1]))
	return n
}
