package db

import (
	"archive/zip"
	"compress/flate"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// A backup is a zip file of manifest.json and the database, whose comment is the SHA-256 of all
// that stands before it. So every byte of it is covered: the entries by the manifest, which
// names them when one is altered, and the rest by the comment.

// BackupFormat is the number of the format that this program writes, and the newest it reads.
const BackupFormat = 1

const (
	manifestEntry = "manifest.json"
	databaseEntry = "stint.db"
	sealPrefix    = "sha256:"
	sealLength    = len(sealPrefix) + 2*sha256.Size
)

// Manifest says what a backup holds.
type Manifest struct {
	Format  int       `json:"format"`
	Stint   string    `json:"stint"`  // the version of the program that wrote it
	Schema  int64     `json:"schema"` // the newest migration in the database
	At      time.Time `json:"at"`     // whatever was acknowledged before is in it
	Entries []Entry   `json:"entries"`
}

// Entry is one file in a backup besides the manifest.
type Entry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // in hex
}

// Backup is a backup as it was written, or as it was found good.
type Backup struct {
	Manifest
	Bytes  int64  // of the whole file
	SHA256 string // of the whole file, in hex, as sha256sum prints it
}

// BackupOptions say where a backup goes.
type BackupOptions struct {
	File    string    // where it goes, in a directory that exists; must not exist itself
	Out     io.Writer // … or this, when File is ""
	Version string    // of the program
	Clock   func() time.Time
}

// Backup writes a backup of the database as it is now, while writers and readers go on. The
// file is readable by its owner alone and has its name only once it is whole, checked and on
// the disk; when anything fails, nothing is left. Errors: [fs.ErrExist] for a file that is
// there already; [ErrFull] and others of the disk.
func (s *Store) Backup(ctx context.Context, o BackupOptions) (out Backup, err error) {
	if s.startRead() == nil {
		return out, ErrClosed
	}
	defer s.reads.Done()
	return backUp(ctx, o, func(into string) error { return copyFrom(ctx, s.path, s.options, into) })
}

// BackupFile is [Store.Backup] for the database at path, whether or not another process has it
// open. It leaves an empty log at most in the database's directory, and needs no right to write
// there: where that is missing, the copy is made from a copy of the files. Errors: as there;
// [fs.ErrNotExist] when there is no database, [ErrUnpaired].
func BackupFile(ctx context.Context, path string, o BackupOptions) (out Backup, err error) {
	if path, err = Resolve(path); err != nil {
		return out, fmt.Errorf("find the database: %w", err)
	}
	if exists(path + restoredSuffix) { // a restore was cut short
		unlock, err := lockFile(ctx, path+lockSuffix)
		if err == nil {
			err = errors.Join(finishRestore(path, nil), unlock())
		}
		if err != nil {
			return out, err
		}
	}
	if _, err := os.Stat(path); err != nil {
		return out, fmt.Errorf("look at the database: %w", err)
	}
	if err := checkPair(path); err != nil {
		return out, err
	}
	return backUp(ctx, o, func(into string) error {
		err := copyFrom(ctx, path, Options{}, into)
		if err == nil || writableDir(filepath.Dir(path)) {
			return err
		}
		aside := filepath.Join(filepath.Dir(into), "read-only.db")
		if err := copyFiles(path, aside); err != nil {
			return err
		}
		return copyFrom(ctx, aside, Options{}, into)
	})
}

// copyFrom copies the database at path into the empty file into, on a connection of its own.
func copyFrom(ctx context.Context, path string, o Options, into string) (err error) {
	pool, err := openRole(path, copying, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	return fill(ctx, pool, into)
}

// writableDir reports whether SQLite can make the index of a log there.
func writableDir(dir string) bool {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return false
	}
	return errors.Join(f.Close(), os.Remove(f.Name())) == nil
}

// copyFiles copies a database and its log that nothing writes to; it fails when something does.
func copyFiles(path, to string) error {
	for _, suffix := range []string{"", "-wal"} {
		before, err := os.Stat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue
		}
		if err != nil {
			return err
		}
		if err := duplicate(path+suffix, to+suffix); err != nil {
			return err
		}
		after, err := os.Stat(path + suffix)
		if err != nil {
			return err
		}
		if before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
			return errors.New("the database changed while it was copied from a directory that can't be written to")
		}
	}
	return nil
}

