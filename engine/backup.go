package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// Backups say when and where the coordinator backs itself up.
type Backups struct {
	Every   time.Duration // 0 = it doesn't
	Keep    int64         // how many of its backups stay
	Dir     string        // made if it is missing, for its owner alone
	Version string        // of the program, for whoever looks at a backup
}

// backupRetry is the pause after a backup that failed, unless the next is due sooner.
const backupRetry = 10 * time.Minute

// backupName is what the coordinator calls its backups; it removes no other file.
var backupName = regexp.MustCompile(`^stint-\d{8}T\d{6}Z\.zip$`)

// BackUp makes the scheduled backup when one is due at now, removes those over the number to
// keep, and notes how it went with an event. It returns when the next is due. One that fails
// leaves no file and is tried again later.
func (e *Engine) BackUp(ctx context.Context, now time.Time) (time.Time, error) {
	have, err := e.backups(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if due := e.backupDue(&have, now); due.After(now) {
		return due, nil
	}
	made, name, failed := e.makeBackup(ctx, now)
	if err := ctx.Err(); err != nil {
		return time.Time{}, err // it was cut short, it didn't fail
	}
	if failed != nil {
		why := backupTrouble(failed)
		e.log.Error("the backup failed", "because", why)
		e.backupFailed.Store(&queries.Backup{FailedAt: db.Micros(now), Failure: why})
		err := e.write(ctx, func(tx *db.Tx) error { return noteFailure(tx, db.Micros(now), why) })
		if err != nil {
			e.log.Error("that a backup failed can't be noted either", "error", err)
		}
		return now.Add(min(backupRetry, e.cfg.Backups.Every)), nil
	}
	e.backupFailed.Store(nil)
	err = e.write(ctx, func(tx *db.Tx) error {
		return noteBackup(tx, &queries.Backup{GoodAt: db.Micros(now), File: name, Bytes: made.Bytes, Sha256: made.SHA256})
	})
	return now.Add(e.cfg.Backups.Every), errors.Join(err, e.dropBackups(name))
}

// backupDue is when the next backup is to be made. A last one that lies in the future, because
// the clock was set back, counts as made now.
func (e *Engine) backupDue(have *queries.Backup, now time.Time) time.Time {
	if have.GoodAt == 0 && have.FailedAt == 0 {
		return now
	}
	every := e.cfg.Backups.Every
	due := api.At(min(have.GoodAt, db.Micros(now))).Add(every)
	if have.GoodAt == 0 {
		due = now
	}
	if have.FailedAt > have.GoodAt {
		again := api.At(min(have.FailedAt, db.Micros(now))).Add(min(backupRetry, every))
		if again.After(due) {
			due = again
		}
	}
	return due
}

func (e *Engine) makeBackup(ctx context.Context, now time.Time) (made db.Backup, name string, err error) {
	dir := e.cfg.Backups.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return made, "", err
	}
	name = now.UTC().Format("stint-20060102T150405Z") + ".zip"
	made, err = e.store.Backup(ctx, db.BackupOptions{File: filepath.Join(dir, name), Version: e.cfg.Backups.Version, Clock: e.Now})
	return made, name, err
}

// dropBackups removes the oldest of the coordinator's own backups until the number to keep is
// left. Their names sort by time. One that says that it is newer than made, the one just made, is
// from a clock that was ahead: it counts as older than all others.
func (e *Engine) dropBackups(made string) error {
	entries, err := os.ReadDir(e.cfg.Backups.Dir)
	if err != nil {
		return fmt.Errorf("list the backups: %w", plainPath(err))
	}
	var names []string
	for _, f := range entries {
		if f.Type().IsRegular() && backupName.MatchString(f.Name()) {
			names = append(names, f.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if (a > made) != (b > made) {
			a, b = b, a
		}
		return strings.Compare(a, b)
	})
	var errs []error
	for _, name := range names[:max(0, len(names)-int(e.cfg.Backups.Keep))] {
		if err := os.Remove(filepath.Join(e.cfg.Backups.Dir, name)); err != nil {
			errs = append(errs, fmt.Errorf("remove the old backup %s: %w", name, plainPath(err)))
		}
	}
	return errors.Join(errs...)
}

// plainPath is an error of the file system without the path, which is nobody's but this
// machine's.
func plainPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

// backupTrouble says why a backup failed, without the paths of this machine.
func backupTrouble(err error) string {
	switch {
	case errors.Is(err, db.ErrFull):
		return "The disk with the backups is full."
	case errors.Is(err, db.ErrReadOnly):
		return "The folder of the backups can't be written to."
	case errors.Is(err, fs.ErrPermission):
		return "The folder of the backups may not be written to."
	case errors.Is(err, fs.ErrExist):
		return "A file with the name of the new backup is there already."
	case errors.Is(err, fs.ErrNotExist):
		return "The folder of the backups is gone."
	case errors.Is(err, db.ErrDamaged):
		return "The copy was not sound: the database is damaged."
	case errors.Is(err, db.ErrMoved):
		return "The database is not at its path any more."
	}
	return "The disk with the database or that with the backups fails."
}

func noteBackup(tx *db.Tx, b *queries.Backup) error {
	err := db.One(tx.NoteBackup(tx.Context(), queries.NoteBackupParams{GoodAt: b.GoodAt, File: b.File, Bytes: b.Bytes, Sha256: b.Sha256}))
	if err != nil {
		return fmt.Errorf("note the backup: %w", err)
	}
	return logHouse(tx, api.EventBackupMade, api.EventData{"file": b.File, "bytes": b.Bytes, "sha256": b.Sha256})
}

func noteFailure(tx *db.Tx, at int64, why string) error {
	err := db.One(tx.NoteBackupFailure(tx.Context(), queries.NoteBackupFailureParams{FailedAt: at, Failure: why}))
	if err != nil {
		return fmt.Errorf("note that a backup failed: %w", err)
	}
	return logHouse(tx, api.EventBackupFailed, api.EventData{"reason": why})
}

// logHouse appends an event that is about the coordinator itself. It is of the workspace that
// the first start made, where the audit of whoever runs the coordinator shows it.
func logHouse(tx *db.Tx, kind string, data api.EventData) error {
	ws, err := tx.WorkspaceBySlug(tx.Context(), account.DefaultWorkspace)
	if err != nil && !db.None(err) {
		return fmt.Errorf("read the default workspace: %w", err)
	}
	return tx.Log(db.Event{Workspace: ws.ID, Actor: api.ActorSystem, Type: kind, Data: data})
}

// backups reads what became of the scheduled backups. A failure that couldn't be written down,
// as on a full disk, is known all the same.
func (e *Engine) backups(ctx context.Context) (out queries.Backup, err error) {
	err = e.store.ReadTimer(ctx, func(tx *db.ReadTx) error {
		out, err = tx.Backups(ctx)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("read what became of the backups: %w", err)
	}
	if f := e.backupFailed.Load(); f != nil && f.FailedAt > out.FailedAt {
		out.FailedAt, out.Failure = f.FailedAt, f.Failure
	}
	return out, nil
}
