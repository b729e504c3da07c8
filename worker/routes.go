package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"stint/worker/git"
)

// routes know where the branches of repositories went before any session could change it. A folder,
// and all worktrees of a repository, share its settings: what one session changes there, the next one
// finds. What changed while none was in it, its owner has changed. contract 16.3
type routes struct {
	mu     sync.Mutex
	inside map[string]int // sessions of this process, by the repository's git directory
}

// routing is what is kept of one repository.
type routing struct {
	Known git.Routes  `json:"known"`         // as its owner had them
	Left  *git.Routes `json:"left,omitzero"` // as the last session left them; nil = one is in it, or nobody could look
}

// enterRepository notes that a session is about to work in a repository, and returns where its
// branches go as its owner has it. Call leave when the session is over.
func (p *Process) enterRepository(ctx context.Context, r git.Repo) (known git.Routes, leave func(context.Context), err error) {
	now, err := r.Here().Routes(ctx)
	if err != nil {
		return known, nil, err
	}
	p.routes.mu.Lock()
	defer p.routes.mu.Unlock()
	at, found, err := p.state.routing(r.Common)
	if err != nil {
		return known, nil, err
	}
	switch {
	case !found:
		at.Known = now
	case at.Left != nil && p.routes.inside[r.Common] == 0:
		at.Known = git.Routes{Remotes: changedSince(at.Known.Remotes, at.Left.Remotes, now.Remotes), Branches: changedSince(at.Known.Branches, at.Left.Branches, now.Branches)}
	}
	at.Left = nil
	if err := p.state.setRouting(r.Common, at); err != nil {
		return known, nil, err
	}
	p.routes.inside[r.Common]++
	return at.Known, func(ctx context.Context) { p.leaveRepository(ctx, r) }, nil
}

func (p *Process) leaveRepository(ctx context.Context, r git.Repo) {
	now, failed := r.Here().Routes(ctx)
	p.routes.mu.Lock()
	defer p.routes.mu.Unlock()
	if p.routes.inside[r.Common]--; p.routes.inside[r.Common] > 0 {
		return
	}
	delete(p.routes.inside, r.Common)
	at, found, err := p.state.routing(r.Common)
	if err == nil && found && failed == nil {
		at.Left = &now
		err = p.state.setRouting(r.Common, at)
	}
	if err != nil {
		p.log.Warn("it is not noted where a repository's branches go", "error", err)
	}
}

// changedSince is what is known, with what differs between left and now as it is now.
func changedSince(known, left, now map[string]string) map[string]string {
	out := maps.Clone(known)
	if out == nil {
		out = map[string]string{}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(left)), slices.Collect(maps.Keys(now))) {
		before, was := left[name]
		if value, is := now[name]; !is && was {
			delete(out, name)
		} else if is && (!was || value != before) {
			out[name] = value
		}
	}
	return out
}

// both are the routes that two agree on, and the second one's branches. One that knows of no remotes
// has no say.
func both(a, b git.Routes) git.Routes {
	if a.Remotes == nil {
		return b
	}
	if b.Remotes == nil {
		return a
	}
	out := git.Routes{Remotes: map[string]string{}, Branches: b.Branches}
	for name, mark := range a.Remotes {
		switch other, is := b.Remotes[name]; {
		case is && other == mark:
			out.Remotes[name] = mark
		case is:
			out.Remotes[name] = "" // which is nobody's mark
		}
	}
	return out
}

func routingName(common string) string { return "routes of " + common }

func (s *state) routing(common string) (at routing, found bool, err error) {
	text, err := s.fact(routingName(common))
	if err != nil || text == "" {
		return at, false, err
	}
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		return at, false, fmt.Errorf("read where a repository's branches go: %w", err)
	}
	return at, true, nil
}

func (s *state) setRouting(common string, at routing) error {
	text, err := json.Marshal(at)
	if err != nil {
		return fmt.Errorf("keep where a repository's branches go: %w", err)
	}
	return s.setFact(routingName(common), string(text))
}
