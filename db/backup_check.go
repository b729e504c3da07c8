package db

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/go-json-experiment/json"
)

// ErrBackup says that a file is not a whole backup, and what is wrong with it.
var ErrBackup = errors.New("this is no whole backup")

// maxManifest bounds what is read before anything is known about a file.
const maxManifest = 64 << 10

// VerifyBackup reads a whole backup: every entry's length and digest, the digest of the file,
// whether the database in it is sound (integrity_check, foreign_key_check), and whether this
// program knows its schema. It extracts the database into the directory for temporary files.
// Errors: [ErrBackup] saying what is wrong, [ErrNewer], [fs.ErrNotExist].
func VerifyBackup(ctx context.Context, file string) (out Backup, err error) {
	work, err := newWorkDir(os.TempDir())
	if err != nil {
		return out, ofDisk(err)
	}
	defer func() { err = ofDisk(errors.Join(err, work.remove())) }()
	return extract(ctx, file, work.file(databaseEntry))
}

// extract checks a backup and leaves the database in it at to.
func extract(ctx context.Context, file, to string) (out Backup, err error) {
	f, err := os.Open(file)
	if err != nil {
		return out, fmt.Errorf("read the backup: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return out, fmt.Errorf("read the backup: %w", err)
	}
	if !info.Mode().IsRegular() {
		return out, fmt.Errorf("%w: it is no regular file", ErrBackup)
	}
	out.Bytes = info.Size()
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return out, fmt.Errorf("%w: its end is missing, or it is a file of another kind (%w)", ErrBackup, err)
	}
	if out.Manifest, err = readManifest(z); err != nil {
		return out, err
	}
	for i, e := range out.Entries {
		if err := extractEntry(z.File[i+1], e, to); err != nil {
			return out, err
		}
	}
	if err := checkSeal(f, &out); err != nil {
		return out, err
	}
	return out, checkContent(ctx, &out.Manifest, to)
}

// readManifest reads what the file says about itself, and checks that nothing else is in it.
func readManifest(z *zip.Reader) (m Manifest, err error) {
	if len(z.File) == 0 || z.File[0].Name != manifestEntry {
		return m, fmt.Errorf("%w: it has no %s", ErrBackup, manifestEntry)
	}
	r, err := z.File[0].Open()
	if err != nil {
		return m, altered(manifestEntry, err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err := errors.Join(err, r.Close()); err != nil {
		return m, altered(manifestEntry, err)
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return m, altered(manifestEntry, err)
	}
	if head.Format > BackupFormat {
		return m, fmt.Errorf("%w: the backup has format %d, this program knows %d", ErrNewer, head.Format, BackupFormat)
	}
	if err := json.Unmarshal(text, &m, json.RejectUnknownMembers(true)); err != nil {
		return m, altered(manifestEntry, err)
	}
	if m.Format != BackupFormat || len(m.Entries) != 1 || m.Entries[0].Name != databaseEntry {
		return m, fmt.Errorf("%w: %s describes another kind of file", ErrBackup, manifestEntry)
	}
	if len(z.File) != 2 || z.File[1].Name != databaseEntry {
		return m, fmt.Errorf("%w: it doesn't hold the files that %s lists", ErrBackup, manifestEntry)
	}
	return m, nil
}

func altered(entry string, err error) error {
	return fmt.Errorf("%w: %s is damaged or was altered (%w)", ErrBackup, entry, err)
}

// extractEntry writes an entry to a new file. It takes no byte more than the manifest says.
func extractEntry(from *zip.File, e Entry, to string) error {
	r, err := from.Open()
	if err != nil {
		return altered(e.Name, err)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(r, e.Bytes+1))
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case isWrite(err):
	case err != nil:
		err = altered(e.Name, err)
	case n != e.Bytes:
		err = altered(e.Name, fmt.Errorf("it has another length than %d bytes", e.Bytes))
	case got != e.SHA256:
		err = altered(e.Name, fmt.Errorf("its SHA-256 is %s, not %s", got, e.SHA256))
	}
	if err == nil {
		err = out.Sync()
	}
	_ = r.Close() // all of it was read and compared, or it failed already
	return errors.Join(err, out.Close())
}

// isWrite reports whether a copy failed at the file that is written, not at what is read.
func isWrite(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p) && p.Op == "write"
}

// checkSeal compares the file with the digest at its end, and notes that of the whole.
func checkSeal(f *os.File, b *Backup) error {
	before, whole := sha256.New(), sha256.New()
	if _, err := io.Copy(io.MultiWriter(before, whole), io.NewSectionReader(f, 0, max(0, b.Bytes-int64(sealLength)))); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	last := make([]byte, sealLength)
	if n, err := f.ReadAt(last, max(0, b.Bytes-int64(sealLength))); n < sealLength {
		return fmt.Errorf("read the backup: %w", err)
	}
	whole.Write(last)
	if string(last) != sealPrefix+hex.EncodeToString(before.Sum(nil)) {
		return fmt.Errorf("%w: it was altered: what is in it reads as it should, but the SHA-256 at its end is another", ErrBackup)
	}
	b.SHA256 = hex.EncodeToString(whole.Sum(nil))
	return nil
}

// checkContent reads the whole database of a backup.
func checkContent(ctx context.Context, m *Manifest, database string) (err error) {
	if err := checkCopy(ctx, database); err != nil {
		return fmt.Errorf("%w: %s is damaged: %w", ErrBackup, databaseEntry, err)
	}
	pool, err := sql.Open("sqlite", dsn(database, reading, ""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var orphans int
	if err := pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM pragma_foreign_key_check").Scan(&orphans); err != nil {
		return fmt.Errorf("%w: %s is damaged: %w", ErrBackup, databaseEntry, err)
	}
	if orphans > 0 {
		return fmt.Errorf("%w: %d rows of %s point to rows that are gone (foreign_key_check)", ErrBackup, orphans, databaseEntry)
	}
	g := migration{pool: pool, options: Options{Migrations: embedded(), Log: slog.New(slog.DiscardHandler)}}
	have, err := g.applied(ctx)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBackup, databaseEntry, err)
	}
	if have.newest() != m.Schema {
		return fmt.Errorf("%w: %s has schema %d, %s says %d", ErrBackup, databaseEntry, have.newest(), manifestEntry, m.Schema)
	}
	provider, _, err := g.provider()
	if err != nil {
		return err
	}
	if _, err := have.lacks(provider); err != nil {
		return fmt.Errorf("%w; use the program that wrote it (%s) or a newer one", err, m.Stint)
	}
	return nil
}
