package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/server"
	"stint/server/hooks"
	"stint/server/metrics"
	"stint/server/provider"
	"stint/server/traces"
	"stint/web"
	"stint/worker/places"
)

// coordinator is a coordinator's process: the data directory that it holds,
// the store and engine on it, and the server that answers for them.
type coordinator struct {
	dir      dataDir
	lock     dirLock
	store    *db.Store
	engine   *engine.Engine
	accounts *account.Accounts
	ln       net.Listener
	clocks   clocks
	zone     *time.Location // of readers whose browser doesn't say
	public   server.Public
	held     server.Limits // of held requests and streams
	hooks    hooks.Guard   // where webhooks may send to
	works    bool          // this process serves agents itself, so their folders are on this machine
	log      *slog.Logger

	provider  *provider.Provider // nil = none
	registers bool               // programs may register themselves

	metrics      *metrics.Metrics
	metricsLn    net.Listener // nil = none of their own
	metricsToken string       // "" = not served by the server

	traces *traces.Traces // nil = none

	clientSecret string // the file with the provider's client secret for this server, "" for none
}

// serverFlags are what up and serve have in common.
type serverFlags struct {
	addr    string
	baseURL string
	hosts   []string
	proxies []string
	inside  bool // webhooks may send to inner addresses
	force   bool

	provider  providerFlags
	registers bool // programs may register themselves

	metricsAddr string
	backup      backupFlags
	retention   retentionFlags
}

