package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stint/api"
	"stint/worker/proc"
)

func TestTryDelay_IsTheContractsForEveryTry(t *testing.T) {
	const most = 300 * time.Second
	for try, want := range map[int]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 5: 160 * time.Second, 6: most, 30: most, 31: most, 64: most, 1 << 40: most,
	} {
		if got := tryDelay(try, most); got != want {
			t.Errorf("try %d: %v, want %v", try, got, want)
		}
	}
	if got := tryDelay(7, 50*time.Millisecond); got != 50*time.Millisecond {
		t.Errorf("a bound below 10 s gave %v", got)
	}
}

func TestBackoff_GrowsStaysBoundedAndHeedsTheOtherSide(t *testing.T) {
	var b backoff
	for i := range 100 {
		got := b.next(0)
		if got < backoffFirst/2 || got > backoffMost {
			t.Errorf("pause %d is %v", i, got)
		}
	}
	if got := b.next(0); got < backoffMost/2 {
		t.Errorf("after many it is %v", got)
	}
	if got := b.next(time.Minute); got != time.Minute {
		t.Errorf("asked for a minute it is %v", got)
	}
	b.reset()
	if got := b.next(0); got > backoffFirst {
		t.Errorf("after a success it is %v", got)
	}
}

func TestClaimContext_EndsStagingBeforeTheEarlierEnd(t *testing.T) {
	const staging = 10 * time.Second
	var now atomic.Int64
	boot := func() proc.BootTime { return proc.BootTime(now.Load()) }
	at := func(s int) proc.BootTime { return proc.BootTime(s) * proc.BootTime(time.Second) }
	for _, c := range []struct {
		name                 string
		lease, beat          int
		renewed, beaten, now int
		ended                bool
	}{
		{"fresh", 60, 600, 0, 0, 49, false},
		{"lease over", 60, 600, 0, 0, 50, true},
		{"renewed", 60, 600, 110, 0, 99, false},
		{"renewed but no beat", 60, 100, 200, 0, 90, true},
		{"beat and lease", 60, 100, 200, 300, 189, false},
		{"overtaken answer", 60, 600, 40, 0, 49, false}, // never shortens
		{"long asleep", 60, 600, 120, 600, 9999, true},
	} {
		now.Store(0)
		l := newClaimContext(t.Context(), boot, staging, at(c.lease), at(c.beat))
		l.renewed(at(c.renewed))
		l.beaten(at(c.beat))
		l.beaten(at(c.beaten))
		now.Store(int64(at(c.now)))
		if err := l.check(); (err != nil) != c.ended || (c.ended && !errors.Is(err, errFenced)) {
			t.Errorf("%s: %v", c.name, err)
		}
		l.end(errLost)
		if err := l.cause(); c.ended && !errors.Is(err, errFenced) {
			t.Errorf("%s: the first cause was replaced by %v", c.name, err)
		}
	}
}

func TestClaimContext_WatchFollowsTheMovingEnd(t *testing.T) {
	looked := make(chan struct{}, 1)
	boot := func() proc.BootTime {
		select {
		case looked <- struct{}{}:
		default:
		}
		return proc.BootNow()
	}
	end := proc.BootNow().Add(time.Second)
	l := newClaimContext(t.Context(), boot, 0, end, end.Add(time.Hour))
	go func() {
		<-looked // it waits for the first end
		l.renewed(end.Add(100 * time.Millisecond))
	}()
	if err := l.watch(); err != nil {
		t.Fatal(err)
	}
	if late := proc.BootNow().Sub(end); !errors.Is(l.cause(), errFenced) || late < 100*time.Millisecond {
		t.Errorf("ended %v after the first end because %v", late, l.cause())
	}
}

func TestLease_IsCountedFromBeforeTheRequest(t *testing.T) {
	p := &Process{}
	server := api.Time{Time: time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)}
	in := func(d time.Duration) api.Time { return api.Time{Time: server.Add(d)} }
	for _, c := range []struct {
		expires, server api.Time
		want            time.Duration
	}{
		{in(time.Minute), server, time.Minute - time.Millisecond},
		{in(-time.Minute), server, -time.Minute - time.Millisecond},
		{in(1e6 * time.Hour), server, 24 * time.Hour},
		{api.Time{}, server, -proc.BootTime(1e9).Sub(0)},
		{in(time.Minute), api.Time{}, -proc.BootTime(1e9).Sub(0)},
	} {
		if got := p.lease(1e9, c.expires, c.server).Sub(1e9); got != c.want {
			t.Errorf("lease until %v at %v: %v, want %v", c.expires, c.server, got, c.want)
		}
	}
}

