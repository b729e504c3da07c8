package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/engine"
)

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and how to mend it",
		Long: "Looks at the server and your workspaces for what is wrong, and says of each thing\n" +
			"what to do. Through the server while one runs, which takes the role admin; else at\n" +
			"the stopped data directory, where it reads the whole database and changes\n" +
			"nothing. Codes: docs/doctor.md. It exits with 10 if something is wrong.",
		Example: "stint doctor\nstint doctor --json | jq '.checks[] | select(.ok | not)'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.doctor(cmd.Context()) },
	}
}

func (c *cli) doctor(ctx context.Context) error {
	const what = "cannot look for what is wrong"
	found, err := c.examination(ctx, what)
	if err != nil {
		return explain(what, err, "stint status")
	}
	if err := c.showExamination(found); err != nil {
		return err
	}
	if !found.Healthy {
		return quietly(exitProblems)
	}
	return nil
}

// examination is what the server says, together with what only this machine can know of it; or
// what a stopped data directory shows.
func (c *cli) examination(ctx context.Context, what string) (out api.Examination, err error) {
	stored, err := newVault().read()
	if err != nil {
		return out, err
	}
	d, err := c.dataDir()
	if err != nil {
		return out, err
	}
	local := c.env("STINT_URL") == "" && c.contextName(stored) == localContext
	if local && !lockHeld(d) {
		return c.examineStopped(ctx, d)
	}
	client, err := c.connect(what)
	if err != nil {
		return out, err
	}
	said, err := client.Doctor(ctx)
	if err != nil {
		return out, err
	}
	mine := builtFrom().Version
	out = api.Examination{Healthy: true, Version: mine, Schema: said.Schema}
	if said.Version != mine {
		out.Add(api.Check{
			Name: api.CheckVersion, Code: api.FoundServerDiffers, Detail: fmt.Sprintf("This stint is %s and the server runs %s.", mine, said.Version),
			Mend: "end the server and start it with the program that is installed: stint up; elsewhere, install the server's version",
		})
	} else {
		out.Add(api.Fine(api.CheckVersion, mine+" here and on the server"))
	}
	if local {
		out.Add(c.examineFiles(d)...)
	}
	out.Add(said.Checks...)
	return out, nil
}

// stoppedRules is how long the promises are checked in a stopped directory: nobody waits for
// the database, but somebody does for the answer.
const stoppedRules = time.Minute

// examineStopped looks at a data directory on which no server runs, and keeps one from starting
// meanwhile.
func (c *cli) examineStopped(ctx context.Context, d dataDir) (out api.Examination, err error) {
	out = api.Examination{Healthy: true, Version: builtFrom().Version}
	release, err := shareDir(d)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if _, err := os.Stat(string(d)); err == nil {
		out.Add(c.examineFiles(d)...)
	}
	store, err := db.Look(ctx, db.Options{Path: d.database(), Clock: c.now})
	if err != nil {
		if ctx.Err() == nil {
			out.Add(unopened(d, err))
			err = nil
		}
		return out, err
	}
	defer func() { err = errors.Join(err, store.CloseLook()) }()
	pages, err := store.CheckWhole(ctx)
	if err != nil {
		return out, err
	}
	if len(pages.Damage) > 0 {
		out.Add(engine.PagesFound(pages))
		return out, nil
	}
	out.Add(api.Fine(api.CheckPages, "the whole file was looked at"))
	if out.Schema, err = store.Schema(ctx); err != nil {
		return out, err
	}
	out.Add(api.Fine(api.CheckVersion, fmt.Sprintf("%s, schema %d", out.Version, out.Schema)))
	said, err := c.examineStore(ctx, store)
	out.Add(said...)
	return out, err
}

func (c *cli) examineStore(ctx context.Context, store *db.Store) ([]api.Check, error) {
	times, err := c.clocks()
	if err != nil {
		return nil, err
	}
	cfg, signs := times.engine, times.accounts
	cfg.Log, signs.Log = slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler)
	people := account.New(store, signs)
	owner, err := people.Owner(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the owner: %w", err)
	}
	caller, err := people.In(ctx, owner, cmp.Or(c.workspace(), account.DefaultWorkspace))
	if err != nil {
		return nil, err
	}
	said, err := engine.New(store, cfg).Examine(ctx, caller, engine.Looking{Rules: stoppedRules, Stopped: true})
	return said.Checks, err
}

// unopened says why the database can't be looked at.
func unopened(d dataDir, err error) api.Check {
	check := api.Check{Name: api.CheckDatabase, Code: api.FoundUnreadable, Detail: "The database can't be read: " + api.Plain(err) + ".", Mend: "run it as the user who runs the server, and check the disk"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		check.Code, check.Detail, check.Mend = api.FoundNoDatabase, "There is no database in "+string(d)+".", "stint up, or name the right directory with --data-dir"
	case errors.Is(err, db.ErrUnpaired):
		check.Code, check.Detail, check.Mend = api.FoundUnpaired, "A start would refuse it: "+api.Plain(err), "do as it says"
	case errors.Is(err, db.ErrNewer):
		check.Name, check.Code = api.CheckVersion, api.FoundSchemaNewer
		check.Detail, check.Mend = "A newer stint wrote the database: "+api.Plain(err)+".", "use that one again; or lose what happened since and restore a snapshot"
		if kept, err := db.Snapshots(d.database()); err == nil && len(kept) > 0 {
			check.Mend += fmt.Sprintf(": cp %s %s", inShell(filepath.Join(string(d), kept[len(kept)-1].Name)), inShell(d.database()))
		}
	case errors.Is(err, db.ErrOlder):
		return api.Fine(api.CheckVersion, "the next start of this stint brings the database up to date, after a snapshot; what is in it was not looked at")
	case errors.Is(err, db.ErrDamaged):
		return engine.PagesFound(db.PagesChecked{Damage: []string{api.Plain(err)}})
	}
	return check
}

// shareDir keeps a coordinator from starting on the directory, and lets others look.
func shareDir(d dataDir) (release func() error, err error) {
	f, err := os.Open(d.lock())
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data directory: %w", err)
	}
	if err := flock(f, unix.LOCK_SH); err != nil {
		return nil, errors.Join(taken(d, errLocked{lockHolder(f)}), f.Close())
	}
	return f.Close, nil
}

// showExamination prints what is wrong first.
func (c *cli) showExamination(e api.Examination) error {
	bad := slices.DeleteFunc(slices.Clone(e.Checks), func(check api.Check) bool { return check.OK })
	switch {
	case c.flags.json:
		return c.document(e)
	case c.flags.quiet:
		for _, check := range bad {
			if err := c.say("%s", check.Code); err != nil {
				return err
			}
		}
		return nil
	}
	f := &facts{}
	verdict := c.outLook.good("nothing is wrong")
	if n := len(bad); n == 1 {
		verdict = c.outLook.bad("1 thing is wrong")
	} else if n > 1 {
		verdict = c.outLook.bad(fmt.Sprintf("%d things are wrong", n))
	}
	f.add("verdict", verdict)
	c.checkFacts(f, bad)
	c.checkFacts(f, slices.DeleteFunc(slices.Clone(e.Checks), func(check api.Check) bool { return !check.OK }))
	return f.print(c)
}
