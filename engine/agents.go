package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxName        = 100      // characters
	maxDescription = 4 << 10  // bytes
	maxCommand     = 64 << 10 // bytes of argv
	maxSeconds     = 365 * 24 * 3600
)

var (
	labelForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,62}$`)
	envForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// DefaultAgent is a new agent where its creator sets nothing.
func (e *Engine) DefaultAgent() api.AgentInput { return e.cfg.DefaultAgent() }

// DefaultAgent is a new agent under these settings where its creator sets nothing.
func (cfg Config) DefaultAgent() api.AgentInput {
	return api.AgentInput{
		Mode: api.Local, Type: api.TypeCommand, TimeZone: "UTC", CatchUp: api.CatchUpLatest, Overlap: api.OverlapSkip,
		MaxConcurrent: 1, LeaseSeconds: int64(cfg.DefaultLease / time.Second), MaxLapses: 3, Labels: api.Labels{},
		TaskUpdates: slices.Clone(api.TaskUpdates),
	}
}

// CreateAgent creates an agent. Its schedule, if it has one, starts now: no past slot ever
// fires. Rights: admin. Errors: invalid with each field, slug_taken.
func (e *Engine) CreateAgent(ctx context.Context, c Caller, in api.AgentInput) (out api.Agent, err error) {
	if err := c.May(account.EditAgents); err != nil {
		return out, err
	}
	if in.Mode == api.Local && in.RunsAsUserID == 0 {
		in.RunsAsUserID = c.UserID
	}
	if err := checkAgent(&in, c, c.UserID, e.leases(), e.Now()); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		now := db.Micros(tx.Now)
		a := agentRow{ID: api.AgentID(tx.NewID()), WorkspaceID: c.WorkspaceID, RunSetBy: c.InPerson(), TimeoutsSetBy: c.InPerson(), Version: 1, CreatedAt: now, UpdatedAt: now}
		fill(&a, in)
		a.AnchorAt = wholeSecond(now)
		a.UnpausedAt = now
		if in.Paused {
			a.PausedAt, a.PausedReason = now, "paused at its creation"
		}
		plan(&a, tx.Now)
		if err := putAgent(tx, &a); err != nil {
			return err
		}
		if err := e.keepVersion(tx, c.Actor(), &a, api.EventAgentCreated); err != nil {
			return err
		}
		out = e.toAgent(&a, nil)
		return nil
	})
	return out, err
}

// EditAgent changes an agent: merge is applied to a copy of what a person sets and may be
// called more than once. A changed schedule or zone, and a resume, set the anchor to now;
// other edits leave it alone (contract 3.3). Slots that are due by the old schedule at that
// instant get their verdicts by it. Rights: admin. Errors: what merge returns, invalid,
// slug_taken, not_found.
func (e *Engine) EditAgent(ctx context.Context, c Caller, ref string, merge func(*api.AgentInput) error) (out api.Agent, err error) {
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		a, err := agentOf(tx.Context(), tx, c, ref)
		if err != nil {
			return err
		}
		if err := c.May(account.EditAgents); err != nil {
			return err
		}
		in := input(a)
		if err := merge(&in); err != nil {
			return err
		}
		_, err = e.editTx(tx, c, a, in, "")
		out = e.toAgent(a, nil)
		return err
	})
	return out, err
}

// editTx writes what a person changed, if anything, as a new version.
func (e *Engine) editTx(tx *db.Tx, c Caller, a *agentRow, in api.AgentInput, reason string) (changed bool, err error) {
	// A lease from before the minimum was raised may stay; claims lift it.
	if err := checkAgent(&in, c, a.RunsAsUserID, e.leases().with(a.LeaseSeconds), tx.Now); err != nil {
		return false, err
	}
	if err := e.leaseFits(tx, a, in.LeaseSeconds); err != nil {
		return false, err
	}
	before := input(a)
	if same(before, in) {
		return false, nil
	}
	if err := checkRunsAs(tx, a, in); err != nil {
		return false, err
	}
	now := db.Micros(tx.Now)
	if before.Schedule != in.Schedule || before.TimeZone != in.TimeZone {
		if err := e.settleDue(tx, a); err != nil {
			return false, err
		}
	}
	was := *a
	kind := fillEdited(a, in, c.InPerson(), reason, now)
	if before.Paused && a.AnchorAt != was.AnchorAt {
		if err := e.noteDue(tx, &was, api.SlotPaused, pausedWords(&was)); err != nil {
			return false, err
		}
	}
	a.ScheduleError = ""
	plan(a, tx.Now)
	a.Version++
	a.UpdatedAt = now
	if err := putAgent(tx, a); err != nil {
		return false, err
	}
	if err := carrySpend(tx, &was, a, now); err != nil {
		return false, err
	}
	if before.Overlap != in.Overlap {
		recheck := e.admitHeld
		if in.Overlap == api.OverlapAllow {
			recheck = e.letHeldGo
		}
		if err := recheck(tx, a.ID); err != nil {
			return false, err
		}
	}
	e.offer(a.ID)
	if err := e.keepVersion(tx, c.Actor(), a, kind); err != nil {
		return false, err
	}
	if a.Paused == 0 && (kind == api.EventAgentResumed || looser(before, in)) {
		return true, e.announce(tx, a, "agent_changed")
	}
	return true, nil
}

// fillEdited fills a row with what a person changed, and notes what follows from that: who set
// what is executed, since when it is paused or not, and a new anchor. by is 0 for a program. It
// returns the type of the event.
func fillEdited(a *agentRow, in api.AgentInput, by api.UserID, reason string, now int64) (kind string) {
	before := input(a)
	fill(a, in)
	// A worker finds its owner's own file on an agent by the slug, and with it the folder, the
	// sandbox and the policy: a new slug also changes what is executed.
	if before.Type != in.Type || before.Instructions != in.Instructions || before.Slug != in.Slug || !sameRun(before.Run, in.Run) {
		a.RunSetBy = by // contract 10.2
	}
	if before.TurnTimeoutSeconds != in.TurnTimeoutSeconds || before.StallTimeoutSeconds != in.StallTimeoutSeconds {
		a.TimeoutsSetBy = by
	}
	kind = api.EventAgentEdited
	switch {
	case before.Paused && !in.Paused:
		kind = api.EventAgentResumed
		a.PausedReason, a.UnpausedAt, a.FailuresInRow = "", now, 0
		a.AnchorAt = wholeSecond(now)
	case !before.Paused && in.Paused:
		kind = api.EventAgentPaused
		a.PausedReason, a.PausedAt = reason, now
	}
	if before.Schedule != in.Schedule || before.TimeZone != in.TimeZone {
		a.AnchorAt = wholeSecond(now)
	}
	return kind
}

// looser reports whether an edit may release what waited under the agent's previous rules.
// Whatever both forbid keeps waiting: each gate judges by the rule in force, and the edit
// itself lifts none, except that allow lifts overlap's.
func looser(was, is api.AgentInput) bool {
	spend := is.DailySpendLimitMicros
	return was.MaxConcurrent < is.MaxConcurrent || was.Type != is.Type || was.TimeZone != is.TimeZone ||
		was.DailySpendLimitMicros != 0 && (spend == 0 || spend > was.DailySpendLimitMicros)
}

// PauseAgent keeps new runs of the agent from being claimed; running ones aren't touched. It
// reports whether this call changed it.
func (e *Engine) PauseAgent(ctx context.Context, c Caller, ref, reason string) (api.Agent, bool, error) {
	if reason == "" {
		reason = "paused by " + c.Name
	}
	return e.setPaused(ctx, c, ref, true, reason)
}

// ResumeAgent lets the agent run again. Slots that passed meanwhile are noted in the ledger as
// paused and never fire.
func (e *Engine) ResumeAgent(ctx context.Context, c Caller, ref string) (api.Agent, bool, error) {
	return e.setPaused(ctx, c, ref, false, "")
}

func (e *Engine) setPaused(ctx context.Context, c Caller, ref string, paused bool, reason string) (out api.Agent, changed bool, err error) {
	var v api.Invalid
	v.CheckText("reason", reason, maxMessage)
	v.CheckWritten("reason", reason)
	if err := v.Err(); err != nil {
		return out, false, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		a, err := agentOf(tx.Context(), tx, c, ref)
		if err != nil {
			return err
		}
		if err := c.May(account.EditAgents); err != nil {
			return err
		}
		in := input(a)
		in.Paused = paused
		changed, err = e.editTx(tx, c, a, in, reason)
		out = e.toAgent(a, nil)
		return err
	})
	return out, changed, err
}

// DeleteAgent deletes an agent: its sessions that haven't ended are cancelled in
// the same transaction, its workers deleted. Rights: owner.
func (e *Engine) DeleteAgent(ctx context.Context, c Caller, ref string) error {
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		a, err := agentOf(tx.Context(), tx, c, ref)
		if err != nil {
			return err
		}
		if err := c.May(account.DeleteAgents); err != nil {
			return err
		}
		verdict, why := api.SlotMissed, "The agent was deleted before it could run."
		if a.Paused != 0 {
			verdict, why = api.SlotPaused, pausedWords(a)
		}
		if err := e.noteDue(tx, a, verdict, why); err != nil {
			return err
		}
		if err := e.cancelOpen(tx, a.ID, c.Actor(), "agent_deleted", "The agent was deleted by "+c.Name+"."); err != nil {
			return err
		}
		if err := e.endTasksOfAgent(tx, c, a); err != nil {
			return err
		}
		workers, err := tx.WorkersOfAgent(tx.Context(), a.ID)
		if err != nil {
			return fmt.Errorf("list workers of agent %s: %w", a.ID, err)
		}
		for i := range workers {
			if err := e.dropSignal(tx, workers[i].ID, signalDeleted); err != nil {
				return err
			}
			if err := db.One(tx.DeleteWorker(tx.Context(), queries.DeleteWorkerParams{DeletedAt: db.Micros(tx.Now), ID: workers[i].ID})); err != nil {
				return fmt.Errorf("delete worker %s: %w", workers[i].ID, err)
			}
			if err := e.logWorker(tx, &workers[i], c.Actor(), api.EventWorkerDeleted, nil); err != nil {
				return err
			}
		}
		if err := db.One(tx.DeleteAgent(tx.Context(), queries.DeleteAgentParams{DeletedAt: db.Micros(tx.Now), ID: a.ID})); err != nil {
			return fmt.Errorf("delete agent %s: %w", a.ID, err)
		}
		e.wakeAll(tx, a.ID)
		return e.logAgent(tx, a, c.Actor(), api.EventAgentDeleted, nil)
	})
}

var windowsAbs = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