func TestFolderKey_IsOneForEverySpellingAndMachine(t *testing.T) {
	base := t.TempDir()
	sub := filepath.Join(base, "sub")
	link := filepath.Join(base, "link")
	if err := errors.Join(os.Mkdir(sub, 0o700), os.Symlink(sub, link)); err != nil {
		t.Fatal(err)
	}
	want := folderKey("m", sub)
	for _, path := range []string{link, sub + "/", base + "//sub/.", base + "/link/../sub"} {
		if got := folderKey("m", path); got != want {
			t.Errorf("%s has another key", path)
		}
	}
	if folderKey("m", sub+"/new") != folderKey("m", link+"/new") {
		t.Error("a folder that isn't there yet has two keys")
	}
	if folderKey("m", base) == want || folderKey("n", sub) == want || folderKey("m", "sub") != "" || strings.Contains(want, "sub") {
		t.Error("keys of different folders, machines or of no path are the same, or tell the path")
	}
}

func TestMachineID_IsMadeOnceAndAgreedOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", "machine-id")
	ids := make(chan string, 8)
	for range cap(ids) {
		go func() {
			id, err := machineID(file)
			if err != nil {
				t.Error(err)
			}
			ids <- id
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("two names: %s, %s", first, id)
		}
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := machineID(file); err == nil {
		t.Error("a broken file was taken")
	}
}

func TestFolders_OverlapIsExclusiveAndCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFolders()
		leave, err := f.take(t.Context(), "/a/b", nil)
		if err != nil {
			t.Fatal(err)
		}
		free, err := f.take(t.Context(), "/a/bc", nil) // a neighbour, not within
		if err != nil {
			t.Fatal(err)
		}
		free()
		for _, path := range []string{"/a", "/a/b", "/a/b/c", "/"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			waited := ""
			if _, err := f.take(ctx, path, func(other string) { waited = other }); !errors.Is(err, context.DeadlineExceeded) || waited != "/a/b" {
				t.Errorf("%s: %v, waited for %q", path, err, waited)
			}
			cancel()
		}
		go func() {
			time.Sleep(time.Minute)
			leave()
		}()
		if _, err := f.take(t.Context(), "/a", func(string) {}); err != nil {
			t.Error(err)
		}
	})
}

func TestPlanFor_OnlyTheOwnersRunBlockIsLookedAt(t *testing.T) {
	p := &Process{me: api.Whoami{UserID: 7, Name: "me"}, source: []string{"PATH=/bin:/usr/bin"}, opts: Options{StateDir: t.TempDir()}}
	own := api.Trusted{AgentSlug: "other", Type: api.TypeCommand, RunSetBy: 7, Run: api.Run{Command: []string{"sh"}, WorkFolder: t.TempDir()}}
	if got, failure := p.planFor(api.Claim{Trusted: own}); failure != nil || got.path == "" {
		t.Errorf("own: %+v", failure)
	}
	for _, by := range []api.UserID{0, 8} {
		foreign := own
		foreign.RunSetBy = by
		foreign.Run.WorkFolder = "relative" // must not even be looked at
		if _, failure := p.planFor(api.Claim{Trusted: foreign}); failure == nil || failure.Code != CodePolicyBlocked {
			t.Errorf("set by %d: %+v", by, failure)
		}
	}
}

func TestState_RefusesWhatItCannotTrust(t *testing.T) {
	dir := t.TempDir()
	s, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.exec("age", "PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(dir); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "worker.db"), []byte("this is no database at all, but long enough to be read as one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(dir); err == nil {
		t.Error("a file that is no database was taken")
	}
}

func TestOptions_BadOnesAreNamed(t *testing.T) {
	for want, o := range map[string]Options{
		"state directory": {},
		"slots":           {StateDir: "x", Slots: -1},
		"attempts":        {StateDir: "x", MaxRetryAttempts: -1},
		"stage":           {StateDir: "x", Stages: proc.Stages{Term: -1}},
		"name":            {StateDir: "x", Name: strings.Repeat("n", 65)},
	} {
		o.Log = slog.New(slog.DiscardHandler)
		if code, err := Run(t.Context(), o); code != ExitFailed || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d, %v", want, code, err)
		}
	}
	dir := t.TempDir()
	if _, err := Run(t.Context(), Options{StateDir: dir, URL: "http://example.org"}); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("plain http to another machine: %v", err)
	}
}