func duplicate(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// backUp makes a backup of what fill copies into an empty file.
func backUp(ctx context.Context, o BackupOptions, fill func(into string) error) (out Backup, err error) {
	home := os.TempDir()
	if o.File != "" {
		if exists(o.File) {
			return out, fmt.Errorf("write the backup: %w", fs.ErrExist)
		}
		home = filepath.Dir(o.File)
	}
	work, err := newWorkDir(home)
	if err != nil {
		return out, ofDisk(fmt.Errorf("write the backup: %w", err))
	}
	defer func() { err = ofDisk(errors.Join(err, work.remove())) }()
	out.At = o.Clock().UTC().Truncate(time.Microsecond)
	copied := work.file(databaseEntry)
	if err := os.WriteFile(copied, nil, 0o600); err != nil {
		return out, err
	}
	if err := fill(copied); err != nil {
		return out, fmt.Errorf("copy the database: %w", err)
	}
	if err := describe(ctx, &out.Manifest, copied, o.Version); err != nil {
		return out, err
	}
	if o.File == "" {
		return out, seal(&out, copied, o.Out)
	}
	if err := sealFile(&out, copied, work.file("backup")); err != nil {
		return out, fmt.Errorf("write the backup: %w", err)
	}
	if err := os.Rename(work.file("backup"), o.File); err != nil {
		return out, fmt.Errorf("write the backup: %w", err)
	}
	return out, syncDir(home)
}

// describe fills in a manifest but for its time.
func describe(ctx context.Context, m *Manifest, database, version string) (err error) {
	pool, err := sql.Open("sqlite", dsn(database, reading, ""))
	if err != nil {
		return err
	}
	m.Schema, err = migration{pool: pool}.version(ctx)
	if err := errors.Join(err, pool.Close()); err != nil {
		return err
	}
	m.Format, m.Stint = BackupFormat, version
	f, err := os.Open(database)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	m.Entries = []Entry{{Name: databaseEntry, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}}
	return errors.Join(err, f.Close())
}

func sealFile(b *Backup, database, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = seal(b, database, f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// seal writes the zip file and its comment, and notes how long it is and its digest.
func seal(b *Backup, database string, to io.Writer) error {
	whole, before := &summed{to: to, sum: sha256.New()}, &unsealed{sum: sha256.New()}
	before.to = whole
	z := zip.NewWriter(before)
	z.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestSpeed) })
	// Written at the very end, so that what comes out last is the place for the digest.
	if err := z.SetComment(strings.Repeat("-", sealLength)); err != nil {
		return err
	}
	text, err := json.Marshal(b.Manifest)
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	w, err := z.CreateHeader(&zip.FileHeader{Name: manifestEntry, Method: zip.Store, Modified: b.At})
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	if err == nil {
		w, err = z.CreateHeader(&zip.FileHeader{Name: databaseEntry, Method: zip.Deflate, Modified: b.At})
	}
	if err != nil {
		return err
	}
	f, err := os.Open(database)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if _, err := io.WriteString(whole, sealPrefix+hex.EncodeToString(before.sum.Sum(nil))); err != nil {
		return err
	}
	b.Bytes, b.SHA256 = whole.n, hex.EncodeToString(whole.sum.Sum(nil))
	return nil
}

// summed passes on what is written, counts it and adds it to a digest.
type summed struct {
	to  io.Writer
	sum hash.Hash
	n   int64
}

func (s *summed) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.sum.Write(p[:n])
	s.n += int64(n)
	return n, err
}

// unsealed passes on all that is written but the last bytes, as many as a seal has, and sums
// what it passes on.
type unsealed struct {
	to   io.Writer
	sum  hash.Hash
	last []byte
}

func (u *unsealed) Write(p []byte) (int, error) {
	u.last = append(u.last, p...)
	if over := len(u.last) - sealLength; over > 0 {
		u.sum.Write(u.last[:over])
		if _, err := u.to.Write(u.last[:over]); err != nil {
			return 0, err
		}
		u.last = append(u.last[:0], u.last[over:]...)
	}
	return len(p), nil
}
