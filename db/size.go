package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Size is how many bytes the database takes on the disk, including its log, minus the free
// space in it for new rows.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	err = s.ReadTimer(ctx, func(tx *ReadTx) error {
		var pages, free, page int64
		for pragma, to := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &page} {
			if err := tx.number(ctx, "SELECT * FROM pragma_"+pragma, to); err != nil {
				return fmt.Errorf("read how large the database is: %w", err)
			}
		}
		bytes = (pages - free) * page
		return nil
	})
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(s.path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return bytes, nil
	}
	if err != nil {
		return 0, err
	}
	return bytes + info.Size(), nil
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
