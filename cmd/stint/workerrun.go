package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"stint/api"
	"stint/worker"
	"stint/worker/places"
)

type workerFlags struct {
	agents   []string
	name     string
	slots    int
	labels   []string
	env      []string
	state    string
	register bool
	shared   bool
	retries  int
	restart  string
}

// What --on-restart makes the signal restart do.
const (
	restartRespawns = "respawn"
	restartExits    = "exit"
)

func (c *cli) workerRunCommand() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a worker in the foreground",
		Long: "Runs a worker process in the foreground until it is interrupted: it takes\n" +
			"sessions of your agents and executes them here. stint up runs one by itself.",
		Example: "stint worker run --slots 2\nSTINT_URL=https://stint.example STINT_TOKEN=… stint worker run --agent backup",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.runWorker(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.agents, "agent", nil, "only this `AGENT`; repeat for more (all of yours)")
	flags.StringVar(&f.name, "name", "", "a `NAME` that tells it from your other workers\n(this machine's)")
	flags.IntVar(&f.slots, "slots", 0, "how many sessions run at once (4)")
	flags.StringArrayVar(&f.labels, "label", nil, "a `LABEL` that it has; repeat for more")
	flags.StringArrayVar(&f.env, "env", nil, "the `NAME` of a variable that every command gets;\nrepeat for more")
	flags.StringVar(&f.state, "state-dir", "", "its own `DIR` for what it must not forget\n($XDG_STATE_HOME/stint/worker)")
	flags.BoolVar(&f.register, "register", false, "make a record that was deleted anew, and take the state\ndirectory over from another account")
	flags.BoolVar(&f.shared, "shared-folders", false, "several sessions may use one work folder at once")
	flags.IntVar(&f.retries, "retries", 0, "how often a failed command is run again in its session")
	flags.StringVar(&f.restart, "on-restart", restartRespawns, "what the signal restart does: respawn, or exit with 75\nso that a service manager starts it again")
	return cmd
}

func (c *cli) runWorker(ctx context.Context, f workerFlags) error {
	what := "cannot run a worker"
	log, err := c.newLog(slog.LevelInfo)
	if err != nil {
		return err
	}
	p, err := c.find(what)
	if err != nil {
		return err
	}
	if f.slots < 0 || f.retries < 0 {
		return usage(what, "--slots and --retries are not negative", "stint worker run --help")
	}
	if f.restart != restartRespawns && f.restart != restartExits {
		return usage(what, "--on-restart is respawn or exit", "stint worker run --help")
	}
	if f.state == "" {
		f.state = filepath.Join(places.State(), "worker")
	}
	times, err := c.clocks()
	if err != nil {
		return err
	}
	dir, err := c.dataDir() // of a coordinator of the same user, which may be ours
	if err != nil {
		return err
	}
	if err := places.Make(); err != nil {
		return explain(what, err, "stint worker run --help")
	}
	o := worker.Options{
		URL: p.url, Token: p.token, Credentials: p.credentials, StateDir: f.state, Agents: f.agents, Register: f.register, Name: f.name,
		Slots: f.slots, Labels: api.Labels(f.labels).Normal(), Env: f.env, FolderShared: f.shared,
		Hidden:           []string{string(dir)},
		MaxRetryAttempts: f.retries, Stages: times.stages, Version: builtFrom().Version, Log: log,
	}
	if err := c.disks(&o); err != nil {
		return err
	}
	code, err := worker.Run(ctx, o)
	if err == nil {
		return nil
	}
	if errors.Is(err, worker.ErrRestart) && f.restart == restartRespawns {
		log.Info("starting again")
		return explain(what, respawn(), "stint worker run --help")
	}
	next := "stint worker run --help"
	switch {
	case errors.Is(err, worker.ErrRestart):
		return quietly(exitRestart)
	case errors.Is(err, worker.ErrAlreadyRunning):
		next = "stint worker run --state-dir DIR --name NAME"
	case errors.Is(err, worker.ErrNoRecord), errors.Is(err, worker.ErrAccountChanged):
		next = "stint worker run --register"
	}
	return &problem{code: exit(code), what: what, why: api.Plain(err), next: next}
}

const minFreeMiB = 512 // that a worker leaves free on its disks, unless it is told otherwise

// disks has a worker leave some of its disks free, and remove the workspaces that nobody needs.
func (c *cli) disks(o *worker.Options) (err error) {
	if o.CleanUp, err = c.cleanUp(); err != nil {
		return err
	}
	mib := int64(minFreeMiB)
	if text := c.env("STINT_MIN_FREE_MIB"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return usage("cannot run a worker", "STINT_MIN_FREE_MIB is a number from 0 on, not "+strconv.Quote(text), "STINT_MIN_FREE_MIB=512 stint worker run")
		}
		mib = n
	}
	o.MinFreeBytes, o.FreeBytes = mib<<20, c.freeBytes
	return nil
}

// work is the worker of `up`: it serves all local agents of the owner over HTTP like any
// other, and its state is in the data directory.
func (c *cli) work(ctx context.Context, k *coordinator) error {
	token, err := k.dir.readToken()
	if err != nil {
		return err
	}
	o := c.workerOptions()
	o.Stages = k.clocks.stages
	o.URL, o.Token, o.StateDir, o.Register, o.Embedded = k.url(), token, k.dir.worker(), true, true
	o.Version, o.Log = builtFrom().Version, k.log
	o.Hidden = []string{string(k.dir)}
	o.DrainGrace, o.Goodbye = drainGrace, tenantPatience-drainGrace
	if err := c.disks(&o); err != nil {
		return err
	}
	_, err = worker.Run(ctx, o)
	return err
}
