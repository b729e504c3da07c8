package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"stint/api"
	"stint/queries"
)

// rowCache are rows as the writer last saw them, so that the verbs of a session don't read
// again what the verb before has just written: wide rows cost more to read than to change. It
// belongs to the writer's owner.
//
// A row is cached as long as nothing can have changed it: the file was written by no other
// connection (PRAGMA data_version, asked under the write lock), nothing was rolled back, and
// no statement wrote its table. The methods of [Tx] in this file are the only exception to the
// last: they update the cached row themselves. Code that writes in another way is slower for
// it, never wrong.
type rowCache struct {
	on       bool // false until the first transaction has asked for the version
	version  int64
	checked  bool // for tests: compare each row with the table before it is used
	sessions map[api.SessionID]queries.Session
	claims   map[api.ClaimKey]queries.Claim
	agents   map[api.AgentID]queries.Agent
	slugs    map[queries.AgentBySlugParams]api.AgentID
	workers  map[api.WorkerID]queries.Worker
	likely   map[api.AgentID]api.WorkerID
	loads    map[api.WorkerID]int64 // claims live or not drained
}

const (
	maxCachedRows = 2048    // rows of one table; then all are forgotten
	maxCachedText = 4 << 10 // bytes of text in a session; a longer one isn't cached
)

func newRowCache(checked bool) *rowCache {
	k := &rowCache{checked: checked}
	k.forgetAll()
	return k
}

func (k *rowCache) forgetAll() {
	for _, table := range []string{"sessions", "claims", "agents", "workers"} {
		k.forget(table)
	}
}

// forget drops the cached rows of a table.
func (k *rowCache) forget(table string) {
	switch table {
	case "sessions":
		k.sessions = map[api.SessionID]queries.Session{}
	case "claims":
		k.claims = map[api.ClaimKey]queries.Claim{}
		k.loads = map[api.WorkerID]int64{}
	case "agents":
		k.agents = map[api.AgentID]queries.Agent{}
		k.slugs = map[queries.AgentBySlugParams]api.AgentID{}
	case "workers":
		k.workers = map[api.WorkerID]queries.Worker{}
		k.likely = map[api.AgentID]api.WorkerID{}
	case anyTable:
		k.forgetAll()
	}
}

// asOf takes the file's version at the start of each transaction.
func (k *rowCache) asOf(version int64) {
	if !k.on || k.version != version {
		k.forgetAll()
	}
	k.on, k.version = true, version
}

// anyTable stands for the tables of a statement that writtenTable can't read.
const anyTable = "?"

// writtenTable is the table that a statement changes, "" for none. The texts
// are sqlc's: comments, then the statement, its words in capitals.
func writtenTable(query string) string {
	for line := range strings.Lines(query) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "--" {
			continue
		}
		switch words[0] {
		case "SELECT", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA":
			return ""
		case "UPDATE":
			if len(words) > 1 {
				return words[1]
			}
		case "INSERT", "DELETE":
			if len(words) > 2 {
				return words[2]
			}
		}
		return anyTable
	}
	return ""
}

// upToDate runs a statement whose caller updates the cached rows itself. After a failure
// nothing of the table is cached.
func (tx *Tx) upToDate(table string, run func() (int64, error)) (int64, error) {
	g := tx.w.guard
	g.keeping = true
	defer func() { g.keeping = false }()
	n, err := run()
	if err != nil {
		g.rowCache.forget(table)
	}
	return n, err
}

func keep[K comparable, V any](k *rowCache, table string, rows map[K]V, id K, row V) {
	if len(rows) >= maxCachedRows {
		k.forget(table)
		return
	}
	rows[id] = row
}

// look returns a cached row, or else reads and keeps it.
func look[K comparable, V any](tx *Tx, table string, rows func(k *rowCache) map[K]V, id K, read func() (V, error)) (V, error) {
	k := tx.w.rowCache
	row, ok := rows(k)[id]
	if ok && !k.checked {
		return row, nil
	}
	now, err := read()
	if ok && (err != nil || !sameRow(row, now)) {
		return row, fmt.Errorf("the cached row of table %s is not the table's: %+v, %+v (%w)", table, row, now, err)
	}
	if err == nil {
		keep(k, table, rows(k), id, now)
	}
	return now, err
}

