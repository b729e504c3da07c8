package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// Audit lists who did what and from where, newest first, restricted to what the caller may
// see: others' local sessions leave no trace in it. A page ends sooner when so many entries were
// looked at that the caller should decide whether to look further: its cursor continues there.
// Rights: admin. Errors: forbidden, invalid, not_found for an agent that isn't here.
func (e *Engine) Audit(ctx context.Context, c Caller, f api.AuditFilter, page api.Page) (api.List[api.AuditEntry], error) {
	out := api.List[api.AuditEntry]{Items: []api.AuditEntry{}}
	if err := c.May(account.Audit); err != nil {
		return out, err
	}
	n, before, err := db.PageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.auditRead(f)(ctx, func(tx *db.ReadTx) error {
		search, err := newAuditSearch(ctx, tx, c, f, before)
		if err != nil {
			return err
		}
		y := newVisibility(tx, c)
		out, err = gathering[queries.AuditPageRow, api.AuditEntry]{
			read: search.rows,
			rest: func() int64 { return search.rest },
			key:  func(r queries.AuditPageRow) int64 { return r.Event.Seq },
			take: func(r queries.AuditPageRow) (api.AuditEntry, bool, error) {
				ev, seen, err := y.shown(ctx, r.Event)
				return toAudit(ev), seen, err
			},
			size: func(*api.AuditEntry) int { return 0 }, // events are short
		}.page(n, search.p.Before)
		if err != nil {
			return fmt.Errorf("list the audit: %w", err)
		}
		return nameActors(ctx, tx, out.Items)
	})
	return out, err
}

func toAudit(ev api.Event) api.AuditEntry {
	out := api.AuditEntry{Event: ev, ActorName: ev.Actor}
	for _, part := range []struct {
		key string
		to  *string
	}{{db.DataFrom, &out.From}, {db.DataVia, &out.Via}} {
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
		if err != nil && !db.None(err) {
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
		w, err := workerEvenDeleted(ctx, q, id)
		if err != nil && !db.None(err) {
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

// AuditChoices lists what the audit can be filtered by. Rights: admin.
func (e *Engine) AuditChoices(ctx context.Context, c Caller) (AuditView, error) {
	out := AuditView{At: e.Now(), Types: slices.Sorted(slices.Values(api.EventTypes))}
	if err := c.May(account.Audit); err != nil {
		return out, err
	}
	list, err := e.Agents(ctx, c, api.Page{Limit: db.MaxPage})
	for _, a := range list.Items {
		out.Agents = append(out.Agents, a.Slug)
	}
	slices.Sort(out.Agents)
	return out, err
}
