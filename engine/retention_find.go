package engine

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// pruneReach is down to where one kind stays, as of the beginning of its turn.
type pruneReach struct {
	now     int64
	settled int64 // what ended, or was, later stays
	before  int64 // what ended, or was, earlier goes
	below   int64 // ids and numbers below go, by the bytes of all
	upto    int64 // no id or number from here on goes
	count   int64 // of each agent or webhook that stay; 0 = all
	log     int64 // what readers of the log have not read begins after it

	reach map[api.AgentID]api.SessionID // of each agent's sessions, those below go
}

// pruneUnit is one thing to remove.
type pruneUnit struct {
	id      int64
	members []api.SessionID // of a conversation, the newest first
}

// pruneFound is what a look found.
type pruneFound struct {
	units []pruneUnit
	place int64 // where to look on
	last  bool  // there is nothing after it
}

// pruneStage is one kind of what goes.
type pruneStage struct {
	kind       string
	note       string // the type of what the coordinator notes; only for that
	ofSessions bool   // its units are sessions
	limit      func(*Retention) *RetentionLimit
	count      func(*api.Removed) *int64
	bytes      func(ctx context.Context, q queries.Querier, before, n int64) ([]sized, error)
	find       func(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (pruneFound, error)
	drop       func(tx *db.Tx, b *pruneReach, units []pruneUnit, budget *pruneBudget) (dropped, error)
	size       func(ctx context.Context, q queries.Querier, u pruneUnit) (int64, error)
}

// sized is a thing and about how many bytes it takes.
type sized struct{ id, bytes int64 }

func one(context.Context, queries.Querier, pruneUnit) (int64, error) { return 1, nil }

// coordinatorNotes are the events that the coordinator notes by itself, many of them: they go
// with the events of sessions. The statements that pass over them name them too.
var coordinatorNotes = []string{api.EventSlotDecided, api.EventWorkerOnline, api.EventWorkerStale, api.EventWorkerOffline}

// pruneStages are what a round goes through. Sessions are first: they take what is theirs along.
var pruneStages = func() []pruneStage {
	all := []pruneStage{
		{
			kind: api.RetainSessions, ofSessions: true, limit: func(r *Retention) *RetentionLimit { return &r.Sessions }, count: func(r *api.Removed) *int64 { return &r.Sessions },
			bytes: bytesOfSessions, find: findThreads, drop: dropThreads,
			size: func(_ context.Context, _ queries.Querier, u pruneUnit) (int64, error) {
				return int64(len(u.members)), nil
			},
		},
		{
			kind: api.RetainOutput, ofSessions: true, limit: func(r *Retention) *RetentionLimit { return &r.Output }, count: func(r *api.Removed) *int64 { return &r.Output },
			bytes: bytesOfOutputs, find: findOf(nextWithOutput), drop: dropOutputs, size: one,
		},
		{
			kind: api.RetainEvents, ofSessions: true, limit: func(r *Retention) *RetentionLimit { return &r.Events }, count: func(r *api.Removed) *int64 { return &r.Events },
			bytes: bytesOfEvents, find: findOf(nextWithEvents), drop: dropSessionEvents,
			size: func(ctx context.Context, q queries.Querier, u pruneUnit) (int64, error) {
				return q.CountEventsOf(ctx, api.SessionID(u.id))
			},
		},
	}
	for _, kind := range coordinatorNotes {
		all = append(all, pruneStage{
			kind: api.RetainEvents, note: kind, limit: func(r *Retention) *RetentionLimit { return &r.Events }, count: func(r *api.Removed) *int64 { return &r.Events },
			bytes: bytesOfEvents, find: findNotes(kind), drop: dropNotes(kind), size: one,
		})
	}
	return append(all,
		pruneStage{
			kind: api.RetainAudit, limit: func(r *Retention) *RetentionLimit { return &r.Audit }, count: func(r *api.Removed) *int64 { return &r.Audit },
			bytes: bytesOfAudit, find: findAudit, drop: dropAudit, size: one,
		},
		pruneStage{
			kind: api.RetainDeliveries, limit: func(r *Retention) *RetentionLimit { return &r.Deliveries }, count: func(r *api.Removed) *int64 { return &r.Deliveries },
			bytes: bytesOfDeliveries, find: findDeliveries, drop: dropDeliveries, size: one,
		},
		pruneStage{
			kind: api.RetainDeliveries, limit: func(r *Retention) *RetentionLimit { return &r.Deliveries }, count: func(r *api.Removed) *int64 { return &r.Deliveries },
			find: findDeliveriesOfEach, drop: dropDeliveries, size: one,
		},
	)
}()

// pruneReachOf finds down to where a kind stays.
func (e *Engine) pruneReachOf(ctx context.Context, q queries.Querier, stage pruneStage) (*pruneReach, error) {
	limits := e.cfg.Retention
	limit, now := stage.limit(&limits), e.Now()
	b := &pruneReach{
		now: db.Micros(now), settled: db.Micros(now.Add(-Settled)), count: limit.Count, reach: map[api.AgentID]api.SessionID{},
	}
	if limit.Age > 0 {
		b.before = min(db.Micros(now.Add(-limit.Age)), b.settled)
	}
	var err error
	if b.log, err = q.SlowestWebhook(ctx); err != nil {
		return nil, fmt.Errorf("see how far webhooks have read: %w", err)
	}
	most := int64(0)
	if stage.kind == api.RetainAudit {
		most = limit.Count
	}
	if stage.bytes != nil && (limit.Bytes > 0 || most > 0) {
		if b.below, err = reachOfBytes(ctx, q, stage.bytes, limit.Bytes, most); err != nil {
			return nil, err
		}
	}
	switch {
	case stage.note != "":
		if b.below > 0 { // what has the age of the sessions whose events go
			b.before = max(b.before, min(db.Micros(db.MadeAt(b.below)), b.settled))
		}
		b.upto, err = numberAt(ctx, q, b.before)
	case stage.kind == api.RetainAudit:
		var aged, settled int64
		if aged, err = numberAt(ctx, q, b.before); err == nil {
			settled, err = numberAt(ctx, q, b.settled)
		}
		b.upto = min(max(aged, b.below), settled)
	case stage.ofSessions && b.count > 0:
		b.upto = math.MaxInt64
	default: // what has ended by then was made by then; a busy second has borrowed ids from later ones
		b.upto = max(db.FirstID(api.At(b.before).Add(time.Hour)), b.below)
	}
	if stage.note != "" || stage.kind == api.RetainAudit {
		b.upto = min(b.upto, max(b.log, b.log+1)) // what isn't read stays; no webhook has read everything
	}
	return b, err
}

// numberAt is the number of the first event at an instant or later.
func numberAt(ctx context.Context, q queries.Querier, at int64) (int64, error) {
	newest, err := q.Counter(ctx, "event")
	if err != nil {
		return 0, fmt.Errorf("read the newest event: %w", err)
	}
	oldest, err := q.OldestEvent(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the oldest event: %w", err)
	}
	return firstEventFrom(ctx, q, at, oldest, newest)
}

// reachOfBytes is the lowest id with which all from it on have at most so many bytes, and are at
// most so many, of which 0 is no limit; 0 when all are within.
func reachOfBytes(ctx context.Context, q queries.Querier, read func(context.Context, queries.Querier, int64, int64) ([]sized, error), bytes, most int64) (int64, error) {
	sum, n, before := int64(0), int64(0), int64(math.MaxInt64)
	for {
		rows, err := read(ctx, q, before, pruneLooks)
		if err != nil {
			return 0, fmt.Errorf("add up what there is: %w", err)
		}
		for _, r := range rows {
			sum, n = sum+r.bytes, n+1
			if bytes > 0 && sum > bytes || most > 0 && n > most {
				return r.id + 1, nil
			}
			before = r.id
		}
		if len(rows) < pruneLooks {
			return 0, nil
		}
	}
}

// past reports whether an ended session is beyond what stays.
func (b *pruneReach) past(ctx context.Context, q queries.Querier, agent api.AgentID, id api.SessionID, endedAt int64) (bool, error) {
	switch {
	case endedAt == 0 || endedAt >= b.settled:
		return false, nil
	case endedAt < b.before || int64(id) < b.below:
		return true, nil
	case b.count == 0:
		return false, nil
	}
	reach, known := b.reach[agent]
	if !known {
		r, err := q.ReachOfAgentsSessions(ctx, queries.ReachOfAgentsSessionsParams{AgentID: agent, Before: math.MaxInt64, Scan: b.count})
		if err != nil {
			return false, fmt.Errorf("find the newest sessions of agent %s: %w", agent, err)
		}
		if r.N == b.count {
			reach = api.SessionID(r.Reach)
		}
		b.reach[agent] = reach
	}
	return id < reach, nil
}

// findThreads looks for conversations all of whose sessions may go: what is said in one stays
// whole.
func findThreads(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (out pruneFound, err error) {
	rows, err := q.OldThreads(ctx, queries.OldThreadsParams{After: api.SessionID(after), Upto: api.SessionID(b.upto), N: pruneLooks})
	if err != nil {
		return out, err
	}
	out.place = after
	sessions := 0
	for _, first := range rows {
		if sessions >= pruneUnits {
			return out, nil
		}
		out.place = int64(first.ID)
		past, err := b.past(ctx, q, first.AgentID, first.ID, first.EndedAt)
		if err != nil {
			return out, err
		}
		if !past {
			continue
		}
		members, err := q.MembersOfThread(ctx, int64(first.ID))
		if err != nil {
			return out, err
		}
		u := pruneUnit{id: int64(first.ID)}
		for _, m := range members {
			if past, err = b.past(ctx, q, m.AgentID, m.ID, m.EndedAt); err != nil {
				return out, err
			}
			if !past || m.KeptAt != 0 {
				break
			}
			u.members = append(u.members, m.ID)
		}
		if len(u.members) == len(members) {
			out.units = append(out.units, u)
			sessions += len(members)
		}
	}
	out.last = len(rows) < pruneLooks
	return out, nil
}

// findOf looks for ended sessions that still have something, whose conversation nothing holds.
func findOf(next func(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (api.SessionID, error)) func(context.Context, queries.Querier, *pruneReach, int64) (pruneFound, error) {
	return func(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (out pruneFound, err error) {
		out.place = after
		for range pruneLooks {
			if len(out.units) >= pruneUnits {
				return out, nil
			}
			id, err := next(ctx, q, b, out.place)
			if db.None(err) {
				out.last = true
				return out, nil
			}
			if err != nil {
				return out, err
			}
			out.place = int64(id)
			s, err := q.Session(ctx, id)
			if err != nil {
				return out, fmt.Errorf("read session %s: %w", id, err)
			}
			past, err := b.past(ctx, q, s.AgentID, id, s.EndedAt)
			if err != nil {
				return out, err
			}
			if !past {
				continue
			}
			if held, err := threadHeld(ctx, q, s.ThreadID); err != nil {
				return out, err
			} else if !held {
				out.units = append(out.units, pruneUnit{id: int64(id)})
			}
		}
		return out, nil
	}
}

// threadHeld reports whether a session of a conversation runs, waits or is kept.
func threadHeld(ctx context.Context, q queries.Querier, id api.ThreadID) (bool, error) {
	_, err := q.HolderOfThread(ctx, int64(id))
	if db.None(err) {
		return false, nil
	}
	return err == nil, err
}

// nextWithOutput is the next session that printed something, changed something or was given files.
func nextWithOutput(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (next api.SessionID, err error) {
	past, upto := api.SessionID(after), api.SessionID(b.upto)
	for _, of := range []func() (api.SessionID, error){
		func() (api.SessionID, error) {
			return q.NextWithItems(ctx, queries.NextWithItemsParams{After: past, Upto: upto})
		},
		func() (api.SessionID, error) {
			return q.NextWithAttachments(ctx, queries.NextWithAttachmentsParams{After: past, Upto: upto})
		},
		func() (api.SessionID, error) {
			return q.NextWithFiles(ctx, queries.NextWithFilesParams{After: past, Upto: upto})
		},
	} {
		id, err := of()
		if db.None(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		next, upto = id, id // another one counts if it is before it
	}
	if next == 0 {
		return 0, sql.ErrNoRows
	}
	return next, nil
}

func nextWithEvents(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (api.SessionID, error) {
	return q.NextWithEvents(ctx, queries.NextWithEventsParams{After: api.SessionID(after), Upto: api.SessionID(b.upto)})
}

// rowsFound are rows that go one by one.
func rowsFound[ID ~int64](ids []ID, err error, after int64) (out pruneFound, _ error) {
	out.place, out.last = after, len(ids) < pruneRows
	for _, id := range ids {
		out.units = append(out.units, pruneUnit{id: int64(id)})
		out.place = int64(id)
	}
	return out, err
}

func findNotes(kind string) func(context.Context, queries.Querier, *pruneReach, int64) (pruneFound, error) {
	return func(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (pruneFound, error) {
		rows, err := q.OldNotes(ctx, queries.OldNotesParams{Type: kind, After: after, Upto: b.upto, Before: b.before, N: pruneRows})
		return rowsFound(rows, err, after)
	}
}

func findAudit(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (pruneFound, error) {
	rows, err := q.OldAudit(ctx, queries.OldAuditParams{After: after, Upto: b.upto, Before: b.before, Reach: b.below, N: pruneRows})
	return rowsFound(rows, err, after)
}

func findDeliveries(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (pruneFound, error) {
	rows, err := q.OldDeliveryIDs(ctx, queries.OldDeliveryIDsParams{
		After: api.DeliveryID(after), Upto: api.DeliveryID(b.upto), Settled: b.settled, Before: b.before, Reach: api.DeliveryID(b.below), N: pruneRows,
	})
	return rowsFound(rows, err, after)
}

// findDeliveriesOfEach looks at one webhook after the other for more than it is to keep; the
// place is the webhook's.
func findDeliveriesOfEach(ctx context.Context, q queries.Querier, b *pruneReach, after int64) (out pruneFound, err error) {
	if b.count == 0 {
		return pruneFound{place: after, last: true}, nil
	}
	hooks, err := q.WebhooksAfter(ctx, queries.WebhooksAfterParams{After: api.WebhookID(after), N: 1})
	if err != nil || len(hooks) == 0 {
		return pruneFound{place: after, last: true}, err
	}
	out.place = int64(hooks[0])
	r, err := q.ReachOfDeliveries(ctx, queries.ReachOfDeliveriesParams{WebhookID: hooks[0], Scan: b.count})
	if err != nil || r.N < b.count {
		return out, err
	}
	rows, err := q.OldDeliveriesOf(ctx, queries.OldDeliveriesOfParams{WebhookID: hooks[0], Reach: api.DeliveryID(r.Reach), Settled: b.settled, N: pruneRows})
	for _, id := range rows {
		out.units = append(out.units, pruneUnit{id: int64(id)})
	}
	if len(rows) == pruneRows {
		out.place-- // there may be more
	}
	return out, err
}
