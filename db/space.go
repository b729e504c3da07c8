package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A file that was made with auto_vacuum = incremental can give pages that nothing is in any more
// back to the disk, a few at a time. SQLite knows that setting only from a file's beginning on;
// an older file has to be written anew once.

const incremental = 2 // of PRAGMA auto_vacuum

// roomFor is how many bytes the disk must have free for each of a file that is written anew: once
// for the copy and once for the log that takes it back.
const roomFor = 2

// allowShrinking writes the file anew unless it can already give pages back. A file that can't
// be, as on a full disk, is used as it is; the next start tries again.
func (m migration) allowShrinking(ctx context.Context) error {
	var mode, pages, size int64
	if err := pragmas(ctx, m.pool, map[string]*int64{"auto_vacuum": &mode, "page_count": &pages, "page_size": &size}); err != nil {
		return err
	}
	if mode == incremental {
		return nil
	}
	free, err := FreeBytes(filepath.Dir(m.path))
	if bytes := pages * size; err == nil && free < roomFor*bytes {
		m.options.Log.Info("the file can't give space back to the disk until there is room to write it anew once", "bytes", bytes, "free", free)
		return nil
	}
	if err == nil {
		err = m.writeAnew(ctx)
	} else {
		err = fmt.Errorf("ask the disk for its free space: %w", os.NewSyscallError("statfs", err))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		m.options.Log.Warn("the file can't give space back to the disk yet: it could not be written anew", "error", err)
	}
	return nil
}

// writeAnew is a transaction: a kill leaves the file as it was.
func (m migration) writeAnew(ctx context.Context) (err error) {
	// In memory, as settings says, the copy would take as much of it as the file has bytes.
	if _, err := m.pool.ExecContext(ctx, "PRAGMA temp_store = 1"); err != nil {
		return err
	}
	defer func() {
		_, back := m.pool.ExecContext(context.WithoutCancel(ctx), "PRAGMA temp_store = 2")
		err = errors.Join(err, back)
	}()
	for _, query := range []string{fmt.Sprintf("PRAGMA auto_vacuum = %d", incremental), "VACUUM"} {
		if _, err := m.pool.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	_, err = moveLog(ctx, m.pool, "TRUNCATE")
	return err
}

// FreeBytes is what a user who isn't root may still write to the disk that a path is on.
func FreeBytes(path string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // the types differ between systems
}

// pragmas reads numbers that SQLite says of the file.
func pragmas(ctx context.Context, conn rowQuerier, of map[string]*int64) error {
	for pragma, to := range of {
		if err := conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(to); err != nil {
			return fmt.Errorf("read the file's %s: %w", pragma, err)
		}
	}
	return nil
}

// What GiveBack leaves: writes soon need some free pages again, and each given back is moved.
const (
	spareShare = 20      // one of so many pages may stay free
	sparePages = 4 << 10 // so many may in any case, 16 MiB
	givePages  = 256     // given back in one transaction, so that no write waits long
)

// GiveBack gives free pages of the file back to the disk, in steps that other writes come
// between, until only some spare ones are left. It returns how many pages it gave.
func (s *Store) GiveBack(ctx context.Context) (given int64, err error) {
	for {
		var n int64
		err := s.Write(ctx, func(tx *Tx) (err error) {
			n, err = tx.giveBack(ctx)
			return err
		})
		if given += n; err != nil || n == 0 {
			return given, err
		}
	}
}

func (tx *Tx) giveBack(ctx context.Context) (given int64, err error) {
	var mode, pages, free, left int64
	if err := pragmas(ctx, tx.w.conn, map[string]*int64{"auto_vacuum": &mode, "page_count": &pages, "freelist_count": &free}); err != nil {
		return 0, err
	}
	n := min(givePages, free-max(sparePages, pages/spareShare))
	if mode != incremental || n <= 0 {
		return 0, nil
	}
	tx.w.guard.dirty = true
	if _, err := tx.w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", n)); err != nil {
		return 0, fmt.Errorf("give pages back: %w", err)
	}
	if err := pragmas(ctx, tx.w.conn, map[string]*int64{"freelist_count": &left}); err != nil {
		return 0, err
	}
	return free - left, nil
}
