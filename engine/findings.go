package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

// What is wrong and a person should know, by one rule for all who tell it: the watch (watch.go)
// keeps it in the store, where the inbox and the home page read it, and logs it, from where
// channels tell it (contract 17). The doctor asks the same rules.

const (
	lateAfter = 10 * time.Minute // that a run of a schedule may wait without a worker
	diskLow   = 512 << 20        // bytes that are free

	codeSpendLimit = "SPEND_LIMIT" // of a run that its worker ended for that
)

// found is one thing that is wrong now.
type found struct {
	workspace api.WorkspaceID
	kind      api.Cause
	agent     api.AgentID
	session   api.SessionID
	title     string
	check     api.Check
}

func (f *found) row() queries.Finding {
	return queries.Finding{
		WorkspaceID: f.workspace, Kind: f.kind, AgentID: f.agent, SessionID: f.session,
		Code: f.check.Code, Title: f.title, Detail: f.check.Detail, Mend: f.check.Mend,
	}
}

// house is what is wrong with the coordinator itself, as far as it isn't in the store.
type house struct {
	disk   *api.Check
	backup *api.Check
	pages  bool // the file was looked through for damage since the start
}

// seesFinding reports whether a caller may know of a kind of finding. Who may see the agent or
// the session that it is about is checked besides.
func seesFinding(c Caller, kind api.Cause) bool { return !ofHouse(kind) || c.Can(account.Audit) }

func ofHouse(kind api.Cause) bool { return kind == api.CauseDisk || kind == api.CauseBackup }

// everything returns all that is wrong at now.
func (e *Engine) everything(ctx context.Context, q queries.Querier, now int64, h house) (out []found, err error) {
	for _, look := range []func(context.Context, queries.Querier, int64) ([]found, error){e.idleSchedules, e.lostSessions, spentAgents} {
		some, err := look(ctx, q, now)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	if h.disk == nil && h.backup == nil {
		return out, nil
	}
	ws, err := q.WorkspaceBySlug(ctx, account.DefaultWorkspace)
	if db.None(err) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the default workspace: %w", err)
	}
	if h.disk != nil {
		title := "The disk is nearly full"
		switch h.disk.Code {
		case api.FoundDatabaseLimit:
			title = "The database is nearly full"
		case api.FoundPagesDamaged:
			title = "The database is damaged"
		}
		out = append(out, found{workspace: ws.ID, kind: api.CauseDisk, title: title, check: *h.disk})
	}
	if h.backup != nil {
		title := "The backup failed"
		if h.backup.Code == api.FoundBackupLate {
			title = "The backup is overdue"
		}
		out = append(out, found{workspace: ws.ID, kind: api.CauseBackup, title: title, check: *h.backup})
	}
	return out, nil
}

// idleSchedules are the schedules of agents that aren't paused which were due and ran nothing.
func (e *Engine) idleSchedules(ctx context.Context, q queries.Querier, now int64) (out []found, err error) {
	agents, err := q.IdleSchedules(ctx, queries.IdleSchedulesParams{Before: now - db.Span(lateAfter), N: examined})
	if err != nil {
		return nil, fmt.Errorf("read schedules that may be idle: %w", err)
	}
	for i := range agents {
		a := &agents[i]
		check := unreadableSchedule(a)
		if check == nil {
			if check, err = e.untaken(ctx, q, a, now); err != nil {
				return nil, err
			}
		}
		if check == nil {
			if check, err = silentSchedule(ctx, q, a); err != nil {
				return nil, err
			}
		}
		if check != nil {
			out = append(out, found{workspace: a.WorkspaceID, kind: api.CauseSchedule, agent: a.ID, title: a.Slug + " didn't run when it was due", check: *check})
		}
	}
	return out, nil
}

// unreadableSchedule is what to tell of a schedule that can't be read.
func unreadableSchedule(a *agentRow) *api.Check {
	if a.ScheduleError == "" {
		return nil
	}
	return &api.Check{
		Name: api.CheckSchedules, Code: api.FoundScheduleBroken, Detail: fmt.Sprintf("Agent %s never fires: %s", a.Slug, fullStop(a.ScheduleError)),
		Mend: fmt.Sprintf("stint agent edit %s --schedule EXPR", a.Slug),
	}
}

