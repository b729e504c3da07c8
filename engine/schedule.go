package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

// plan derives the agent's next slot from its schedule and anchor. A schedule that can't be
// read leaves none and says why.
func plan(a *agentRow, now time.Time) {
	a.NextSlotAt, a.ScheduleError = 0, ""
	if a.Schedule == "" || a.Paused != 0 || a.DeletedAt != 0 {
		return
	}
	s, err := scheduler.Parse(a.Schedule, a.TimeZone, now)
	if err != nil {
		a.ScheduleError = err.Error()
		return
	}
	anchor := time.UnixMicro(a.AnchorAt)
	if next := s.Next(anchor, anchor); !next.IsZero() {
		a.NextSlotAt = db.Micros(next)
	}
}

// Tick decides every slot that is due at now: each agent in a separate transaction, so that a
// broken one never stops the others (contract 3.3). It returns the first slot of any agent
// that is later than now.
func (e *Engine) Tick(ctx context.Context, now time.Time) (time.Time, error) {
	if e.replan.Swap(false) {
		if err := e.planAll(ctx, now); err != nil {
			e.replan.Store(true)
			return time.Time{}, fmt.Errorf("derive the next slots again: %w", err)
		}
	}
	return e.handle(ctx, now, timed{
		what: "decide a slot",
		due: func(ctx context.Context, tx *db.ReadTx, now, n int64) ([]int64, error) {
			rows, err := tx.DueAgents(ctx, queries.DueAgentsParams{Now: now, N: n})
			return keysOf(rows, func(id api.AgentID) int64 { return int64(id) }), err
		},
		do:   func(tx *db.Tx, id int64) error { return e.tickAgent(tx, api.AgentID(id)) },
		next: func(ctx context.Context, tx *db.ReadTx, now int64) (int64, error) { return tx.NextAgentSlot(ctx, now) },
	})
}

// decision is what happens to the due slots of one agent.
type decision struct {
	of      slots
	verdict api.Verdict
	reason  string
	session api.SessionID
	first   int64
	last    int64
	count   int64
}

func (e *Engine) tickAgent(tx *db.Tx, id api.AgentID) error {
	row, err := tx.Agent(tx.Context(), id)
	if db.None(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read agent %s: %w", id, err)
	}
	a, was := &row, row.AnchorAt
	now := db.Micros(tx.Now)
	if a.Paused != 0 || a.NextSlotAt == 0 || a.NextSlotAt > now {
		return nil
	}
	s, err := scheduler.Parse(a.Schedule, a.TimeZone, tx.Now)
	if err != nil {
		return e.brokenSchedule(tx, a, err)
	}
	due, ok := s.Latest(time.UnixMicro(a.AnchorAt), tx.Now)
	if ok {
		a.AnchorAt = db.Micros(due.Last)
	}
	plan(a, tx.Now)
	n, err := tx.MoveAnchor(tx.Context(), queries.MoveAnchorParams{
		AnchorAt: a.AnchorAt, NextSlotAt: a.NextSlotAt, ScheduleError: a.ScheduleError, ID: a.ID, FromAnchor: was,
	})
	if err != nil {
		return fmt.Errorf("move the anchor of agent %s: %w", a.ID, err)
	}
	if n == 0 || !ok {
		return nil // another coordinator on this file was first, or the slot was only derived again
	}
	return e.decide(tx, a, slots{s, time.UnixMicro(was)}, due)
}

func (e *Engine) brokenSchedule(tx *db.Tx, a *agentRow, cause error) error {
	n, err := tx.MoveAnchor(tx.Context(), queries.MoveAnchorParams{
		AnchorAt: a.AnchorAt, NextSlotAt: 0, ScheduleError: cause.Error(), ID: a.ID, FromAnchor: a.AnchorAt,
	})
	if err != nil || n == 0 {
		return err
	}
	e.log.Error("an agent's schedule can't be read; it never fires until it is mended", "agent", a.ID.String(), "error", cause)
	return e.logAgent(tx, a, api.ActorScheduler, api.EventScheduleError, api.EventData{"error": cause.Error()})
}

