package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/dustin/go-humanize"

	"stint/api"
)

// noRoom says that a folder of this worker's is on a disk with less free space than its floor,
// "" when none is. With less, a session could lose what it makes: its output in the outbox,
// its workspace. What runs goes on; nothing new is asked for.
func (p *Process) noRoom(root string) string {
	if p.opts.FreeBytes == nil || p.opts.MinFreeBytes <= 0 {
		return ""
	}
	for _, place := range []struct{ path, keeps string }{{p.opts.StateDir, "its output until it is sent"}, {root, "its workspaces"}} {
		if place.path == "" {
			continue
		}
		free, err := p.freeAt(place.path)
		if err != nil {
			p.log.Debug("the free space of a disk can't be read", "error", err)
			continue
		}
		if free < p.opts.MinFreeBytes {
			return fmt.Sprintf("Only %s are free where the worker keeps %s; it takes nothing new until %s are (STINT_MIN_FREE_MIB).",
				humanize.IBytes(uint64(max(free, 0))), place.keeps, humanize.IBytes(uint64(p.opts.MinFreeBytes))) //nolint:gosec // not negative
		}
	}
	return ""
}

// freeAt is how much is free where a folder is, or will be once it is made.
func (p *Process) freeAt(path string) (free int64, err error) {
	for {
		free, err = p.opts.FreeBytes(path)
		above := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || above == path {
			return free, err
		}
		path = above
	}
}

// roomNotice tells the coordinator, which says it of the sessions that wait.
func (p *Process) roomNotice(root string) []api.Notice {
	text := p.noRoom(root)
	if text == "" || p.makesRoom() {
		return nil
	}
	return []api.Notice{{Code: api.NoticeDiskLow, Text: text}}
}
