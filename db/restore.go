package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A restore builds the new database in a directory beside the old one (its name ends in
// .restoring). One rename of that directory (to .restored) decides: what comes before leaves
// the old database as it was, and everything after is finished by whoever opens the database
// next, if a kill cuts it short. So there is always the old one or the new one, whole.
const (
	restoringSuffix = ".restoring"
	restoredSuffix  = ".restored"
	asideName       = "aside" // in the directory: the name under which the old files are kept
)

// Restore is a database being restored. The caller holds the right to run on its directory.
type Restore struct {
	Backup
	path string // of the database that is to be
	at   steps
}

// steps is told of each step of a restore's end before it is taken. Tests die there.
type steps func(step string)

func (s steps) next(step string) {
	if s != nil {
		s(step)
	}
}

// BeginRestore checks a backup as [VerifyBackup] does and extracts it beside the database at
// path, which it leaves alone. Errors: as there.
func BeginRestore(ctx context.Context, path, file string) (*Restore, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	r := &Restore{path: path}
	if err := errors.Join(DropRestore(path), os.Mkdir(r.dir(), 0o700)); err != nil {
		return nil, ofDisk(err)
	}
	if r.Backup, err = extract(ctx, file, r.Database()); err != nil {
		return nil, ofDisk(errors.Join(err, r.Abandon()))
	}
	return r, nil
}

func (r *Restore) dir() string { return r.path + restoringSuffix }

// Database is the path of the extracted database, for [Open]: it can be migrated and changed
// before it takes its place.
func (r *Restore) Database() string { return filepath.Join(r.dir(), databaseEntry) }

// Abandon removes what was extracted.
func (r *Restore) Abandon() error { return DropRestore(r.path) }

// DropRestore removes what a restore that was killed before it was decided left beside the
// database at path. Only who holds the right to run there may call it.
func DropRestore(path string) error {
	path, err := Resolve(path)
	if err != nil {
		return err
	}
	return os.RemoveAll(path + restoringSuffix)
}

// SettleRestore finishes or drops a restore that a kill cut short, and reports whether there is
// a database at path, or a part of one. Only who holds the right to run there may call it.
func SettleRestore(ctx context.Context, path string) (there bool, err error) {
	if path, err = Resolve(path); err != nil {
		return false, fmt.Errorf("find the database: %w", err)
	}
	unlock, err := lockFile(ctx, path+lockSuffix)
	if err != nil {
		return false, err
	}
	err = errors.Join(DropRestore(path), finishRestore(path, nil), unlock())
	return hasFiles(path), err
}

// hasFiles reports whether there is anything of a database at path.
func hasFiles(path string) bool {
	return exists(path) || exists(path+"-wal") || exists(path+"-journal")
}

// Finish puts the database in its place; it is closed by now. The files of the old one, if any,
// are kept beside it in a directory whose name says when; aside is its path, "" for none.
func (r *Restore) Finish(ctx context.Context, now time.Time) (aside string, err error) {
	unlock, err := lockFile(ctx, r.path+lockSuffix)
	if err != nil {
		return "", err
	}
	defer func() { err = ofDisk(errors.Join(err, unlock())) }()
	if hasFiles(r.path) {
		aside = freeName(r.path + ".before-restore-" + now.UTC().Format("20060102T150405Z"))
	}
	r.at.next("clean up")
	if err := r.decide(filepath.Base(aside)); err != nil {
		return "", err
	}
	return aside, finishRestore(r.path, r.at)
}

// freeName is a name that nothing has yet.
func freeName(name string) string {
	out := name
	for n := 2; exists(out); n++ {
		out = fmt.Sprintf("%s-%d", name, n)
	}
	return out
}

// decide leaves only the database in the directory, makes it durable and renames it.
func (r *Restore) decide(aside string) error {
	entries, err := os.ReadDir(r.dir())
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case databaseEntry:
		case databaseEntry + "-wal":
			return errors.New("the restored database has a log left: it was not closed")
		default:
			if err := os.RemoveAll(filepath.Join(r.dir(), e.Name())); err != nil {
				return err
			}
		}
	}
	f, err := os.OpenFile(r.Database(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = writeSynced(filepath.Join(r.dir(), asideName), aside)
	}
	if err == nil {
		err = syncDir(r.dir())
	}
	if err == nil {
		r.at.next("decide")
		err = os.Rename(r.dir(), r.path+restoredSuffix)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(r.path))
}

func writeSynced(path, text string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// finishRestore does what is left of a restore that was decided; without one it does nothing.
// Each step can be repeated. The lock of the database's opening is held.
func finishRestore(path string, at steps) error {
	dir := path + restoredSuffix
	restored := filepath.Join(dir, databaseEntry)
	if !exists(dir) {
		return nil
	}
	if exists(restored) {
		if err := setAside(path, dir, at); err != nil {
			return fmt.Errorf("finish the restore: keep the old files: %w", err)
		}
		at.next("put in place")
		if err := os.Rename(restored, path); err != nil {
			return fmt.Errorf("finish the restore: %w", err)
		}
		if err := syncDir(filepath.Dir(path)); err != nil {
			return fmt.Errorf("finish the restore: %w", err)
		}
	}
	at.next("remove the directory")
	return errors.Join(os.RemoveAll(dir), syncDir(filepath.Dir(path)))
}

// setAside moves the old database and all that belongs to it out of the way. The note on its
// last use goes too; its file stays, because it is the lock.
func setAside(path, dir string, at steps) error {
	name, err := os.ReadFile(filepath.Join(dir, asideName))
	if err != nil || len(name) == 0 || string(name) == "." {
		return errors.Join(err, forgetNote(path))
	}
	at.next("make the place for the old files")
	aside := filepath.Join(filepath.Dir(path), filepath.Base(string(name)))
	if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	at.next("keep the note")
	base := filepath.Join(aside, filepath.Base(path))
	if note, err := os.ReadFile(path + lockSuffix); err == nil && len(note) > 0 {
		if err := os.WriteFile(base+lockSuffix, note, 0o600); err != nil {
			return err
		}
	}
	at.next("forget the note")
	if err := forgetNote(path); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		at.next("keep the old " + suffix)
		err := os.Rename(path+suffix, base+suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(syncDir(aside), syncDir(filepath.Dir(path)))
}

// forgetNote has the database taken as it is at its next start.
func forgetNote(path string) error {
	err := os.Truncate(path+lockSuffix, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
