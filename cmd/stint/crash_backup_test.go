package main

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stint/api"
	"stint/db"
	"stint/engine"
)

// TestKill_BackupAndRestoreAreWholeOrNotThere kills `backup create` beside a server under load,
// and `restore` over a stopped one, with SIGKILL at random moments: a backup of that name is
// whole or not there, and the next start finds the old database or the restored one, whole.
func TestKill_BackupAndRestoreAreWholeOrNotThere(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h := newHome(t)
	p := h.serve(shortClocks, "serve")
	c := p.client(nil)
	names := func(c *api.Client) (out []string) {
		list, err := c.Agents(t.Context(), api.Page{Limit: 200})
		h.must(err)
		for _, a := range list.Items {
			out = append(out, a.Slug)
		}
		slices.Sort(out)
		return out
	}
	agent := func(c *api.Client, slug string) {
		_, err := c.CreateAgent(t.Context(), map[string]any{"slug": slug, "run": map[string]any{"command": []string{"true"}}})
		h.must(err)
	}
	agent(c, "first")
	h.must(h.run("backup", "create", "good.zip"))

	halfway := 0
	for range 8 {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 50 {
				_, _, _ = c.CreateSession(t.Context(), "first", api.SessionInput{}, "")
			}
		}()
		b := h.start(shortClocks, "backup", "create", "risky.zip")
		dieWithin(b, r, 250*time.Millisecond)
		<-ended
		switch _, err := db.VerifyBackup(t.Context(), filepath.Join(h.dir, "risky.zip")); {
		case errors.Is(err, fs.ErrNotExist):
			halfway++
		default:
			h.must(err)
			h.must(os.Remove(filepath.Join(h.dir, "risky.zip")))
		}
	}
	h.must(h.run("backup", "create", "last.zip"))
	if left, _ := filepath.Glob(filepath.Join(h.dir, ".stint-backup-*")); len(left) > 0 {
		t.Errorf("killed backups left %v", left)
	}
	p.stop()

	olds, news := 0, 0
	for n := range kills(t, 20) {
		p := h.serve(shortClocks, "serve")
		slug := "added-" + string(rune('a'+n%26))
		if now := names(p.client(nil)); !slices.Contains(now, slug) {
			agent(p.client(nil), slug)
		}
		was := names(p.client(nil))
		if n%2 == 0 {
			p.stop()
		} else {
			p.kill()
			p.killed()
		}
		dieWithin(h.start(shortClocks, "restore", "good.zip", "--replace"), r, 400*time.Millisecond)
		again := h.serve(shortClocks, "serve")
		switch now := names(again.client(nil)); {
		case slices.Equal(now, []string{"first"}) && !slices.Equal(was, now):
			news++
		case slices.Equal(now, was):
			olds++
		default:
			t.Errorf("after the restore there are the agents %v, before it there were %v", now, was)
		}
		again.stop()
		h.unbroken()
	}
	t.Logf("%d of 8 backups and %d of %d restores were cut short", halfway, olds, olds+news)
}

// dieWithin kills a program at a random moment, if it hasn't ended by then.
func dieWithin(p *program, r *rand.Rand, longest time.Duration) {
	select {
	case <-p.ended:
	case <-time.After(time.Duration(r.Int64N(int64(longest)))):
		p.kill()
		p.wait()
	}
}

// run runs a command of the program to its end.
func (h *home) run(args ...string) error {
	p := h.start(shortClocks, args...)
	p.wait()
	return p.err
}

// unbroken checks the database of a stopped server for all that must never happen.
func (h *home) unbroken() {
	h.Helper()
	s, err := db.Open(h.Context(), db.Options{Path: h.data().database()})
	h.must(err)
	found, err := engine.New(s, hastyEngine()).Check(h.Context())
	h.must(err)
	for _, v := range found {
		h.Errorf("broken promise: %s", v)
	}
	h.must(s.Close())
}