// decide settles the slots that came due since the anchor: the last one fires unless it is too
// late or an earlier run still lasts, the older ones are folded into it (contract 3.3, 3.5,
// 3.6).
func (e *Engine) decide(tx *db.Tx, a *agentRow, s slots, due scheduler.Due) error {
	now := db.Micros(tx.Now)
	d, ok, err := e.undecided(tx, a, s, due)
	if err != nil || !ok {
		return err
	}
	if d, err = e.skip(tx, a, s, d); err != nil || d.count == 0 {
		return err
	}
	late := now - d.last
	switch {
	case late <= db.Span(e.cfg.OnTime):
	case a.CatchUp == api.CatchUpNone:
		d.verdict, d.reason = api.SlotMissed, reasonMissed
		return e.note(tx, a, d)
	case a.CatchUpWindow > 0 && late > db.Seconds(a.CatchUpWindow):
		d.verdict, d.reason = api.SlotMissed, fmt.Sprintf("The coordinator was away for longer than the catch-up window of %d seconds.", a.CatchUpWindow)
		return e.note(tx, a, d)
	}
	if a.CatchUp == api.CatchUpNone && d.count > 1 {
		older := s.within(d.first, d.last-1)
		older.verdict, older.reason = api.SlotMissed, reasonMissed
		if err := e.note(tx, a, older); err != nil {
			return err
		}
		d.first, d.count = d.last, 1
	}
	return e.fire(tx, a, d)
}

// fire makes the slot's session, unless the overlap rule says otherwise.
func (e *Engine) fire(tx *db.Tx, a *agentRow, d decision) error {
	waitingOnes, err := tx.WaitingScheduled(tx.Context(), a.ID)
	if err != nil {
		return fmt.Errorf("read waiting runs of agent %s: %w", a.ID, err)
	}
	held := false
	switch busy := a.Running > 0; {
	case e.fits() != nil:
		d.verdict, d.reason = api.SlotSkipped, reasonFull
		return e.note(tx, a, d)
	case a.Overlap == api.OverlapAllow:
	case a.Overlap == api.OverlapReplace:
		if held, err = e.replace(tx, a); err != nil {
			return err
		}
	case a.Overlap == api.OverlapQueueOne && len(waitingOnes) > 0:
		d.verdict, d.session = api.SlotFolded, waitingOnes[0].ID
		d.reason = "A run of this agent is waiting already."
		return e.note(tx, a, d)
	case a.Overlap == api.OverlapQueueOne:
		held = busy
	case busy || len(waitingOnes) > 0:
		d.verdict = api.SlotSkipped
		if d.session, d.reason, err = e.inTheWayOf(tx, a, waitingOnes); err != nil {
			return err
		}
		return e.note(tx, a, d)
	}
	var in api.SessionInput
	if a.Jitter > 0 {
		in.NotBefore = api.At(d.last + jitter(a, d.last))
	}
	s, err := e.newSession(tx, a, newSession{by: api.ByScheduler, actor: api.ActorScheduler, at: d.last, in: in, attempt: 1, held: held})
	if errors.Is(err, errSlotTaken) {
		return e.duplicate(tx, a, d)
	}
	if err != nil {
		return err
	}
	d.verdict, d.session = api.SlotFired, s.ID
	if d.count > 1 {
		d.reason = fmt.Sprintf("The coordinator was away; %d older slots are folded into this run.", d.count-1)
	}
	return e.note(tx, a, d)
}