// open takes the data directory and opens its store, in an order in which everything that can
// be refused is refused before anything is written.
func (c *cli) open(ctx context.Context, f serverFlags, log *slog.Logger) (*coordinator, error) {
	addr := c.listenAddr(f)
	public, err := c.public(f)
	if err != nil {
		return nil, usage("cannot start the server", err.Error(), "stint serve --help")
	}
	if err := server.CheckAddr(addr, public); err != nil {
		return nil, usage("cannot listen on "+addr, "--addr: "+err.Error(), "stint up --addr "+defaultAddr)
	}
	if f.metricsAddr == "" {
		f.metricsAddr = c.env("STINT_METRICS_ADDR")
	}
	if err := checkMetricsAddr(f.metricsAddr); err != nil {
		return nil, err
	}
	d, err := c.dataDir()
	if err != nil {
		return nil, err
	}
	if err := d.prepare(f.force); err != nil {
		return nil, err
	}
	times, err := c.clocks()
	if err != nil {
		return nil, err
	}
	if times.engine.Backups, err = c.backups(f.backup, d); err != nil {
		return nil, err
	}
	if times.engine.Retention, err = c.retention(f.retention); err != nil {
		return nil, err
	}
	inside, err := c.isOn(f.inside, "STINT_WEBHOOKS_INSIDE")
	if err != nil {
		return nil, err
	}
	registers, err := c.isOn(f.registers, "STINT_REGISTER_PROGRAMS")
	if err != nil {
		return nil, err
	}
	held, err := c.limits(&times.engine)
	if err != nil {
		return nil, err
	}
	asked, viewers, err := c.provider(&f.provider)
	if err != nil {
		return nil, err
	}
	times.accounts.ViewerDomains = viewers
	k := &coordinator{
		dir: d, clocks: times, zone: c.zone(), public: public, held: held, hooks: hooks.Guard{AllowPrivate: inside}, registers: registers, clientSecret: f.provider.secretFile, log: log,
		metrics: metrics.New(builtFrom().Version), metricsToken: c.env("STINT_METRICS_TOKEN"),
	}
	if asked.Issuer != "" {
		k.provider, err = provider.New(asked, func() time.Time { return k.engine.Now() })
		if err != nil {
			return nil, usage("cannot start the server", "the external provider: "+err.Error(), "stint serve --help")
		}
	}
	if err := c.raise(ctx, k, addr, f.metricsAddr); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// raise fills k step by step; close undoes as many as were done.
func (c *cli) raise(ctx context.Context, k *coordinator, addr, metricsAddr string) (err error) {
	if k.lock, err = lockDir(k.dir); err != nil {
		return taken(k.dir, err)
	}
	if err := k.dir.tidy(); err != nil {
		k.log.Warn("what an earlier start left half-made can't be removed", "error", err)
	}
	if err := k.prepareBackups(); err != nil {
		return err
	}
	k.noteFiles()
	if k.ln, err = listen(ctx, addr, k.public); err != nil {
		return err
	}
	if err := k.listenForMetrics(ctx, metricsAddr); err != nil {
		return err
	}
	if k.store, err = c.openStore(ctx, db.Options{Path: k.dir.database(), Log: k.log, Committed: k.metrics.Committed}); err != nil {
		return k.dir.cannotOpen(err)
	}
	cfg := k.clocks.engine
	cfg.Log, cfg.CheckWebhookURL, cfg.CheckChannelURL, cfg.Observer = k.log, k.hooks.CheckURL, k.hooks.CheckChannelURL, k.metrics
	cfg.FreeBytes = func() (int64, error) { return c.freeBytes(string(k.dir)) }
	if c.makeTraces(ctx, k); k.traces != nil {
		cfg.SessionEnded = k.traces.Ended
	}
	k.engine = engine.New(k.store, cfg)
	if k.traces != nil {
		k.traces.Start(k.engine)
	}
	signs := k.clocks.accounts
	signs.Log = k.log
	k.accounts = account.New(k.store, signs)
	if err := k.signOwner(ctx); err != nil {
		return err
	}
	return k.dir.writeServer(serverFile{URL: k.url(), PID: os.Getpid(), Version: builtFrom().Version})
}

// noteFiles notes for this user's workers what to hide from their agents.
func (k *coordinator) noteFiles() {
	books := places.Own()
	err := errors.Join(books.Note(string(k.dir)), books.NoteUsual())
	if k.clientSecret != "" {
		err = errors.Join(err, books.Note(k.clientSecret))
	}
	if k.clocks.engine.Backups.Every > 0 {
		err = errors.Join(err, books.Note(k.clocks.engine.Backups.Dir))
	}
	if err != nil {
		k.log.Warn("the files to hide can't be noted for this user's workers", "error", err)
	}
}

// isOn is whether a flag or a variable says yes.
func (c *cli) isOn(flag bool, name string) (bool, error) {
	text := c.env(name)
	if flag || text == "" {
		return flag, nil
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return false, usage("cannot start the server", name+" is true or false, not "+strconv.Quote(text), name+"=true stint serve")
	}
	return yes, nil
}

// listenAddr is the address that the flag, the environment or the default names.
func (c *cli) listenAddr(f serverFlags) string {
	switch {
	case f.addr != "":
		return f.addr
	case c.env("STINT_ADDR") != "":
		return c.env("STINT_ADDR")
	}
	return defaultAddr
}

// public is how other machines reach the server, by the flags or the environment.
func (c *cli) public(f serverFlags) (server.Public, error) {
	list := func(flag []string, name string) []string {
		if len(flag) > 0 || c.env(name) == "" {
			return flag
		}
		return strings.Split(c.env(name), ",")
	}
	if f.baseURL == "" {
		f.baseURL = c.env("STINT_BASE_URL")
	}
	return server.ParsePublic(f.baseURL, list(f.hosts, "STINT_ALLOWED_HOSTS"), list(f.proxies, "STINT_TRUSTED_PROXIES"))
}

// taken is the error that another process runs on the data directory.
func taken(d dataDir, err error) error {
	what := "cannot run on the data directory " + string(d)
	var held errLocked
	if !errors.As(err, &held) {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	p := &problem{code: exitConflict, what: what, why: "another stint runs on it", next: "stint open, or stop that one first"}
	if held.pid > 0 {
		p.why = fmt.Sprintf("another stint runs on it: process %d", held.pid)
		p.next = fmt.Sprintf("stint open, or stop that one first: kill %d", held.pid)
	}
	if f, ok := d.readServer(); ok && f.PID == held.pid {
		p.why += ", at " + f.URL
	}
	return p
}

// cannotListen is the error that an address can't be listened on.
func cannotListen(addr string, err error) error {
	p := &problem{code: exitFailed, what: "cannot listen on " + addr, why: api.Plain(err), next: "choose another with --addr 127.0.0.1:PORT, or --addr 127.0.0.1:0 for any"}
	var op *net.OpError
	if errors.As(err, &op) {
		p.why = api.Plain(op.Err)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		p.code, p.why = exitConflict, "another program listens there"
	case errors.Is(err, syscall.EACCES):
		p.code, p.why = exitNotAllowed, "ports below 1024 need more rights than this user has"
	}
	return p
}

// cannotOpen is the error that the database can't be opened.
func (d dataDir) cannotOpen(err error) error {
	p := &problem{code: exitFailed, what: "cannot open the database " + d.database(), why: api.Plain(err)}
	switch {
	case errors.Is(err, db.ErrUnpaired):
		p.next = "do as it says, or use another data directory: stint up --data-dir DIR"
	case errors.Is(err, db.ErrNewer):
		return d.newer(err)
	case errors.Is(err, context.Canceled):
		return quietly(exitInterrupted)
	default:
		p.next = "stint up --data-dir DIR"
	}
	return p
}

// newer is the error that a newer version used the data directory: which, and how to go back.
func (d dataDir) newer(err error) error {
	p := &problem{code: exitFailed, what: "cannot open the database " + d.database(), why: api.Plain(err) + "; this is stint " + builtFrom().Version}
	what := "the newer version"
	if f, ok := d.readServer(); ok && f.Version != "" {
		what = "stint " + f.Version
		p.why += ", and " + what + " used it last"
	}
	p.next = "install " + what + " again; or, to go back to before the upgrade: stint restore BACKUP --replace"
	if copies, err := db.Snapshots(d.database()); err == nil && len(copies) > 0 {
		newest := slices.MaxFunc(copies, func(a, b db.SnapshotFile) int { return a.At.Compare(b.At) })
		p.next += ", or the copy that the upgrade left, " + newest.Name + ", as docs/upgrading.md says"
	}
	return p
}

// signOwner creates the one owner at the first start and makes sure that their token is in the
// data directory and is good. After a start that was killed between the two, or when the token
// file was lost, it makes a new token.
func (k *coordinator) signOwner(ctx context.Context) error {
	token, created, err := k.accounts.EnsureOwner(ctx)
	if err != nil {
		return fmt.Errorf("make the owner: %w", err)
	}
	if created {
		return k.dir.writeToken(token)
	}
	if token, err = k.dir.readToken(); err != nil {
		return err
	}
	owner, err := k.accounts.Owner(ctx)
	if err != nil {
		return fmt.Errorf("find the owner: %w", err)
	}
	if token != "" {
		who, err := k.accounts.Authenticate(ctx, token)
		if err == nil && who.UserID == owner.UserID {
			return os.Chmod(k.dir.token(), 0o600)
		}
		if err != nil && api.CodeOf(err) != api.CodeUnauthenticated {
			return fmt.Errorf("check the owner's token: %w", err)
		}
	}
	if token, err = k.accounts.NewBearer(ctx, owner.UserID); err != nil {
		return fmt.Errorf("make a token for the owner: %w", err)
	}
	return k.dir.writeToken(token)
}

// addr is the address that is listened on, with its real port.
func (k *coordinator) addr() string { return k.ln.Addr().String() }

// url is the address for programs: every resolver knows it.
func (k *coordinator) url() string {
	host, port, err := net.SplitHostPort(k.addr())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://" + net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + k.addr()
}

// browserURL is the address for browsers, and for the people using them.
func (k *coordinator) browserURL() string {
	if k.public.URL != nil {
		return k.public.URL.String()
	}
	return server.ForBrowsers(k.url())
}

// newServer makes the HTTP server with the dashboard behind it.
func (k *coordinator) newServer() *server.Server {
	pages := web.Options{Engine: k.engine, Accounts: k.accounts, CallerOf: server.CallerOf, FromOf: server.FromOf, HomeOf: server.HomeOf, Zone: k.zone, Log: k.log}
	if k.provider != nil {
		pages.Provider = web.Provider{Name: k.provider.Name(), Issuer: k.provider.Issuer()}
	}
	if k.works {
		pages.Folders = k.dir.folders()
	}
	return server.New(server.Options{
		Engine: k.engine, Accounts: k.accounts, Web: web.New(pages), Addr: k.addr(), Public: k.public, Limits: k.held, Provider: k.provider, Registers: k.registers, Version: builtFrom().Version, Log: k.log,
		Metrics: k.metrics.Handler(k.engine, k.log), MetricsToken: k.metricsToken,
	})
}

// close releases everything, in the reverse order of open.
func (k *coordinator) close() error {
	var errs []error
	for _, ln := range []net.Listener{k.ln, k.metricsLn} {
		if ln == nil {
			continue
		}
		if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if k.traces != nil {
		k.traces.Close(tracesWithin)
	}
	if k.store != nil {
		errs = append(errs, k.store.Close())
	}
	if k.lock != nil {
		if f, ok := k.dir.readServer(); ok && f.PID == os.Getpid() {
			if err := os.Remove(k.dir.server()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		errs = append(errs, k.lock.release())
	}
	return errors.Join(errs...)
}