// sameRow compares rows; an empty list equals a missing one.
func sameRow(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Kind() != reflect.Struct {
		return reflect.DeepEqual(a, b)
	}
	for i := range x.NumField() {
		f, g := x.Field(i), y.Field(i)
		if f.Kind() == reflect.Slice && f.Len() == 0 && g.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(f.Interface(), g.Interface()) {
			return false
		}
	}
	return true
}

// Session is [queries.Queries.Session].
func (tx *Tx) Session(ctx context.Context, id api.SessionID) (queries.Session, error) {
	return look(tx, "sessions", func(k *rowCache) map[api.SessionID]queries.Session { return k.sessions }, id, func() (queries.Session, error) {
		return tx.Queries.Session(ctx, id)
	})
}

// InsertSession is [queries.Queries.InsertSession]; the new row is cached with KeepSession.
func (tx *Tx) InsertSession(ctx context.Context, p queries.InsertSessionParams) (int64, error) {
	return tx.upToDate("sessions", func() (int64, error) { return tx.Queries.InsertSession(ctx, p) })
}

// MoveSession is [queries.Queries.MoveSession]; the moved row is cached with KeepSession.
func (tx *Tx) MoveSession(ctx context.Context, p queries.MoveSessionParams) (int64, error) {
	delete(tx.w.rowCache.sessions, p.ID)
	return tx.upToDate("sessions", func() (int64, error) { return tx.Queries.MoveSession(ctx, p) })
}

// KeepSession sets the row of a session that this closure has just written. An ended one is
// not cached: nothing happens to it any more.
func (tx *Tx) KeepSession(s *queries.Session) {
	text := len(s.Prompt) + len(s.Instructions) + len(s.UntrustedContext) + len(s.Plan) + len(s.Result) + len(s.ErrorMessage)
	if s.Status.Terminal() || text > maxCachedText {
		delete(tx.w.rowCache.sessions, s.ID)
		return
	}
	keep(tx.w.rowCache, "sessions", tx.w.rowCache.sessions, s.ID, *s)
}

// The statements of retention are about what has ended, which is not cached.

// DropSession is [queries.Queries.DropSession].
func (tx *Tx) DropSession(ctx context.Context, id api.SessionID) (int64, error) {
	delete(tx.w.rowCache.sessions, id)
	return tx.upToDate("sessions", func() (int64, error) { return tx.Queries.DropSession(ctx, id) })
}

// MarkOutputRemoved is [queries.Queries.MarkOutputRemoved].
func (tx *Tx) MarkOutputRemoved(ctx context.Context, p queries.MarkOutputRemovedParams) (int64, error) {
	delete(tx.w.rowCache.sessions, p.ID)
	return tx.upToDate("sessions", func() (int64, error) { return tx.Queries.MarkOutputRemoved(ctx, p) })
}

// MarkEventsRemoved is [queries.Queries.MarkEventsRemoved].
func (tx *Tx) MarkEventsRemoved(ctx context.Context, p queries.MarkEventsRemovedParams) (int64, error) {
	delete(tx.w.rowCache.sessions, p.ID)
	return tx.upToDate("sessions", func() (int64, error) { return tx.Queries.MarkEventsRemoved(ctx, p) })
}

// DropClaimsOf is [queries.Queries.DropClaimsOf], for drained claims.
func (tx *Tx) DropClaimsOf(ctx context.Context, session api.SessionID) (int64, error) {
	for id, c := range tx.w.rowCache.claims {
		if c.SessionID == session {
			delete(tx.w.rowCache.claims, id)
		}
	}
	return tx.upToDate("claims", func() (int64, error) { return tx.Queries.DropClaimsOf(ctx, session) })
}

// Claim is [queries.Queries.Claim].
func (tx *Tx) Claim(ctx context.Context, id api.ClaimKey) (queries.Claim, error) {
	return look(tx, "claims", func(k *rowCache) map[api.ClaimKey]queries.Claim { return k.claims }, id, func() (queries.Claim, error) {
		return tx.Queries.Claim(ctx, id)
	})
}