// untaken is what to tell of a schedule whose newest run of some time ago nobody takes. Its
// session isn't named: it may be somebody's local one.
func (e *Engine) untaken(ctx context.Context, q queries.Querier, a *agentRow, now int64) (*api.Check, error) {
	s, err := q.FiredUpTo(ctx, queries.FiredUpToParams{AgentID: a.ID, Before: now - db.Span(lateAfter)})
	if db.None(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the newest run of agent %s: %w", a.Slug, err)
	}
	since := max(s.CreatedAt, s.NotBefore, e.upSince.Load())
	if s.Fence != 0 || !s.Status.Waiting() || now-since < db.Span(lateAfter) {
		return nil, nil
	}
	g, err := waiting(ctx, q, &s, a, now)
	if err != nil {
		return nil, fmt.Errorf("say why a run of agent %s waits: %w", a.Slug, err)
	}
	if !unserved[g.Code] && g.Code != gateReady {
		return nil, nil
	}
	return &api.Check{
		Name: api.CheckSchedules, Code: api.FoundNoWorker, Detail: fmt.Sprintf("The run of agent %s that was due at %s waits and nobody takes it. %s", a.Slug, clock(s.TriggeredAt), g.Sentence),
		Mend: mendUnserved(a.Slug),
	}, nil
}

func mendUnserved(slug string) string {
	return "stint up, or on the machine that has its folder: stint worker run --agent " + slug
}

// silentSchedule is what to tell of a schedule none of whose last slots fired, and whose newest
// run began before them.
func silentSchedule(ctx context.Context, q queries.Querier, a *agentRow) (*api.Check, error) {
	rows, err := q.ListLedger(ctx, queries.ListLedgerParams{AgentID: a.ID, Before: math.MaxInt64, N: lastSlots})
	if err != nil {
		return nil, fmt.Errorf("list the ledger of agent %s: %w", a.ID, err)
	}
	newest, err := q.FiredUpTo(ctx, queries.FiredUpToParams{AgentID: a.ID, Before: maxSeq})
	if err != nil && !db.None(err) {
		return nil, fmt.Errorf("read the newest run of agent %s: %w", a.Slug, err)
	}
	var slots int64
	for _, r := range rows {
		if r.Verdict == api.SlotFired || r.Verdict == api.SlotPaused || r.LastSlot <= newest.StartedAt {
			break
		}
		slots += r.Slots
	}
	if slots < lastSlots {
		return nil, nil
	}
	return &api.Check{
		Name: api.CheckSchedules, Code: api.FoundScheduleSilent,
		Detail: fmt.Sprintf("Agent %s has run at none of its last %d slots; the last was %s. %s", a.Slug, slots, rows[0].Verdict, rows[0].Reason),
		Mend:   fmt.Sprintf("stint audit --type slot_decided --agent %s, then free the way or change it: stint agent edit %s", a.Slug, a.Slug),
	}, nil
}

// abandoned reports whether a session that lost its worker waits for more than what passes by
// itself.
func abandoned(s *api.Session) bool {
	return s.Prompted == nil && s.WaitingFor != nil && !passing[s.WaitingFor.Code]
}

func (e *Engine) lostSessions(ctx context.Context, q queries.Querier, now int64) (out []found, err error) {
	rows, err := q.LostSessions(ctx, examined)
	if err != nil {
		return nil, fmt.Errorf("read sessions that lost their worker: %w", err)
	}
	for i := range rows {
		a, err := agentEvenDeleted(ctx, q, rows[i].AgentID)
		if err != nil {
			return nil, fmt.Errorf("read agent %s: %w", rows[i].AgentID, err)
		}
		s, err := e.present(ctx, q, &rows[i], &a, now)
		if err != nil {
			return nil, err
		}
		if abandoned(&s) {
			out = append(out, found{workspace: s.WorkspaceID, kind: api.CauseWorkerLost, agent: s.AgentID, session: s.ID, title: a.Slug + " lost its worker", check: api.Check{
				Code: s.WaitingFor.Code, Detail: "A run's worker vanished, and nobody takes the run up. " + s.WaitingFor.Sentence, Mend: mendUnserved(a.Slug),
			}})
		}
	}
	return out, nil
}

