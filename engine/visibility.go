package engine

import (
	"context"
	"fmt"
	"strings"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// actorHidden stands for an agent's run whose session isn't visible to the reader.
const actorHidden = "agent"

// sessionVisibility is what decides who may see a session.
type sessionVisibility struct {
	there     bool
	workspace api.WorkspaceID
	agent     api.AgentID
	mode      api.Mode
	owner     api.UserID
	parent    api.SessionID
}

// visibleTo reports whether a user of a workspace may see the session: a local one is its
// owner's alone (contract 8.3).
func (s sessionVisibility) visibleTo(workspace api.WorkspaceID, user api.UserID) bool {
	return s.there && s.workspace == workspace && (s.mode == api.Cloud || s.owner == user)
}

// sees reports whether the caller may see a session: a local one is its owner's alone
// (contract 8.3).
func sees(c Caller, s *sessionRow) bool {
	if c.Run != nil && !reads(c.Run, s) {
		return false
	}
	of := sessionVisibility{there: true, workspace: s.WorkspaceID, mode: s.Mode, owner: s.OwnerUserID}
	return of.visibleTo(c.WorkspaceID, c.UserID)
}

// reads reports whether a run may see a session: its own, or one it started.
func reads(r *account.Run, s *sessionRow) bool { return s.ID == r.Session || s.ParentID == r.Session }

// visibilityCache reads once what decides who may see something, for everybody who reads in
// one snapshot.
type visibilityCache struct {
	q        queries.Querier
	known    map[api.SessionID]sessionVisibility
	workers  map[api.WorkerID]*workerRow // nil: there is none
	keys     map[api.KeyID]*queries.ApiKey
	channels map[api.ChannelID]*queries.Webhook
	agents   map[api.AgentID]*agentRow
}

func newVisibilityCache(q queries.Querier) *visibilityCache {
	return &visibilityCache{
		q, map[api.SessionID]sessionVisibility{}, map[api.WorkerID]*workerRow{}, map[api.KeyID]*queries.ApiKey{}, map[api.ChannelID]*queries.Webhook{}, map[api.AgentID]*agentRow{},
	}
}

func (l *visibilityCache) of(ctx context.Context, id api.SessionID) (sessionVisibility, error) {
	if s, ok := l.known[id]; ok {
		return s, nil
	}
	row, err := l.q.SessionVisibility(ctx, id)
	if err != nil && !db.None(err) {
		return sessionVisibility{}, fmt.Errorf("look who sees session %s: %w", id, err)
	}
	s := sessionVisibility{there: err == nil, workspace: row.WorkspaceID, agent: row.AgentID, mode: row.Mode, owner: row.OwnerUserID, parent: row.ParentID}
	l.known[id] = s
	return s, nil
}

// visibility decides what a caller may see: what no list shows them doesn't exist for them,
// and somebody else's local session isn't even an id in what they read about something else
// (contract 8.3).
type visibility struct {
	cache  *visibilityCache
	caller Caller
}

func newVisibility(q queries.Querier, c Caller) *visibility {
	return &visibility{newVisibilityCache(q), c}
}

// webhookVisibility is that of the webhook's recipient, with their present role.
func webhookVisibility(ctx context.Context, q queries.Querier, ws api.WorkspaceID, user api.UserID) (*visibility, error) {
	role, err := account.RoleOf(ctx, q, ws, user)
	return newVisibility(q, Caller{WorkspaceID: ws, UserID: user, Role: role}), err
}

func (v *visibility) seesSession(ctx context.Context, id api.SessionID) (bool, error) {
	s, err := v.cache.of(ctx, id)
	if r := v.caller.Run; r != nil && id != r.Session && s.parent != r.Session {
		return false, err
	}
	return s.visibleTo(v.caller.WorkspaceID, v.caller.UserID), err
}

// shown is an event of the whole log as the caller may see it; false when they may not.
func (v *visibility) shown(ctx context.Context, r queries.Event) (api.Event, bool, error) {
	agent := r.AgentID
	if r.SessionID != 0 {
		s, err := v.cache.of(ctx, r.SessionID)
		if err != nil || !s.visibleTo(v.caller.WorkspaceID, v.caller.UserID) {
			return api.Event{}, false, err
		}
		agent = s.agent
	} else if r.WorkspaceID != v.caller.WorkspaceID {
		return api.Event{}, false, nil
	}
	ev := toEvent(r)
	ev.AgentID = agent
	if seen, err := v.seesKind(ctx, ev.Type, agent, ev.Data); err != nil || !seen {
		return api.Event{}, false, err
	}
	return ev, true, v.redact(ctx, &ev)
}

// hides reports whether a value of an event names a session that isn't visible.
func (v *visibility) hides(ctx context.Context, value any) (bool, error) {
	id, ok := sessionNamed(value)
	if !ok {
		return false, nil
	}
	seen, err := v.seesSession(ctx, id)
	return !seen, err
}

// redact removes from an event what names sessions that the caller can't see, and what needs a
// right that they lack.
func (v *visibility) redact(ctx context.Context, ev *api.Event) error {
	for key, value := range ev.Data {
		if needed, ok := neededFor[key]; ok && !v.caller.Can(needed) {
			delete(ev.Data, key)
			continue
		}
		hidden, err := v.hides(ctx, value)
		if err != nil {
			return err
		}
		if hidden {
			delete(ev.Data, key)
		}
	}
	hidden, err := v.hides(ctx, ev.Actor)
	if hidden {
		ev.Actor = actorHidden
	}
	return err
}

// redactAll redacts each of them.
func (v *visibility) redactAll(ctx context.Context, events []api.Event) error {
	for i := range events {
		if err := v.redact(ctx, &events[i]); err != nil {
			return err
		}
	}
	return nil
}

func sessionNamed(value any) (api.SessionID, bool) {
	if text, ok := value.(string); !ok || !strings.HasPrefix(text, "ses_") {
		return 0, false
	}
	return idNamed(value, api.ParseSessionID)
}

// seesWorker reports whether the caller may see a worker: for a local one its owner and the
// admins (contract 8.3).
func seesWorker(c Caller, w *workerRow) bool {
	return w.WorkspaceID == c.WorkspaceID && (w.Mode == api.Cloud || w.OwnerUserID == c.UserID || c.Role.AtLeast(api.Admin))
}
