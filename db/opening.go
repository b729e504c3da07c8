package db

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Resolve is the file that path names, whatever links lead there, and whether or not it exists
// yet.
func Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	// A link may name a file that doesn't exist yet.
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			break // not a link, or nothing there
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path, nil //nolint:nilerr // opening it gives a better error
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// open creates the file or brings it up to date, and opens it for writing and reading, while
// other processes that start at the same time wait.
func (s *Store) open(ctx context.Context) (err error) {
	unlock, err := lockFile(ctx, s.path+lockSuffix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := finishRestore(s.path, nil); err != nil {
		return err
	}
	if err := checkPair(s.path); err != nil {
		return err
	}
	if err := createPrivate(s.path); err != nil {
		return err
	}
	if s.openFiles, err = occupy(s.path); err != nil {
		return err
	}
	s.options.openFiles = s.openFiles
	if s.book, err = openNotebook(s.path, s.options); err != nil {
		return errors.Join(err, s.openFiles.leave())
	}
	if err := s.connect(ctx); err != nil {
		return errors.Join(err, s.openFiles.leave(), s.book.file.Close())
	}
	return nil
}

// connect migrates and opens the connections. The migrating one stays until the writer's is
// open, so that the log isn't deleted in between.
func (s *Store) connect(ctx context.Context) (err error) {
	pool, err := openRole(s.path, migrating, s.options)
	if err != nil {
		return err
	}
	pool.SetMaxOpenConns(1)
	m := migration{path: s.path, options: s.options, pool: pool}
	defer func() {
		if err != nil {
			s.endMigration(ctx, m)
		}
		err = errors.Join(err, pool.Close())
	}()
	if err := m.run(ctx); err != nil {
		return err
	}
	if err := m.allowShrinking(ctx); err != nil {
		return err
	}
	w, err := openWriter(ctx, s.path, s.options)
	if err != nil {
		return err
	}
	if err := errors.Join(s.openFiles.settle(), s.sign(w)); err != nil {
		return errors.Join(err, w.close())
	}
	if s.readers, err = openReaders(s.path, s.options); err != nil {
		return errors.Join(err, w.close())
	}
	s.writer.Store(w)
	return nil
}

// endMigration notes that the log holds nothing, if that is so: SQLite deletes it with the
// connection of a start that was refused.
func (s *Store) endMigration(ctx context.Context, m migration) {
	use := lastUseOf(s.path)
	if use.state != stateOpen {
		return
	}
	if all, err := moveLog(ctx, m.pool, "TRUNCATE"); err != nil || !all {
		return
	}
	use.state = stateClean
	if err := s.book.write(use); err != nil {
		s.options.Log.Warn("note the clean end", "error", err)
	}
}

// sign marks the file as this start's and notes that it is in use. A disk that refuses writes
// keeps the mark of the start before.
func (s *Store) sign(w *writer) error {
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("draw a number for this start: %w", err)
	}
	number := binary.NativeEndian.Uint32(random[:]) | 1 // never 0, which is not a sign
	if s.options.Unsafe.Synchronous == "" {
		if err := syncDir(filepath.Dir(s.path)); err != nil { // the log's name
			return err
		}
	}
	use := lastUseOf(s.path).openedAs(number, s.openFiles.header.sign())
	if err := s.book.write(use); err != nil {
		return err
	}
	err := w.classed(w.sign(number))
	if errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) {
		s.options.Log.Warn("the database is open but takes no writes", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write to the file: %w", err)
	}
	if h, err := s.openFiles.readHeader(); err != nil || h.sign() != number {
		return err // another process reads; until it ends both signs are valid
	}
	return s.book.write(lastUse{state: stateOpen, signs: [maxSigns]uint32{number}})
}