func spentAgents(ctx context.Context, q queries.Querier, now int64) (out []found, err error) {
	agents, err := q.SpentAgents(ctx, examined)
	if err != nil {
		return nil, fmt.Errorf("read agents at their spend limit: %w", err)
	}
	for i := range agents {
		a := &agents[i]
		if !spentAll(a, now) {
			continue
		}
		out = append(out, found{workspace: a.WorkspaceID, kind: api.CauseSpendLimit, agent: a.ID, title: a.Slug + " reached its spend limit", check: api.Check{
			Code:   codeSpendLimit,
			Detail: fmt.Sprintf("The agent may spend %s a day and has; it starts nothing more until %s.", api.Dollars(a.DailySpendLimit), clock(sumEnds(a, now))),
			Mend:   fmt.Sprintf("to let it spend more: stint agent edit %s --daily-limit DOLLARS", a.Slug),
		}})
	}
	return out, nil
}

// house looks at the coordinator itself, outside of any transaction.
func (e *Engine) house(ctx context.Context) (h house, err error) {
	h.pages = e.pages.whole.Load() // before what it found
	if h.disk, err = e.diskTrouble(); err != nil {
		e.log.Debug("how much is free on the disk isn't known", "error", err)
	}
	h.backup, _, err = e.backupFinding(ctx, true)
	return h, err
}

// diskTrouble is what to tell of damage to the database, and of the room that is left for it.
func (e *Engine) diskTrouble() (*api.Check, error) {
	if damaged := e.pages.found.Load(); damaged != nil {
		return damaged, nil
	}
	if low := e.Low(); low != "" {
		return limitFound(low), nil
	}
	if e.cfg.FreeBytes == nil {
		return nil, nil
	}
	free, err := e.cfg.FreeBytes()
	if err != nil {
		return nil, err
	}
	return DiskFound(free, ""), nil
}

// DiskFound is what to tell of so many free bytes on the disk of the data directory, nil when
// they are enough. inShell names the directory for a command, "" leaves it out.
func DiskFound(free int64, inShell string) *api.Check {
	if free >= diskLow {
		return nil
	}
	mend := "free space there"
	if inShell != "" {
		mend += ": df -h " + inShell
	}
	return &api.Check{
		Name: api.CheckDisk, Code: api.FoundDiskLow, Mend: mend,
		Detail: fmt.Sprintf("Only %s are free on the disk of the data directory; once it is full nothing new is kept.", sizeWords(free)),
	}
}

// limitFound is what to tell of a database that takes nearly or all that it may.
func limitFound(low string) *api.Check {
	return &api.Check{Name: api.CheckDatabase, Code: api.FoundDatabaseLimit, Detail: low, Mend: "start Stint with a larger STINT_DATA_MIB, or 0 for no limit"}
}

// backupFinding is what to tell of the scheduled backups: a failure, or that none has been made
// for long although the coordinator runs. Without either, fine says what is worth knowing.
func (e *Engine) backupFinding(ctx context.Context, runs bool) (check *api.Check, fine string, err error) {
	have, err := e.backups(ctx)
	if err != nil {
		return nil, "", err
	}
	every, age := e.cfg.Backups.Every, e.Now().Sub(time.UnixMicro(have.GoodAt))
	last := "none has been made yet"
	if have.GoodAt != 0 {
		last = "the last good one is from " + clock(have.GoodAt)
	}
	switch {
	case have.FailedAt > have.GoodAt:
		return &api.Check{
			Name: api.CheckBackup, Code: api.FoundBackupFailed, Detail: fmt.Sprintf("The backup of %s failed: %s And %s.", clock(have.FailedAt), fullStop(have.Failure), last),
			Mend: "see to the disk and the folder of the backups; it is tried again every ten minutes. By hand: stint backup create",
		}, "", nil
	case every > 0 && runs && have.GoodAt != 0 && age > 2*every:
		return &api.Check{
			Name: api.CheckBackup, Code: api.FoundBackupLate, Detail: fmt.Sprintf("A backup is to be made every %s, and %s.", every, last),
			Mend: "see the server's log; by hand: stint backup create",
		}, "", nil
	case every == 0 && have.GoodAt == 0:
		return nil, "none are scheduled (docs/backup.md)", nil
	}
	return nil, last, nil
}
