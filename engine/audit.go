package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// Audit lists who did what and from where, newest first, as far as the caller
// may see it: others' local sessions leave no trace in it. Rights: admin.
// Errors: forbidden, invalid, not_found for an agent that isn't here.
func (e *Engine) Audit(ctx context.Context, c Caller, f api.AuditFilter, page api.Page) (api.List[api.AuditEntry], error) {
	out := api.List[api.AuditEntry]{Items: []api.AuditEntry{}}
	if err := c.may(mayAudit); err != nil {
		return out, err
	}
	n, before, err := pageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		p := queries.AuditPageParams{
			Before: before, Since: api.Micros(f.Since.Time), Until: math.MaxInt64, WorkspaceID: c.WorkspaceID, Me: c.UserID,
			Actor: f.Actor, Type: f.Type, SessionID: int64(f.Session), N: n + 1,
		}
		if !f.Until.IsZero() {
			p.Until = api.Micros(f.Until.Time)
		}
		if f.Agent != "" {
			a, err := agentOf(ctx, tx, c, f.Agent)
			if err != nil {
				return err
			}
			p.AgentID = int64(a.ID)
		}
		rows, err := tx.AuditPage(ctx, p)
		if err != nil {
			return fmt.Errorf("list the audit: %w", err)
		}
		out = listOf(rows, n, toAudit, func(r queries.AuditPageRow) int64 { return r.Event.Seq })
		sight := newEyes(tx, c.WorkspaceID, c.UserID)
		for i := range out.Items {
			if err := sight.dim(ctx, &out.Items[i].Event); err != nil {
				return err
			}
		}
		return nameActors(ctx, tx, out.Items)
	})
	return out, err
}

func toAudit(r queries.AuditPageRow) api.AuditEntry {
	ev := toEvent(r.Event)
	ev.AgentID = api.AgentID(r.Agent)
	out := api.AuditEntry{Event: ev, ActorName: ev.Actor}
	for _, part := range []struct {
		key string
		to  *string
	}{{dataFrom, &out.From}, {dataVia, &out.Via}} {
		if text, ok := ev.Data[part.key].(string); ok {
			*part.to = text
			delete(ev.Data, part.key)
		}
	}
	return out
}

// nameActors puts the names of users and workers beside their ids.
func nameActors(ctx context.Context, q queries.Querier, all []api.AuditEntry) error {
	known := map[string]string{}
	for i := range all {
		a := &all[i]
		name, ok := known[a.Actor]
		if !ok {
			var err error
			if name, err = actorName(ctx, q, a.Actor); err != nil {
				return err
			}
			known[a.Actor] = name
		}
		a.ActorName = name
	}
	return nil
}

func actorName(ctx context.Context, q queries.Querier, actor string) (string, error) {
	switch kind, _, _ := strings.Cut(actor, "_"); kind {
	case "usr":
		var id api.UserID
		if id.UnmarshalText([]byte(actor)) != nil {
			return actor, nil
		}
		u, err := q.User(ctx, id)
		if err != nil && !none(err) {
			return "", fmt.Errorf("read user %s: %w", id, err)
		}
		if err == nil {
			return u.Name, nil
		}
	case "wrk":
		var id api.WorkerID
		if id.UnmarshalText([]byte(actor)) != nil {
			return actor, nil
		}
		w, err := q.WorkerEvenDeleted(ctx, id)
		if err != nil && !none(err) {
			return "", fmt.Errorf("read worker %s: %w", id, err)
		}
		if err == nil {
			return "worker " + w.Name, nil
		}
	}
	return actor, nil
}

// AuditView is what the page of the audit offers to filter by.
type AuditView struct {
	At     time.Time
	Types  []string // of events, sorted
	Agents []string // slugs
}

// AuditChoices lists by what the audit can be filtered. Rights: admin.
func (e *Engine) AuditChoices(ctx context.Context, c Caller) (AuditView, error) {
	out := AuditView{At: e.Now(), Types: slices.Sorted(slices.Values(eventTypes))}
	if err := c.may(mayAudit); err != nil {
		return out, err
	}
	list, err := e.Agents(ctx, c, api.Page{Limit: maxPage})
	for _, a := range list.Items {
		out.Agents = append(out.Agents, a.Slug)
	}
	slices.Sort(out.Agents)
	return out, err
}