// inTheWayOf says which session keeps a slot from firing, and what it does: one that lasts, or
// one that has yet to begin.
func (e *Engine) inTheWayOf(tx *db.Tx, a *agentRow, waits []queries.WaitingScheduledRow) (api.SessionID, string, error) {
	running, err := tx.HoldersOfAgent(tx.Context(), queries.HoldersOfAgentParams{AgentID: a.ID, N: 1})
	switch {
	case err != nil:
		return 0, "", fmt.Errorf("read what runs of agent %s: %w", a.ID, err)
	case len(running) > 0 && running[0].Session.Status.Running():
		return running[0].Session.ID, "An earlier run still lasts.", nil
	case len(running) > 0:
		return running[0].Session.ID, "An earlier run is over, but its worker hasn't confirmed yet that its processes are gone.", nil
	case len(waits) == 0:
		return 0, "An earlier run still lasts.", nil
	}
	s, err := tx.Session(tx.Context(), waits[0].ID)
	if err != nil {
		return 0, "", fmt.Errorf("read session %s: %w", waits[0].ID, err)
	}
	switch {
	case s.Status == api.Stale:
		return s.ID, "An earlier run lost its worker and waits to be taken up again.", nil
	case s.Status == api.Pending:
		return s.ID, "An earlier run waits and has not begun.", nil
	case s.Fence > 0:
		return s.ID, "An earlier run was given back by its worker and waits to be taken up again.", nil
	}
	return s.ID, "An earlier run has not begun: no worker has taken it.", nil
}

// replace cancels the agent's scheduled sessions that haven't ended. It reports
// whether the new one has to wait until they are gone.
func (e *Engine) replace(tx *db.Tx, a *agentRow) (held bool, err error) {
	rows, err := tx.OpenOfAgent(tx.Context(), a.ID)
	if err != nil {
		return false, fmt.Errorf("read runs of agent %s: %w", a.ID, err)
	}
	for _, r := range rows {
		s, err := tx.Session(tx.Context(), r.ID)
		if err != nil {
			return false, fmt.Errorf("read session %s: %w", r.ID, err)
		}
		if s.TriggeredBy != api.ByScheduler || s.Status.Terminal() {
			continue
		}
		if err := e.cancelTx(tx, &s, api.ActorScheduler, "replaced", "A newer run of this agent took its place."); err != nil {
			return false, err
		}
	}
	n, err := tx.UndrainedScheduled(tx.Context(), queries.UndrainedScheduledParams{AgentID: a.ID})
	if err != nil {
		return false, fmt.Errorf("read what still drains of agent %s: %w", a.ID, err)
	}
	again, err := tx.Agent(tx.Context(), a.ID)
	if err != nil {
		return false, fmt.Errorf("read agent %s: %w", a.ID, err)
	}
	a.Running = again.Running
	return n > 0, nil
}

// duplicate drops a slot whose session already exists.
func (e *Engine) duplicate(tx *db.Tx, a *agentRow, d decision) error {
	existing, err := tx.SessionByTrigger(tx.Context(), queries.SessionByTriggerParams{AgentID: a.ID, TriggeredAt: d.last})
	if err != nil {
		return fmt.Errorf("read the session of slot %s: %w", clock(d.last), err)
	}
	e.duplicates.Add(1)
	if existing.TriggeredBy == api.ByScheduler {
		return nil
	}
	e.log.Warn("a slot's instant is taken by a session that the scheduler didn't make", "agent", a.ID.String(), "session", existing.ID.String())
	d.verdict, d.session, d.reason = api.SlotSkipped, existing.ID, "Another session of that instant exists."
	return e.note(tx, a, d)
}