// InsertClaim is [queries.Queries.InsertClaim].
func (tx *Tx) InsertClaim(ctx context.Context, p queries.InsertClaimParams) error {
	_, err := tx.upToDate("claims", func() (int64, error) { return 1, tx.Queries.InsertClaim(ctx, p) })
	if err != nil {
		return err
	}
	keep(tx.w.rowCache, "claims", tx.w.rowCache.claims, p.ID, queries.Claim{
		ID: p.ID, Secret: p.Secret, SessionID: p.SessionID, AgentID: p.AgentID, ThreadID: p.ThreadID, WorkerID: p.WorkerID,
		InstanceID: p.InstanceID, Fence: p.Fence, LeaseSeconds: p.LeaseSeconds, OfflineAfter: p.OfflineAfter,
		GrantedAt: p.GrantedAt, RenewedAt: p.GrantedAt, ExpiresAt: p.ExpiresAt, FolderKey: p.FolderKey, RequestID: p.RequestID,
		AgentVersion: p.AgentVersion, WorkerInstructions: p.WorkerInstructions, WorkerInstructionsSetBy: p.WorkerInstructionsSetBy,
	})
	if n, ok := tx.w.rowCache.loads[p.WorkerID]; ok {
		tx.w.rowCache.loads[p.WorkerID] = n + 1
	}
	return nil
}

// RenewClaim is [queries.Queries.RenewClaim].
func (tx *Tx) RenewClaim(ctx context.Context, p queries.RenewClaimParams) (int64, error) {
	c, ok := tx.w.rowCache.claims[p.ID]
	delete(tx.w.rowCache.claims, p.ID)
	n, err := tx.upToDate("claims", func() (int64, error) { return tx.Queries.RenewClaim(ctx, p) })
	if ok && n == 1 && err == nil {
		c.RenewedAt, c.ExpiresAt, c.Graced = p.Now, p.ExpiresAt, 0
		tx.w.rowCache.claims[p.ID] = c
	}
	return n, err
}

// CloseClaim is [queries.Queries.CloseClaim].
func (tx *Tx) CloseClaim(ctx context.Context, p queries.CloseClaimParams) (int64, error) {
	k := tx.w.rowCache
	c, ok := k.claims[p.ID]
	delete(k.claims, p.ID)
	n, err := tx.upToDate("claims", func() (int64, error) { return tx.Queries.CloseClaim(ctx, p) })
	if err != nil || n == 0 || p.Drained == 0 {
		return n, err
	}
	if !ok {
		k.loads = map[api.WorkerID]int64{}
	} else if load, ok := k.loads[c.WorkerID]; ok {
		k.loads[c.WorkerID] = load - 1
	}
	return n, nil
}

// AgentEvenDeleted is [queries.Queries.AgentEvenDeleted].
func (tx *Tx) AgentEvenDeleted(ctx context.Context, id api.AgentID) (queries.Agent, error) {
	return look(tx, "agents", func(k *rowCache) map[api.AgentID]queries.Agent { return k.agents }, id, func() (queries.Agent, error) {
		return tx.Queries.AgentEvenDeleted(ctx, id)
	})
}

// Agent is [queries.Queries.Agent].
func (tx *Tx) Agent(ctx context.Context, id api.AgentID) (queries.Agent, error) {
	a, err := tx.AgentEvenDeleted(ctx, id)
	if err == nil && a.DeletedAt != 0 {
		return queries.Agent{}, sql.ErrNoRows
	}
	return a, err
}

// AgentBySlug is [queries.Queries.AgentBySlug].
func (tx *Tx) AgentBySlug(ctx context.Context, p queries.AgentBySlugParams) (queries.Agent, error) {
	if id, ok := tx.w.rowCache.slugs[p]; ok {
		return tx.AgentEvenDeleted(ctx, id)
	}
	a, err := tx.Queries.AgentBySlug(ctx, p)
	if err == nil {
		keep(tx.w.rowCache, "agents", tx.w.rowCache.slugs, p, a.ID)
		keep(tx.w.rowCache, "agents", tx.w.rowCache.agents, a.ID, a)
	}
	return a, err
}

