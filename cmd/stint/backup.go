package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	shellquote "github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stint/api"
	"stint/db"
	"stint/engine"
)

// backupFlags are the flags of up and serve about scheduled backups.
type backupFlags struct {
	every, dir string
	keep       int64
}

func (f *backupFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.every, "backup-every", "", "back the database up this often, a `TIME` such as 12h or 1d\n(STINT_BACKUP_EVERY; else never)")
	flags.Int64Var(&f.keep, "backup-keep", 0, "keep this `NUMBER` of those backups (STINT_BACKUP_KEEP; else "+strconv.Itoa(defaultKeep)+")")
	flags.StringVar(&f.dir, "backup-dir", "", "put them into this `DIR` (STINT_BACKUP_DIR; else backups in the\ndata directory)")
}

const (
	defaultKeep     = 7
	leastBackupTime = time.Minute
)

// backups are the scheduled backups that the flags or the environment ask for.
func (c *cli) backups(f backupFlags, d dataDir) (out engine.Backups, err error) {
	const what, next = "cannot start the server", "stint serve --backup-every 1d --backup-keep 7"
	if f.every == "" {
		f.every = c.env("STINT_BACKUP_EVERY")
	}
	if f.dir == "" {
		f.dir = c.env("STINT_BACKUP_DIR")
	}
	out = engine.Backups{Keep: f.keep, Dir: f.dir, Version: builtFrom().Version}
	if f.every != "" {
		if out.Every, err = api.ParseLength(f.every); err != nil {
			return out, usage(what, "--backup-every or STINT_BACKUP_EVERY: "+err.Error(), next)
		}
		if out.Every != 0 && out.Every < leastBackupTime {
			return out, usage(what, "--backup-every or STINT_BACKUP_EVERY: "+f.every+" is less than a minute", next)
		}
	}
	if text := c.env("STINT_BACKUP_KEEP"); out.Keep == 0 && text != "" {
		if out.Keep, err = strconv.ParseInt(text, 10, 32); err != nil || out.Keep == 0 {
			out.Keep = -1
		}
	}
	if out.Keep == 0 {
		out.Keep = defaultKeep
	}
	if out.Keep < 0 {
		return out, usage(what, "--backup-keep or STINT_BACKUP_KEEP is a number from 1 on", next)
	}
	if out.Dir == "" {
		out.Dir = d.backups()
	}
	if out.Dir, err = filepath.Abs(out.Dir); err != nil {
		return out, usage(what, "--backup-dir or STINT_BACKUP_DIR: "+err.Error(), next)
	}
	return out, nil
}

// prepareBackups makes the folder of the scheduled backups, so that one that can't be used is
// found at the start.
func (k *coordinator) prepareBackups() error {
	b := k.clocks.engine.Backups
	if b.Every == 0 {
		return nil
	}
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return &problem{
			code: exitFailed, what: "cannot use the folder of the backups " + b.Dir, why: reason(err),
			next: "name another with --backup-dir DIR or STINT_BACKUP_DIR",
		}
	}
	return nil
}

func (c *cli) backupCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "backup", Short: "Back the database up, and check a backup",
		Long: "Makes and checks backups of a server's database. They work on the data directory of\n" +
			"this machine, whether or not the server runs. A backup holds all that the server\n" +
			"keeps, its secrets too: keep it as safe as the data directory.",
		Example: "stint backup create\nstint backup create /mnt/safe/stint.zip\nstint backup create - | ssh host 'cat > stint.zip'\nstint backup verify stint.zip",
	}, c.backupCreateCommand(), c.backupVerifyCommand())
}

func (c *cli) backupCreateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "create [FILE|-]", Short: "Back the database up into a file, while the server runs or not", Args: cobra.MaximumNArgs(1),
		Long: "Writes one file that holds the database as it is at one moment, checked and with a\n" +
			"digest of each part. The server goes on working meanwhile. FILE must not exist; none\n" +
			"is stint-TIME.zip in this directory, and - writes the backup to stdout.",
		Example: "stint backup create\nstint backup create /mnt/safe/stint.zip --json | jq -r .sha256",
		RunE: func(cmd *cobra.Command, args []string) error {
			file := c.now().UTC().Format("stint-20060102T150405Z") + ".zip"
			if len(args) > 0 {
				file = args[0]
			}
			return c.createBackup(cmd.Context(), file)
		},
	}
}

