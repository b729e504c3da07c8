package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// FileSizes are how many bytes the database's files take on the disk.
type FileSizes struct {
	Database int64 // of the file
	Free     int64 // of them free for new rows
	Log      int64 // of the write-ahead log
}

// FileSizes reads them.
func (s *Store) FileSizes(ctx context.Context) (out FileSizes, err error) {
	err = s.ReadTimer(ctx, func(tx *ReadTx) error {
		var pages, free, page int64
		for pragma, to := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &page} {
			if err := tx.number(ctx, "SELECT * FROM pragma_"+pragma, to); err != nil {
				return fmt.Errorf("read how large the database is: %w", err)
			}
		}
		out.Database, out.Free = pages*page, free*page
		return nil
	})
	if err != nil {
		return out, err
	}
	info, err := os.Stat(s.path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Log = info.Size()
	return out, nil
}

// Size is how many bytes the database takes on the disk, including its log, minus the free
// space in it for new rows.
func (s *Store) Size(ctx context.Context) (int64, error) {
	all, err := s.FileSizes(ctx)
	return all.Database - all.Free + all.Log, err
}

// number reads one number.
func (tx *ReadTx) number(ctx context.Context, query string, to *int64) error {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(to); err != nil {
			return err
		}
	}
	return rows.Err()
}
