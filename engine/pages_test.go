package engine_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"stint/engine/enginetest"
)

// A damaged page of a table that nobody reads is found and told, and not forgotten by a start.
func TestWatchPages_FindsDamageThatNobodyReads(t *testing.T) {
	w := enginetest.Open(t)
	root, err := strconv.Atoi(w.Tell("SELECT rootpage FROM sqlite_schema WHERE name = 'task_comments'")[0])
	if err != nil {
		t.Fatal(err)
	}
	good := w.Image()
	damaged := bytes.Clone(good)
	copy(damaged[(root-1)*4096:root*4096], bytes.Repeat([]byte{0xff}, 4096))

	w = enginetest.Open(t, enginetest.AtOnce, enginetest.From(damaged, w.Now()))
	told := toldTo(t, w, w.Owner)
	pass := func() {
		t.Helper()
		next, err := w.WatchPages(t.Context(), w.Now())
		if err != nil || !next.After(w.Now()) {
			t.Fatalf("the next look is at %v (%v)", next, err)
		}
		advance(w, time.Minute)
	}
	if got := w.Warning(); got != "" {
		t.Errorf("before anybody looked: %q", got)
	}
	pass()
	wants(t, "damage", told(), "disk: The database is damaged")
	if got := w.Warning(); !strings.Contains(got, "damaged") || !strings.Contains(got, "restore") {
		t.Errorf("the warning is %q", got)
	}
	if got := inboxOf(w, w.Owner); !strings.Contains(got, "damaged") {
		t.Errorf("the inbox holds %q", got)
	}
	w.Restart()
	advance(w, time.Minute)
	wants(t, "a start before anybody has looked", told())
	if got := inboxOf(w, w.Owner); !strings.Contains(got, "damaged") {
		t.Errorf("after a start the inbox holds %q", got)
	}
	pass()
	wants(t, "it is still there", told())

	w = enginetest.New(t, enginetest.From(good, w.Now()))
	if pass(); w.Warning() != "" {
		t.Errorf("of a sound file it says %q", w.Warning())
	}
	if next, err := w.WatchPages(t.Context(), w.Now()); err != nil || next.Sub(w.Now()) < 23*time.Hour {
		t.Errorf("the next pass through a sound file is at %v (%v)", next, err)
	}
}