// backupDocument is what is said about a backup.
type backupDocument struct {
	File   string   `json:"file"`
	Bytes  int64    `json:"bytes"`
	SHA256 string   `json:"sha256"`
	At     api.Time `json:"at"` // whatever was acknowledged before is in it
	Schema int64    `json:"schema"`
	Stint  string   `json:"stint"` // the version that made it
}

func documentOf(file string, b db.Backup) backupDocument {
	return backupDocument{File: file, Bytes: b.Bytes, SHA256: b.SHA256, At: api.Time{Time: b.At}, Schema: b.Schema, Stint: b.Stint}
}

func (c *cli) createBackup(ctx context.Context, file string) error {
	what := "cannot back up"
	d, err := c.dataDir()
	if err != nil {
		return err
	}
	o := db.BackupOptions{File: file, Version: builtFrom().Version, Clock: c.now}
	if file == "-" {
		if c.tty || c.flags.json || c.flags.quiet {
			return usage(what, "the backup itself goes to stdout: send that to a file or a program, without --json or -q", "stint backup create - | ssh host 'cat > stint.zip'")
		}
		o.File, o.Out = "", c.out
	}
	made, err := db.BackupFile(ctx, d.database(), o)
	if err != nil {
		return backupProblem(what+" the data directory "+string(d), d, file, err)
	}
	if file == "-" {
		c.hint("Backed up: %d bytes, SHA-256 %s.", made.Bytes, made.SHA256)
		return nil
	}
	return c.showBackup(file, made)
}

func (c *cli) showBackup(file string, b db.Backup) error {
	doc := documentOf(file, b)
	return c.show(doc, file, func() error {
		return c.say("%s\n  %d bytes, of %s, schema %d, made by stint %s\n  SHA-256 %s", plain(file), b.Bytes, doc.At, b.Schema, plain(b.Stint), b.SHA256)
	})
}

// backupProblem says why a backup can't be made or isn't good.
func backupProblem(what string, d dataDir, file string, err error) error {
	p := &problem{code: exitFailed, what: what, why: api.Plain(err)}
	switch {
	case errors.Is(err, context.Canceled):
		return quietly(exitInterrupted)
	case errors.Is(err, db.ErrBackup), errors.Is(err, db.ErrFull):
	case errors.Is(err, db.ErrNewer):
		p.next = "install the program that wrote it, or a newer one"
	case errors.Is(err, db.ErrUnpaired):
		return d.cannotOpen(err)
	case errors.Is(err, fs.ErrExist):
		p.code, p.why, p.next = exitConflict, file+" exists already", "name a file that doesn't, or move that one away"
	case errors.Is(err, fs.ErrNotExist):
		p.code, p.why = exitNotFound, filepath.Dir(file)+": "+reason(err)
		if _, gone := os.Stat(d.database()); gone != nil {
			p.why, p.next = "there is no database in it", "stint backup create --data-dir DIR, on the machine of the server"
		}
	case errors.Is(err, fs.ErrPermission):
		p.code, p.why = exitNotAllowed, reason(err)
	}
	return p
}

func (c *cli) backupVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE", Short: "Check that a backup is whole and can be restored", Args: cobra.ExactArgs(1),
		Long: "Reads the whole backup: the digest of each part and of the file, whether the\n" +
			"database in it is sound, and whether this program can use it. It needs room for the\n" +
			"database in the directory for temporary files (TMPDIR). The exit code is 1 when\n" +
			"something is wrong, and it says what.",
		Example: "stint backup verify stint.zip",
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "cannot use the backup " + args[0]
			good, err := db.VerifyBackup(cmd.Context(), args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return &problem{code: exitNotFound, what: what, why: reason(err)}
			}
			if err != nil {
				return backupProblem(what, "", args[0], err)
			}
			if err := c.showBackup(args[0], good); err != nil {
				return err
			}
			c.hint("It is whole and can be restored.")
			return nil
		},
	}
}

type restoreFlags struct{ replace, force bool }

