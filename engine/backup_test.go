package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/db"
	"stint/engine"
	"stint/engine/enginetest"
)

func everyHour(dir string) enginetest.Option {
	return enginetest.With(func(c *engine.Config) {
		c.Backups = engine.Backups{Every: time.Hour, Keep: 2, Dir: dir, Version: "1"}
	})
}

// backup lets the coordinator look whether a backup is due, and returns when it says to look
// again.
func backup(t *testing.T, w *enginetest.Fixture) time.Time {
	t.Helper()
	next, err := w.BackUp(t.Context(), w.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func namesIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestBackUp_MakesOneWhenItIsDueAndKeepsTheNewest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	w := enginetest.New(t, everyHour(dir))
	for n := range 4 {
		if next := backup(t, w); !next.Equal(w.Clock.Now().Add(time.Hour)) {
			t.Errorf("backup %d: the next is due at %s", n, next)
		}
		if n == 0 { // of somebody else
			if err := os.WriteFile(filepath.Join(dir, "stint-mine.zip"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.Clock.Step(59 * time.Minute)
		if next := backup(t, w); !next.Equal(w.Clock.Now().Add(time.Minute)) {
			t.Errorf("an hour isn't over, and the next is due at %s", next)
		}
		if n == 2 {
			w.Restart() // it remembers
		}
		w.Clock.Step(time.Minute)
	}
	want := []string{"stint-20260302T110000Z.zip", "stint-20260302T120000Z.zip", "stint-mine.zip"}
	if got := namesIn(t, dir); !slices.Equal(got, want) {
		t.Errorf("kept are %v, not %v", got, want)
	}
	if _, err := db.VerifyBackup(t.Context(), filepath.Join(dir, want[1])); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v (%v)", info.Mode(), err)
	}
	s := must[api.System](t)(w.System(t.Context(), w.Owner))
	if g := s.Backup.LastGood; g == nil || g.File != want[1] || g.AgeSeconds != 3600 || g.Bytes == 0 || len(g.SHA256) != 64 || s.Backup.LastFailure != nil || !s.Backup.NextAt.Equal(w.Clock.Now()) {
		t.Errorf("the system is %+v, the last good one %+v", s.Backup, g)
	}
	list := must[api.List[api.AuditEntry]](t)(w.Audit(t.Context(), w.Owner, api.AuditFilter{Type: api.EventBackupMade}, api.Page{}))
	if len(list.Items) != 4 || list.Items[0].Data["file"] != want[1] {
		t.Errorf("the audit has %+v", list.Items)
	}
}

// Backups of a clock that was ahead for a while don't push out those that are made after it was
// set right.
func TestBackUp_KeepsWhatIsMadeAfterTheClockWasSetBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	w := enginetest.New(t, everyHour(dir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stint-20310101T000000Z.zip", "stint-20310102T000000Z.zip"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range [][]string{
		{"stint-20260302T090000Z.zip", "stint-20310102T000000Z.zip"},
		{"stint-20260302T090000Z.zip", "stint-20260302T100000Z.zip"},
		{"stint-20260302T100000Z.zip", "stint-20260302T110000Z.zip"},
	} {
		backup(t, w)
		if got := namesIn(t, dir); !slices.Equal(got, want) {
			t.Errorf("kept are %v, not %v", got, want)
		}
		w.Clock.Step(time.Hour)
	}
}

func TestBackUp_OneThatFailsIsToldAndTriedAgain(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "file", "backups")
	if err := os.WriteFile(filepath.Dir(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := enginetest.New(t, everyHour(dir))
	if next := backup(t, w); !next.Equal(w.Clock.Now().Add(10 * time.Minute)) {
		t.Errorf("after a failure the next try is at %s", next)
	}
	if next := backup(t, w); !next.Equal(w.Clock.Now().Add(10 * time.Minute)) {
		t.Errorf("it is tried again at once, next at %s", next)
	}
	s := must[api.System](t)(w.System(t.Context(), w.Owner))
	if f := s.Backup.LastFailure; f == nil || f.Reason == "" || strings.Contains(f.Reason, root) || s.Backup.LastGood != nil {
		t.Errorf("the system tells of %+v", f)
	}
	list := must[api.List[api.AuditEntry]](t)(w.Audit(t.Context(), w.Owner, api.AuditFilter{Type: api.EventBackupFailed}, api.Page{}))
	if len(list.Items) != 1 || list.Items[0].Data["reason"] != s.Backup.LastFailure.Reason {
		t.Errorf("the audit has %+v", list.Items)
	}
	if err := os.Remove(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	w.Clock.Step(10 * time.Minute)
	if next := backup(t, w); !next.Equal(w.Clock.Now().Add(time.Hour)) {
		t.Errorf("after one that succeeded the next is at %s", next)
	}
	if got := namesIn(t, dir); len(got) != 1 {
		t.Errorf("there are %v", got)
	}
	w.Clock.Step(-5 * time.Hour) // a clock that is set back doesn't end the backups
	if next := backup(t, w); next.After(w.Clock.Now().Add(time.Hour)) {
		t.Errorf("after the clock was set back the next is at %s", next)
	}
}

func TestBackUp_OnlyAdminsAreTold(t *testing.T) {
	w := enginetest.New(t, everyHour(t.TempDir()))
	backup(t, w)
	for _, role := range []api.Role{api.Viewer, api.Member} {
		c := w.Colleague(string(role), role)
		_, err := w.System(t.Context(), c)
		wantCode(t, err, api.CodeForbidden)
	}
	if _, err := w.System(t.Context(), w.Colleague("admin", api.Admin)); err != nil {
		t.Error(err)
	}
}

// TestBackUp_RunsByTheTimerLoops lets a day pass in virtual time.
func TestBackUp_RunsByTheTimerLoops(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.New(t, everyHour(dir), enginetest.Now(time.Now), enginetest.With(func(c *engine.Config) { c.Backups.Keep = 100 }))
		done := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { done <- w.Engine.Run(ctx) }()
		time.Sleep(6*time.Hour + time.Minute)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if got := namesIn(t, dir); len(got) != 7 {
		t.Errorf("six hours made %v", got)
	}
}