// note writes verdicts into the ledger; a run of equal ones is one row, of slots that follow
// each other, so that a row can be counted again.
func (e *Engine) note(tx *db.Tx, a *agentRow, d decision) error {
	now := db.Micros(tx.Now)
	e.observe(tx, func(o Observer) { o.Decided(d.verdict, d.count) })
	if d.verdict != api.SlotFired {
		last, err := tx.LatestLedger(tx.Context(), queries.LatestLedgerParams{AgentID: a.ID, Before: d.first})
		if err != nil && !db.None(err) {
			return fmt.Errorf("read the ledger of agent %s: %w", a.ID, err)
		}
		if err == nil && last.Verdict == d.verdict && last.Reason == d.reason && last.SessionID == d.session && d.of.follows(d.first, last.LastSlot) {
			return db.One(tx.GrowLedger(tx.Context(), queries.GrowLedgerParams{LastSlot: d.last, Slots: d.count, DecidedAt: now, ID: last.ID}))
		}
	}
	err := db.One(tx.InsertLedger(tx.Context(), queries.InsertLedgerParams{
		ID: api.LedgerID(tx.NewID()), AgentID: a.ID, Verdict: d.verdict, Reason: d.reason,
		FirstSlot: d.first, LastSlot: d.last, Slots: d.count, SessionID: d.session, DecidedAt: now,
	}))
	if err != nil {
		return fmt.Errorf("note slot %s of agent %s: %w", clock(d.last), a.ID, err)
	}
	data := api.EventData{"verdict": d.verdict, "slot": api.At(d.last).String(), "count": d.count}
	if d.session != 0 {
		data["session"] = d.session.String()
	}
	return e.logAgent(tx, a, api.ActorScheduler, api.EventSlotDecided, data)
}

// planAll derives every next slot again: at start, after a clock step and with
// new zone data. Only agents whose slot or anchor changes are written.
func (e *Engine) planAll(ctx context.Context, now time.Time) error {
	return e.eachDue(ctx, db.Micros(now), timed{what: "derive an agent's next slot", do: e.replanAgent, due: func(ctx context.Context, tx *db.ReadTx, _, n int64) (changed []int64, err error) {
		rows, err := tx.ScheduledAgents(ctx)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			a := rows[i]
			if e.replanned(&a, now); a.AnchorAt != rows[i].AnchorAt || a.NextSlotAt != rows[i].NextSlotAt || a.ScheduleError != rows[i].ScheduleError {
				changed = append(changed, int64(a.ID))
			}
			if int64(len(changed)) == n {
				break
			}
		}
		return changed, nil
	}})
}

// replanned plans the agent as of now. An anchor more than a tick ahead, left by a clock that
// was set back, is clamped to now (contract 3.3).
func (e *Engine) replanned(a *agentRow, now time.Time) (clamped bool) {
	if a.AnchorAt > db.Micros(now)+db.Span(e.cfg.TickEvery) {
		a.AnchorAt, clamped = wholeSecond(db.Micros(now)), true
	}
	plan(a, now)
	return clamped
}

func (e *Engine) replanAgent(tx *db.Tx, id int64) error {
	was, err := tx.Agent(tx.Context(), api.AgentID(id))
	if db.None(err) {
		return nil
	}
	if err != nil {
		return err
	}
	a := was
	if e.replanned(&a, tx.Now) {
		if err := e.recall(tx, &was, db.Micros(tx.Now)); err != nil {
			return err
		}
		e.log.Warn("an agent's anchor lay in the future and is set to now", "agent", a.ID.String())
	}
	n, err := tx.MoveAnchor(tx.Context(), queries.MoveAnchorParams{
		AnchorAt: a.AnchorAt, NextSlotAt: a.NextSlotAt, ScheduleError: a.ScheduleError, ID: a.ID, FromAnchor: was.AnchorAt,
	})
	if err != nil || n == 0 || a.ScheduleError == "" || was.ScheduleError != "" {
		return err
	}
	return e.logAgent(tx, &a, api.ActorScheduler, api.EventScheduleError, api.EventData{"error": a.ScheduleError})
}

// jitter is a delay below the agent's jitter that every coordinator computes alike.
func jitter(a *agentRow, slot int64) int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d", a.ID, slot)
	return int64(h.Sum64() % uint64(db.Seconds(a.Jitter)+1))
}
