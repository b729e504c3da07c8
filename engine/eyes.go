package engine

import (
	"context"
	"fmt"
	"strings"

	"stint/api"
	"stint/queries"
)

// actorHidden stands for an agent's run whose session isn't there for the reader.
const actorHidden = "agent"

// eyes tell of which sessions somebody may know: somebody else's local ones
// aren't there, not even as an id in what is told of something else (contract 8.3).
type eyes struct {
	q         queries.Querier
	workspace api.WorkspaceID
	user      api.UserID
	known     map[api.SessionID]bool
}

func newEyes(q queries.Querier, workspace api.WorkspaceID, user api.UserID) *eyes {
	return &eyes{q, workspace, user, map[api.SessionID]bool{}}
}

func (y *eyes) see(ctx context.Context, id api.SessionID) (bool, error) {
	if seen, ok := y.known[id]; ok {
		return seen, nil
	}
	n, err := y.q.SeesSession(ctx, queries.SeesSessionParams{ID: id, WorkspaceID: y.workspace, Me: y.user})
	if err != nil {
		return false, fmt.Errorf("look whether session %s is seen: %w", id, err)
	}
	y.known[id] = n > 0
	return n > 0, nil
}

// hides reports whether a value of an event names a session that isn't there.
func (y *eyes) hides(ctx context.Context, value any) (bool, error) {
	id, ok := sessionNamed(value)
	if !ok {
		return false, nil
	}
	seen, err := y.see(ctx, id)
	return !seen, err
}

// dim leaves out of an event what names sessions that aren't there.
func (y *eyes) dim(ctx context.Context, ev *api.Event) error {
	for k, v := range ev.Data {
		hidden, err := y.hides(ctx, v)
		if err != nil {
			return err
		}
		if hidden {
			delete(ev.Data, k)
		}
	}
	hidden, err := y.hides(ctx, ev.Actor)
	if hidden {
		ev.Actor = actorHidden
	}
	return err
}

// dimAll is dim for each of them.
func (y *eyes) dimAll(ctx context.Context, events []api.Event) error {
	for i := range events {
		if err := y.dim(ctx, &events[i]); err != nil {
			return err
		}
	}
	return nil
}

func sessionNamed(value any) (api.SessionID, bool) {
	text, ok := value.(string)
	if !ok || !strings.HasPrefix(text, "ses_") {
		return 0, false
	}
	id, err := api.ParseSessionID(text)
	return id, err == nil && id != 0
}
