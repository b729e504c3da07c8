package db

import (
	"context"
	"strings"
	"testing"
)

// TestForgetEvents_IsTheOnlyWayInWhichEventsGo: whatever else deletes or changes an event fails,
// also beside a deletion that is allowed, and leaves everything as it was.
func TestForgetEvents_IsTheOnlyWayInWhichEventsGo(t *testing.T) {
	s := open(t)
	ctx := context.Background()
	write := func(fn func(tx *Tx) error) error { t.Helper(); return s.Write(ctx, fn) }
	must(t, write(func(tx *Tx) error {
		for range 10 {
			if err := tx.Log(Event{Workspace: 1, Actor: "system", Type: "coordinator_outage"}); err != nil {
				return err
			}
		}
		return nil
	}))
	left := func() (n int) {
		t.Helper()
		must(t, queryRow(t, s, &n, `SELECT count(*) FROM events`))
		return n
	}
	drop := func(tx *Tx, where string) func() (int64, error) {
		return func() (int64, error) {
			r, err := tx.w.conn.ExecContext(ctx, `DELETE FROM events WHERE `+where)
			if err != nil {
				return 0, err
			}
			return r.RowsAffected()
		}
	}
	forgotten := func() (n int64) {
		t.Helper()
		must(t, queryRow(t, s, &n, `SELECT value FROM counters WHERE name = 'forgotten'`))
		return n
	}
	var gone int64
	must(t, write(func(tx *Tx) (err error) { gone, err = tx.ForgetEvents(5, drop(tx, "seq IN (1, 3, 5)")); return err }))
	if gone != 3 || left() != 7 {
		t.Fatalf("%d went and %d are left, want 3 and 7", gone, left())
	}
	for name, c := range map[string]struct {
		fn   func(tx *Tx) error
		want string
	}{
		"a deletion":       {func(tx *Tx) error { return tx.exec(`DELETE FROM events WHERE seq = 4`) }, "append-only"},
		"a change":         {func(tx *Tx) error { return tx.exec(`UPDATE events SET actor = 'x' WHERE seq = 4`) }, "append-only"},
		"beyond the door":  {func(tx *Tx) error { _ = tx.OpenEventsDoor(ctx, 6); return tx.exec(`DELETE FROM events WHERE seq = 6`) }, "append-only"},
		"an open door":     {func(tx *Tx) error { return tx.OpenEventsDoor(ctx, 6) }, "FOREIGN KEY"},
		"through it, open": {func(tx *Tx) error { _ = tx.OpenEventsDoor(ctx, 6); return tx.exec(`DELETE FROM events WHERE seq = 4`) }, "FOREIGN KEY"},
		"after the door": {func(tx *Tx) error {
			if _, err := tx.ForgetEvents(4, drop(tx, "seq = 4")); err != nil {
				return err
			}
			return tx.exec(`DELETE FROM events WHERE seq = 2`)
		}, "append-only"},
		"too new":              {func(tx *Tx) error { _, err := tx.ForgetEvents(5, drop(tx, "seq = 6")); return err }, "append-only"},
		"a frame for the door": {func(tx *Tx) error { return tx.exec(`INSERT INTO events_door_frames (below) VALUES (6)`) }, "CHECK"},
	} {
		if err := write(c.fn); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if n := left(); n != 7 {
			t.Errorf("%s: %d events are left, want 7", name, n)
		}
	}
	if n := forgotten(); n != 5 {
		t.Errorf("the log is said to be whole after number %d, not 5", n)
	}
	must(t, write(func(tx *Tx) (err error) { gone, err = tx.ForgetEvents(3, drop(tx, "seq = 3")); return err }))
	if n := forgotten(); gone != 0 || n != 5 {
		t.Errorf("%d went, and the log is whole after number %d", gone, n)
	}
	must(t, write(func(tx *Tx) (err error) { gone, err = tx.ForgetEvents(100, drop(tx, "true")); return err }))
	if gone != 7 || left() != 0 {
		t.Errorf("%d went and %d are left, want 7 and 0", gone, left())
	}
}
