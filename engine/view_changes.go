package engine

import (
	"context"
	"fmt"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// ChangesView are a session's changes without their files.
type ChangesView struct {
	api.Changes
	Snapshot string // names the files: another one has others
}

// changes reads what a session changed; nil when nothing was recorded.
func (r *viewReader) changes(ctx context.Context, s *sessionRow) (*ChangesView, error) {
	row, err := r.q.Changes(ctx, s.ID)
	if db.None(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the changes of session %s: %w", s.ID, err)
	}
	shown, err := changesFrom(ctx, r.q, r.c, s, row)
	return &ChangesView{shown, row.Snapshot}, err
}

// unlanded counts the ended sessions that the caller may see and whose changes wait, so far.
func (r *viewReader) unlanded(ctx context.Context, most int64) (int64, error) {
	n, err := r.q.CountUnlanded(ctx, queries.CountUnlandedParams{WorkspaceID: r.c.WorkspaceID, Me: r.c.UserID, Most: most})
	if err != nil {
		return 0, fmt.Errorf("count the changes that wait: %w", err)
	}
	return n, nil
}

// waits reports whether a session has ended and its changes wait for somebody.
func (r *viewReader) waits(ctx context.Context, s *sessionRow) (bool, error) {
	if !s.Status.Terminal() {
		return false, nil
	}
	waiting, err := r.q.ChangesWait(ctx, s.ID)
	if err != nil && !db.None(err) {
		return false, fmt.Errorf("see whether the changes of session %s wait: %w", s.ID, err)
	}
	return waiting == 1, nil
}