// TriggerAgent notes when an agent was last triggered. It returns [ErrGuard] for one that was
// triggered since or is deleted.
func (tx *Tx) TriggerAgent(id api.AgentID, at int64) error {
	return tx.count(id, func(a *queries.Agent) bool {
		later := a.LastTriggeredAt < at && a.DeletedAt == 0
		a.LastTriggeredAt = at
		return later
	})
}

// TakeAgentSlot counts one more running session of an agent. It returns an error unless the
// agent may run one more: it isn't paused or deleted, has not spent what it may on the day
// today (in days since 1970), and runs fewer than its limit.
func (tx *Tx) TakeAgentSlot(id api.AgentID, today int64) error {
	return tx.count(id, func(a *queries.Agent) bool {
		free := a.Running < a.MaxConcurrent && a.Paused == 0 && a.DeletedAt == 0
		a.Running++
		return free && (a.DailySpendLimit == 0 || a.SpentOnDay < a.DailySpendLimit || a.SpendDay < today)
	})
}

// TakeAgentSlotExempt is TakeAgentSlot for what the limits don't apply to.
func (tx *Tx) TakeAgentSlotExempt(id api.AgentID) error {
	return tx.count(id, func(a *queries.Agent) bool {
		a.Running++
		return a.DeletedAt == 0
	})
}

// FreeAgentSlot counts one running session of an agent less. It returns an error when none runs.
func (tx *Tx) FreeAgentSlot(id api.AgentID) error {
	return tx.count(id, func(a *queries.Agent) bool {
		a.Running--
		return a.Running >= 0
	})
}

// WorkerEvenDeleted is [queries.Queries.WorkerEvenDeleted].
func (tx *Tx) WorkerEvenDeleted(ctx context.Context, id api.WorkerID) (queries.Worker, error) {
	return look(tx, "workers", func(k *rowCache) map[api.WorkerID]queries.Worker { return k.workers }, id, func() (queries.Worker, error) {
		return tx.Queries.WorkerEvenDeleted(ctx, id)
	})
}

// Worker is [queries.Queries.Worker].
func (tx *Tx) Worker(ctx context.Context, id api.WorkerID) (queries.Worker, error) {
	w, err := tx.WorkerEvenDeleted(ctx, id)
	if err == nil && w.DeletedAt != 0 {
		return queries.Worker{}, sql.ErrNoRows
	}
	return w, err
}

// WorkerAndLoad is [queries.Queries.WorkerAndLoad].
func (tx *Tx) WorkerAndLoad(ctx context.Context, id api.WorkerID) (queries.WorkerAndLoadRow, error) {
	w, err := tx.Worker(ctx, id)
	if err != nil {
		return queries.WorkerAndLoadRow{}, err
	}
	if w.FolderKey != "" && w.FolderShared == 0 {
		return tx.Queries.WorkerAndLoad(ctx, id)
	}
	n, err := look(tx, "claims", func(k *rowCache) map[api.WorkerID]int64 { return k.loads }, id, func() (int64, error) {
		load, err := tx.WorkerLoad(ctx, queries.WorkerLoadParams{WorkerID: id})
		return load.Running, err
	})
	return queries.WorkerAndLoadRow{Worker: w, Running: n}, err
}

// LikelyWorker is [queries.Queries.LikelyWorker].
func (tx *Tx) LikelyWorker(ctx context.Context, agent api.AgentID) (queries.LikelyWorkerRow, error) {
	if id, ok := tx.w.rowCache.likely[agent]; ok {
		row, err := tx.WorkerAndLoad(ctx, id)
		if !errors.Is(err, sql.ErrNoRows) {
			return queries.LikelyWorkerRow(row), err
		}
	}
	row, err := tx.Queries.LikelyWorker(ctx, agent)
	if err == nil {
		keep(tx.w.rowCache, "workers", tx.w.rowCache.likely, agent, row.Worker.ID)
	}
	return row, err
}