func (c *cli) restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup into a data directory that no server uses", Args: cobra.ExactArgs(1),
		Long: "Checks a backup, brings its database up to date and puts it into the data directory,\n" +
			"on which no server may run. What ran when the backup was made is claimable again or\n" +
			"failed, as after a lost worker; every worker has to be started again. With --replace\n" +
			"the files of a database that is there are kept beside it.",
		Example: "stint restore stint.zip\nstint restore stint.zip --replace\nstint restore stint.zip --data-dir /srv/stint",
		RunE:    func(cmd *cobra.Command, args []string) error { return c.restore(cmd.Context(), args[0], f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.replace, "replace", false, "take the place of a database that is there, which is kept\naside")
	cmd.Flags().BoolVar(&f.force, "force", false, "use a data directory on a network file system")
	return cmd
}

// restoredDocument is what a restore says.
type restoredDocument struct {
	Backup   backupDocument `json:"backup"`
	DataDir  string         `json:"dataDir"`
	Sessions int            `json:"sessions"` // that ran, and no longer do
	Tasks    int            `json:"tasks"`    // whose lease ended
	Workers  int            `json:"workers"`  // that must be started again
	Aside    string         `json:"aside,omitzero"`
}

func (c *cli) restore(ctx context.Context, file string, f restoreFlags) (err error) {
	what := "cannot restore " + file
	if _, err := os.Stat(file); err != nil {
		return &problem{code: exitNotFound, what: what, why: reason(err)}
	}
	d, err := c.dataDir()
	if err != nil {
		return err
	}
	times, err := c.clocks()
	if err != nil {
		return err
	}
	if err := d.prepare(f.force); err != nil {
		return err
	}
	lock, err := lockDir(d)
	if err != nil {
		err = taken(d, err)
		var p *problem
		if errors.As(err, &p) && p.code == exitConflict {
			p.what, p.next = what+" while a server uses the data directory "+string(d), "stop that one first"
		}
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	there, err := db.SettleRestore(ctx, d.database())
	if err != nil {
		return &problem{code: exitFailed, what: what, why: api.Plain(err)}
	}
	if there && !f.replace {
		return &problem{
			code: exitConflict, what: what, why: "there is a database in the data directory " + string(d),
			next: "stint restore FILE --replace, which keeps its files aside, or --data-dir DIR",
		}
	}
	doc, err := c.restoreInto(ctx, d, file, times.engine)
	if err != nil {
		return backupProblem(what, d, file, err)
	}
	return c.showRestored(doc)
}

// restoreInto does the restore; until its last step the data directory is as it was.
func (c *cli) restoreInto(ctx context.Context, d dataDir, file string, cfg engine.Config) (doc restoredDocument, err error) {
	r, err := db.BeginRestore(ctx, d.database(), file)
	if err != nil {
		return doc, err
	}
	void, err := c.voidAll(ctx, r, cfg)
	if err != nil {
		return doc, errors.Join(err, r.Abandon())
	}
	aside, err := r.Finish(ctx, c.now())
	if err != nil {
		return doc, errors.Join(err, r.Abandon())
	}
	return restoredDocument{
		Backup: documentOf(file, r.Backup), DataDir: string(d), Sessions: void.Sessions, Tasks: void.Tasks, Workers: void.Workers, Aside: aside,
	}, nil
}

// voidAll opens the restored database, which migrates it, and ends what was under way in it.
func (c *cli) voidAll(ctx context.Context, r *db.Restore, cfg engine.Config) (void engine.Voided, err error) {
	log, err := c.newLog(slog.LevelError)
	if err != nil {
		return void, err
	}
	store, err := c.openStore(ctx, db.Options{Path: r.Database(), Clock: c.now, Log: log})
	if err != nil {
		return void, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	cfg.Log = log
	return engine.New(store, cfg).Restored(ctx, r.At)
}

func (c *cli) showRestored(doc restoredDocument) error {
	return c.show(doc, doc.DataDir, func() error {
		c.hint("Restored the backup of %s into %s.", doc.Backup.At, doc.DataDir)
		if doc.Aside != "" {
			c.hint("The database that was there is kept in %s.", doc.Aside)
		}
		if doc.Sessions > 0 {
			c.hint("%s.", numberOf(doc.Sessions, "session that ran then has lost its worker", "sessions that ran then have lost their workers"))
		}
		if doc.Workers > 0 {
			c.hint("Every worker has to be started again.") // their number is that of records, one for each agent
		}
		c.hint("Keys, sign-ins and members that were removed since are valid again: remove those again.")
		start := "stint up"
		if c.flags.dataDir != "" {
			start += " --data-dir " + shellquote.Join(c.flags.dataDir)
		}
		c.hint("Go on with: %s", start)
		return nil
	})
}

func numberOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
