package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/worker/proc"
	"stint/worker/setup"
	"stint/worker/workspace"
)

// CleanUp are the owner's limits for the workspaces on their machine, by which workers remove
// those that nobody needs. The zero value removes none.
type CleanUp struct {
	OlderThan time.Duration // unused for so long; 0 = age is no reason
	KeepSize  int64         // bytes that those of one folder may take together, the oldest go first; 0 = size is no reason
}

func (c CleanUp) on() bool { return c.OlderThan > 0 || c.KeepSize > 0 }

// Cleaned is what a worker process did of itself, as its state directory keeps it.
type Cleaned struct {
	At     api.Time `json:"at"`              // the last time
	Kept   int      `json:"kept"`            // workspaces that it left then
	Failed string   `json:"failed,omitzero"` // what failed then
	// The last time that it removed something.
	RemovedAt  api.Time `json:"removedAt,omitzero"`
	Removed    int      `json:"removed,omitzero"`
	FreedBytes int64    `json:"freedBytes,omitzero"`
}

const cleanedFile = "cleaned.json"

// LastCleaned reads what the worker process with a state directory removed; found is false
// where none has cleaned up yet.
func LastCleaned(stateDir string) (c Cleaned, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(stateDir, cleanedFile))
	if errors.Is(err, os.ErrNotExist) {
		return c, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return Cleaned{}, false, fmt.Errorf("read when workspaces were cleaned up: %w", err)
	}
	return c, true, nil
}

func (c Cleaned) keep(stateDir string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := filepath.Join(stateDir, cleanedFile)
	if err = os.WriteFile(path+".new", text, 0o600); err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// Clocks of the clean-up beside [Clocks.Tidy].
const (
	tidyAgain   = 10 * time.Minute // after one that was cut short, and between two for want of room
	tidyQuietly = time.Minute      // how long one for want of room may take before its reason is told
)

// tidy is the state of the automatic clean-up.
type tidy struct {
	urgent chan struct{} // one token: a disk is nearly full

	mu      sync.Mutex
	asked   proc.BootTime           // when one was asked for, for want of room; 0 = none is; guarded by mu
	tried   proc.BootTime           // the end of the last one; guarded by mu
	refused proc.BootTime           // when work was last refused for want of room; guarded by mu
	stop    context.CancelCauseFunc // of the one under way; nil = none is; guarded by mu
	done    chan struct{}           // closed at its end; guarded by mu
}

// errSessionComes ends a clean-up that stands in a session's way.
var errSessionComes = errors.New("a session wants a workspace")

// tidies cleans up by the owner's limits, on its clock and when a disk is nearly full, until ctx
// ends. No request for work waits for it.
func (p *Process) tidies(ctx context.Context) {
	if !p.opts.CleanUp.on() {
		return
	}
	cut := false
	for {
		pause := p.untilTidy()
		if cut {
			pause = min(tidyAgain, p.clocks.Tidy)
		}
		if !sleepAwake(ctx, pause, p.tidy.urgent) {
			return
		}
		cut = !p.tidyOnce(ctx)
		if ctx.Err() != nil {
			return
		}
	}
}

// untilTidy is how long it is until the next clean-up: restarts don't bring it forward.
func (p *Process) untilTidy() time.Duration {
	last, found, err := LastCleaned(p.opts.StateDir)
	if err != nil || !found {
		return 0
	}
	return min(max(p.clocks.Tidy-time.Since(last.At.Time), 0), p.clocks.Tidy) // the clock may have been set
}

// tidyOnce cleans up. It reports whether that came to its end.
func (p *Process) tidyOnce(ctx context.Context) bool {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan struct{})
	p.tidy.mu.Lock()
	p.tidy.stop, p.tidy.done = stop, done
	p.tidy.mu.Unlock()
	whole := p.collect(ctx)
	p.tidy.mu.Lock()
	wanted := p.tidy.asked != 0
	p.tidy.stop, p.tidy.done, p.tidy.asked, p.tidy.tried = nil, nil, 0, p.boot()
	p.tidy.mu.Unlock()
	close(done)
	if wanted {
		p.wakeClaims() // there may be room now
		p.wakeAll()    // or the coordinator is to know that there is none
	}
	return whole
}

