package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/worker/git"
	"stint/worker/landing"
	"stint/worker/workflow"
)

// How long a session's end, or its next turn, waits for a look at what changed.
const (
	lookAtEnd   = 20 * time.Second
	lookAtTurn  = 5 * time.Second
	lookDrained = 2 * time.Second
)

// partBytes bounds the patches of one part of a report: encoded and masked, it has to stay under
// the coordinator's 1 MiB.
const partBytes = 256 << 10

// landPlace is where a session left something that can be landed, as the state file keeps it.
type landPlace struct {
	Kind  api.Place `json:"kind"`
	Root  string    `json:"root,omitzero"`  // of the workspaces
	Key   string    `json:"key,omitzero"`   // of the workspace
	Path  string    `json:"path,omitzero"`  // of a plain folder
	Start string    `json:"start,omitzero"` // the commit that a plain folder was at
	Head  string    `json:"head,omitzero"`  // the commit that people were last told of; "" = unknown
	// Routes are where branches went before the session, as its owner had it.
	Routes git.Routes `json:"routes,omitzero"`
}

// notes finds out, before anything of the session runs, how its place can be found again.
func (p *workplace) notes(ctx context.Context, spec workspaceSpec) {
	switch spec.mode {
	case workflow.ModeWorktree:
		p.noted = landPlace{Kind: api.PlaceWorktree, Root: spec.root, Key: spec.key, Routes: nowhere}
		if err := p.owners(ctx, p.ws.Facts().Repository, nil); err != nil {
			p.untold(err)
		}
	case workflow.ModeEmpty:
		p.noted = landPlace{Kind: api.PlaceClone, Root: spec.root, Key: spec.key}
		if err := p.made(ctx); err != nil {
			p.untold(err)
		}
	default:
		if !inRepository(p.ws.Path) {
			return
		}
		noted := landPlace{Kind: api.PlaceFolder, Path: p.ws.Path, Routes: nowhere}
		if err := p.owners(ctx, p.ws.Path, &noted); err != nil {
			p.untold(err)
		}
	}
}

// nowhere is where branches go while it isn't known.
var nowhere = git.Routes{Remotes: map[string]string{}}

// owners notes where the branches of an owner's repository go, and of a plain folder where it began.
func (p *workplace) owners(ctx context.Context, folder string, plain *landPlace) error {
	repo, err := git.Open(ctx, folder, p.s.p.gitWith(p.s.p.source))
	if err != nil {
		return err
	}
	if plain != nil {
		if plain.Start, err = p.s.startOf(ctx, repo); err != nil {
			return err
		}
		p.noted = *plain
	}
	known, leave, err := p.s.p.enterRepository(ctx, repo)
	if err != nil {
		return err
	}
	p.noted.Routes, p.leaveRepository = known, leave
	return nil
}

// made notes where the branches of a clone go that the hook has just made, before an agent is in it.
func (p *workplace) made(ctx context.Context) error {
	if !p.ws.Created {
		return nil
	}
	place, err := p.s.p.landingPlace(p.noted, p.ws.Facts())
	if err != nil {
		return err
	}
	routes := nowhere
	t, err := landing.Open(ctx, place)
	if err == nil {
		routes, err = t.Routes(ctx)
	}
	if err != nil && !errors.Is(err, git.ErrNoRepository) {
		return err
	}
	return p.ws.Routes(routes)
}

// workspaceSpec is what names a workspace.
type workspaceSpec struct{ mode, root, key string }

// inRepository reports whether it is worth asking git about a folder.
func inRepository(folder string) bool {
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Lstat(filepath.Join(folder, ".git")); err == nil {
			return true
		}
		if folder == filepath.Dir(folder) {
			return false
		}
	}
}

// startOf is the commit that a session's first life found a folder at, "" = none.
func (s *session) startOf(ctx context.Context, repo git.Repo) (string, error) {
	name := startName(s.addr.Session)
	start, err := s.p.state.fact(name)
	if err != nil || start != "" {
		return start, err
	}
	start, err = repo.Commit(ctx, "")
	if errors.Is(err, git.ErrNoCommit) {
		return "", nil
	}
	return start, errors.Join(err, s.p.state.setFact(name, start))
}

func startName(id api.SessionID) string { return "start of " + id.String() }

// turnChanged records what the session has changed before its next turn begins.
func (s *session) turnChanged(ctx context.Context) {
	if s.place != nil {
		s.place.record(ctx, lookAtTurn)
	}
}

// changed records what the session has changed, at its end or when it is given back to wait for
// people. What goes on, or isn't ours any more, is recorded later or by another.
func (p *workplace) changed(o outcome) {
	release, _ := o.body.(api.ReleaseRequest)
	if !ends(o) && !release.Park || p.s.lost() {
		return
	}
	limit := lookAtEnd
	p.s.mu.Lock()
	if p.s.draining {
		limit = lookDrained
	}
	p.s.mu.Unlock()
	p.record(context.WithoutCancel(p.s.claimContext.ctx), limit)
}

// record puts what the workspace holds into the outbox. A failure is logged; the run has nothing
// to do with it.
func (p *workplace) record(ctx context.Context, limit time.Duration) {
	if p.noted.Kind == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := p.recordIn(ctx); err != nil {
		p.untold(err)
	}
}

// untold logs why it can't be told what a session changes.
func (p *workplace) untold(err error) {
	if errors.Is(err, git.ErrNoRepository) || errors.Is(err, git.ErrNoGit) {
		p.s.log.Debug("nothing to record of changes", "reason", err)
		return
	}
	p.s.log.Warn("what the session changes can't be recorded", "error", err)
}

func (p *workplace) recordIn(ctx context.Context) error {
	s := p.s
	s.at("look")
	place, err := s.p.landingPlace(p.noted, p.ws.Facts())
	if err != nil {
		return err
	}
	t, err := landing.Open(ctx, place)
	if err != nil {
		return err
	}
	c, err := t.Look(ctx)
	if err != nil {
		return err
	}
	entries, err := changesEntries(c)
	if err != nil {
		return err
	}
	p.noted.Head = c.State.Head
	if err := s.p.state.setPlace(s.addr.Session, p.noted); err != nil {
		return err
	}
	if err := s.out.add(entries...); err != nil {
		return err
	}
	s.at("looked")
	return nil
}

// changesEntries are the parts of a report.
func changesEntries(c landing.Changes) ([]entry, error) {
	whole, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode changes: %w", err)
	}
	sum := sha256.Sum256(whole)
	var out []entry
	for first := 0; ; {
		n, bytes := 0, 0
		for first+n < len(c.Files) {
			f := c.Files[first+n]
			if bytes += len(f.Patch) + len(f.Path) + len(f.OldPath) + 200; n > 0 && bytes > partBytes {
				break
			}
			n++
		}
		last := first+n == len(c.Files)
		e, err := newEntry(entryChanges, api.ChangesReport{
			Snapshot: hex.EncodeToString(sum[:16]), State: c.State, Files: c.Files[first : first+n], First: int64(first),
			FileCount: c.FileCount, Added: c.Added, Removed: c.Removed, Last: last,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, e)
		if last {
			return out, nil
		}
		first += n
	}
}
