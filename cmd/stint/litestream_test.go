//go:build litestream

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"stint/api"
)

// TestLitestream_TheCopyHasWhatWasAcknowledged kills the server, and then the whole machine,
// beside the real Litestream, as docs/backup.md sets it up, and restores its copy elsewhere.
func TestLitestream_TheCopyHasWhatWasAcknowledged(t *testing.T) {
	litestream, err := exec.LookPath("litestream")
	if err != nil {
		t.Fatal("there is no litestream here; make test-litestream builds it")
	}
	for name, c := range map[string]struct {
		machine bool // Litestream is killed as well
	}{"the server alone": {}, "the whole machine": {machine: true}} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			p := h.serve(shortClocks, "serve")
			client := p.client(nil)
			_, err := client.CreateAgent(t.Context(), map[string]any{"slug": "first", "run": map[string]any{"command": []string{"true"}}})
			h.must(err)
			settings := filepath.Join(h.dir, "litestream.yml")
			h.must(os.WriteFile(settings, []byte(fmt.Sprintf("dbs:\n  - path: %s\n    replica:\n      type: file\n      path: %s\n      sync-interval: 200ms\n",
				h.data().database(), filepath.Join(h.dir, "copy"))), 0o600))
			copies := exec.CommandContext(context.WithoutCancel(t.Context()), litestream, "replicate", "-config", settings)
			h.must(copies.Start())
			defer func() { _ = copies.Process.Kill(); _ = copies.Wait() }()

			acknowledged := h.load(client, 5*time.Second)
			p.kill()
			p.killed()
			if c.machine {
				h.must(copies.Process.Kill())
			} else {
				// Asked to end, it copies what it has not copied yet.
				h.must(copies.Process.Signal(syscall.SIGTERM))
			}
			_ = copies.Wait()

			elsewhere := newHome(t)
			h.must(os.MkdirAll(string(elsewhere.data()), 0o700))
			out, err := exec.CommandContext(t.Context(), litestream, "restore", "-config", settings, "-o", elsewhere.data().database(), h.data().database()).CombinedOutput()
			if err != nil {
				t.Fatalf("litestream restore: %v\n%s", err, out)
			}
			// A copy is no backup that knows of being restored: made into one and restored, it is.
			h.must(elsewhere.run("backup", "create", "copy.zip"))
			h.must(elsewhere.run("restore", "copy.zip", "--replace"))
			elsewhere.unbroken()
			got := elsewhere.sessions(elsewhere.serve(shortClocks, "serve").client(nil))
			missing := 0
			for _, id := range acknowledged {
				if _, ok := slices.BinarySearch(got, id); !ok {
					missing++
				} else if missing > 0 {
					t.Fatalf("%s is there, and one that was acknowledged before it is not", id)
				}
			}
			t.Logf("%d sessions were acknowledged, %d are missing", len(acknowledged), missing)
			if !c.machine && missing > 0 {
				t.Errorf("%d of %d sessions are missing", missing, len(acknowledged))
			}
			if missing > len(acknowledged)/2 {
				t.Errorf("%d of %d sessions are missing: not only those of the last moments", missing, len(acknowledged))
			}
		})
	}
}

// load makes sessions for a while and returns those that were acknowledged, one batch after
// the other so that their order is that of the acknowledgements.
func (h *home) load(c *api.Client, d time.Duration) (ids []api.SessionID) {
	h.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		var mu sync.Mutex
		var made []api.SessionID
		var parts sync.WaitGroup
		for range 8 {
			parts.Go(func() {
				s, _, err := c.CreateSession(h.Context(), "first", api.SessionInput{}, "")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					h.Errorf("create a session: %v", err)
					return
				}
				made = append(made, s.ID)
			})
		}
		parts.Wait()
		slices.Sort(made)
		ids = append(ids, made...)
	}
	return ids
}

// sessions are the ids of all sessions, sorted.
func (h *home) sessions(c *api.Client) (ids []api.SessionID) {
	h.Helper()
	for cursor := ""; ; {
		list, err := c.Sessions(h.Context(), api.SessionFilter{}, api.Page{Limit: 200, Cursor: cursor})
		h.must(err)
		for _, s := range list.Items {
			ids = append(ids, s.ID)
		}
		if cursor = list.NextCursor; cursor == "" {
			slices.Sort(ids)
			return ids
		}
	}
}