// collect removes what may go, keeps account of it and logs one line if anything came of it.
func (p *Process) collect(ctx context.Context) (whole bool) {
	own := WorkspaceRoot(p.opts.StateDir)
	found, bad := CollectableBy(setup.Find(p.opts.StateDir), p.source, own)
	failed := errors.Join(bad...)
	var removed, kept int
	var freed int64
	if failed == nil { // else nobody knows what is to be kept
		for _, root := range found.Roots {
			r, err := workspace.Collect(ctx, root, p.collectRules(found.Rules, root == own))
			if ctx.Err() == nil && err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", root, err))
			}
			removed, kept, freed = removed+len(r.Removed), kept+len(r.Retained), freed+r.Freed
			for _, i := range append(r.Removed, r.Retained...) {
				if i.Failed {
					failed = errors.Join(failed, fmt.Errorf("%s: %s", i.Path, i.Why))
				}
			}
		}
	}
	whole = ctx.Err() == nil
	level, args := slog.LevelInfo, []any{"removed", removed, "freed", humanize.IBytes(uint64(max(freed, 0))), "kept", kept} //nolint:gosec // not negative
	if failed != nil {
		level, args = slog.LevelWarn, append(args, "error", failed)
	}
	if removed > 0 || failed != nil {
		p.log.Log(ctx, level, "workspaces were cleaned up", args...)
	}
	if removed > 0 || whole {
		p.account(removed, kept, freed, failed)
	}
	return whole
}

func (p *Process) account(removed, kept int, freed int64, failed error) {
	c, _, err := LastCleaned(p.opts.StateDir)
	if err != nil {
		p.log.Debug("the account of earlier clean-ups is begun anew", "error", err)
	}
	c.At, c.Kept, c.Failed = api.Time{Time: time.Now().UTC()}, kept, ""
	if failed != nil {
		c.Failed = api.Plain(failed)
	}
	if removed > 0 {
		c.RemovedAt, c.Removed, c.FreedBytes = c.At, removed, freed
	}
	if err := c.keep(p.opts.StateDir); err != nil {
		p.log.Warn("what was cleaned up could not be noted", "error", err)
	}
}

// collectRules are the owner's limits and files for one folder of workspaces. In that of the
// state directory alone, which belongs to one account of one coordinator, a session of which
// the coordinator knows nothing is over: workers of other coordinators may use the others too.
func (p *Process) collectRules(r workspace.Rules, own bool) workspace.Rules {
	r.OlderThan, r.KeepSize, r.Brief = p.opts.CleanUp.OlderThan, p.opts.CleanUp.KeepSize, true
	r.Goes = GoesOn(p.client, func(ctx context.Context) (bool, error) {
		if !own {
			return true, nil
		}
		_, err := p.workspace(ctx) // or we are no member any more, to whom all is unknown
		return err != nil, err
	})
	hooks := r.Hooks
	r.Hooks = func(agent string) workspace.Hooks {
		h := hooks(agent)
		h.Start = func(ctx context.Context, spec proc.Spec, sink proc.Sink) (*proc.Process, error) {
			spec.Stages = p.stages
			return proc.Start(ctx, spec, sink)
		}
		return h
	}
	return r
}

// makesRoom has a clean-up begin because a disk is nearly full. It reports whether that should
// be waited for before work is refused.
func (p *Process) makesRoom() bool {
	if !p.opts.CleanUp.on() {
		return false
	}
	now := p.boot()
	t := &p.tidy
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == 0 && (t.tried == 0 || now.Sub(t.tried) >= tidyAgain) {
		t.asked = now
		select {
		case t.urgent <- struct{}{}:
		default: // it is due already
		}
	}
	// Work that is refused already stays so while another one runs.
	if t.asked != 0 && now.Sub(t.asked) < tidyQuietly && (t.refused == 0 || now.Sub(t.refused) > 2*tidyAgain) {
		return true
	}
	t.refused = now
	return false
}

// makesWay ends a clean-up that may hold a workspace that a session wants.
func (p *Process) makesWay(ctx context.Context) {
	p.tidy.mu.Lock()
	stop, done := p.tidy.stop, p.tidy.done
	p.tidy.mu.Unlock()
	if stop == nil {
		return
	}
	stop(errSessionComes)
	select {
	case <-done:
	case <-ctx.Done():
	}
}
