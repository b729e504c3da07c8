package worker

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"stint/api"
)

// A worker whose disk is nearly full takes nothing new and says so where the session waits;
// once there is room it goes on by itself.
func TestRun_TakesNothingNewWithoutRoomOnItsDisk(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var free atomic.Int64
	free.Store(100 << 20)
	o := w.options()
	o.MinFreeBytes, o.FreeBytes = 512<<20, func(string) (int64, error) { return free.Load(), nil }
	w.start(o)
	id := w.trigger(w.agent("waits", "true"), "")
	var s api.Session
	w.eventually("it waits for the disk", func() (waits bool) {
		var err error
		s, err = w.client.Session(t.Context(), id)
		w.must(err)
		return s.WaitingFor != nil && s.WaitingFor.Code == "worker_disk"
	})
	if !strings.Contains(s.WaitingFor.Sentence, "100 MiB") || strings.Contains(s.WaitingFor.Sentence, o.StateDir) {
		t.Errorf("it waits for %q", s.WaitingFor.Sentence)
	}
	if s.Fence != 0 {
		t.Error("it was claimed")
	}
	free.Store(1 << 30)
	w.untilStatus(id, api.Complete)
}

func TestNoRoom(t *testing.T) {
	p, _ := owner(t)
	p.opts.MinFreeBytes = 10
	asked := map[string]int64{p.opts.StateDir: 10, "/ws": 10}
	p.opts.FreeBytes = func(path string) (int64, error) {
		if free, ok := asked[path]; ok {
			return free, nil
		}
		if strings.HasPrefix(path, "/ws/") || path == "/" {
			return 0, fs.ErrNotExist
		}
		return 0, errors.New("no such disk")
	}
	for _, c := range []struct {
		state, root int64
		at          string
		says        string
	}{
		{10, 10, "/ws", ""},
		{9, 10, "/ws", "its output"},
		{10, 9, "/ws", "its workspaces"},
		{10, 9, "", ""},
		{10, 9, "/gone", ""},
		{10, 9, "/ws/of/later", "its workspaces"},
		{10, 10, "/ws/of/later", ""},
		{10, 9, "/", ""},
	} {
		asked[p.opts.StateDir], asked["/ws"] = c.state, c.root
		if got := p.noRoom(c.at); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("with %d and %d free: %q, want %q", c.state, c.root, got, c.says)
		}
	}
	asked[p.opts.StateDir] = 0
	if p.opts.MinFreeBytes = 0; p.noRoom("") != "" {
		t.Error("without a floor it refuses")
	}
}