// outboxFor makes an outbox on a file of its own.
func outboxFor(t *testing.T, most int64) (*state, *outbox) {
	t.Helper()
	s, err := openState(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	id, err := s.hold(1, api.Claim{ClaimID: api.ClaimID{Key: 5}, SessionID: 6}, proc.Record{Mark: "m"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := newOutbox(s, id, most)
	if err != nil {
		t.Fatal(err)
	}
	return s, o
}

func mustEntry(t *testing.T, kind string, body any) entry {
	t.Helper()
	e, err := newEntry(kind, body)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOutbox_KeepsOrderBatchesItemsAndSurvivesAReopen(t *testing.T) {
	s, o := outboxFor(t, 1<<30)
	big := strings.Repeat("\x01", itemBytes) // six bytes each on the wire
	add := func(entries ...entry) {
		t.Helper()
		if err := o.add(entries...); err != nil {
			t.Fatal(err)
		}
	}
	add(mustEntry(t, entryActivity, api.ActivityInput{Key: "k"}))
	for range 3 {
		add(mustEntry(t, entryItem, api.ItemInput{Text: big}))
	}
	add(mustEntry(t, entryItem, api.ItemInput{Text: "last"}))
	if err := o.finish(mustEntry(t, entryComplete, api.CompleteRequest{Outcome: "x"})); err != nil {
		t.Fatal(err)
	}
	add(mustEntry(t, entryItem, api.ItemInput{Text: "after the end"})) // is let go
	again, err := newOutbox(s, o.heldID, 1<<30)
	if err != nil || !again.finished() {
		t.Fatalf("read again: finished %v, %v", again.finished(), err)
	}
	var got []string
	for {
		batch, err := again.next()
		if err != nil {
			t.Fatal(err)
		}
		if len(batch) == 0 {
			break
		}
		size := 0
		for _, e := range batch {
			size += len(e.body)
		}
		if size > 1<<20-64<<10 {
			t.Errorf("a batch of %d bytes doesn't fit a request", size)
		}
		got = append(got, batch[0].kind, string(rune('0'+len(batch))))
		again.answered(batch)
	}
	if want := "activity 1 item 1 item 1 item 2 complete 1"; strings.Join(got, " ") != want {
		t.Errorf("batches %v, want %s", got, want)
	}
	rows, err := s.heldRows()
	if err != nil || len(rows) != 1 || !rows[0].ended || rows[0].claim.SessionID != 6 {
		t.Errorf("journal %+v, %v", rows, err)
	}
	if err := s.drop(o.heldID, api.ClaimID{Key: 5}, 9); err != nil {
		t.Fatal(err)
	}
	if drained, err := s.drained(9); err != nil || len(drained) != 1 {
		t.Errorf("drained %v, %v", drained, err)
	}
}

func TestOutbox_RoomWaitsUntilSomethingWasAnsweredOrTheClaimEnds(t *testing.T) {
	_, o := outboxFor(t, 10)
	if err := o.add(mustEntry(t, entryItem, api.ItemInput{Text: "more than ten bytes"})); err != nil {
		t.Fatal(err)
	}
	through := make(chan struct{})
	go func() {
		o.room(t.Context())
		close(through)
	}()
	select {
	case <-through:
		t.Fatal("there was room in a full outbox")
	case <-time.After(20 * time.Millisecond):
	}
	batch, err := o.next()
	if err != nil {
		t.Fatal(err)
	}
	o.answered(batch)
	<-through
	if err := o.add(mustEntry(t, entryItem, api.ItemInput{Text: "more than ten bytes"})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.room(ctx) // the claim has ended: it must not wait
}

func TestResumeWords(t *testing.T) {
	for resume, want := range map[string]string{"claude --resume": "claude --resume ID", "copilot --resume=": "copilot --resume=ID"} {
		if got := resumeWords(resume, "ID"); got != want {
			t.Errorf("%q with an id is %q, want %q", resume, got, want)
		}
	}
}
