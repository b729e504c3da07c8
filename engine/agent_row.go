package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"stint/api"
	"stint/db"
	"stint/queries"
	"stint/scheduler"
)

// agentOf reads an agent by id or slug; one in another workspace is 404.
func agentOf(ctx context.Context, q queries.Querier, c Caller, ref string) (*agentRow, error) {
	var a agentRow
	var err error
	if id, perr := api.ParseAgentID(ref); perr == nil && id != 0 {
		a, err = q.Agent(ctx, id)
	} else {
		a, err = q.AgentBySlug(ctx, queries.AgentBySlugParams{WorkspaceID: c.WorkspaceID, Slug: strings.ToLower(strings.TrimSpace(ref))})
	}
	if db.None(err) || (err == nil && a.WorkspaceID != c.WorkspaceID) {
		return nil, db.NotFound("agent")
	}
	if err != nil {
		return nil, fmt.Errorf("read agent %q: %w", ref, err)
	}
	return &a, nil
}

func (e *Engine) toAgent(a *agentRow, setBy *queries.User) api.Agent {
	out := api.Agent{
		ID: a.ID, AgentInput: input(a), PausedReason: a.PausedReason, Running: a.Running, SpentTodayMicros: spentToday(a, db.Micros(e.Now())), ScheduleError: a.ScheduleError,
		FailuresInRow: a.FailuresInRow, Version: a.Version, CreatedAt: api.At(a.CreatedAt), UpdatedAt: api.At(a.UpdatedAt),
	}
	if setBy != nil {
		out.RunSetBy = setBy.Name
	}
	if a.Schedule != "" {
		out.AnchorAt = api.At(a.AnchorAt)
		out.NextSlotAt = api.At(a.NextSlotAt)
		out.SkipUntil = api.At(skipsUntil(a, db.Micros(e.Now())))
		if s, err := scheduler.Parse(a.Schedule, a.TimeZone, e.Now()); err == nil {
			out.ScheduleWords = s.Words()
		}
	}
	return out
}

// input is a copy of the part of an agent that a person sets. It shares no list with the row:
// decoding into it would otherwise change the row as well, and with it what the row is
// compared with and what others read.
func input(a *agentRow) api.AgentInput {
	run := a.Run
	run.Command, run.Env, run.Rules = slices.Clone(run.Command), slices.Clone(run.Env), slices.Clone(run.Rules)
	run.Models = slices.Clone(run.Models)
	return api.AgentInput{
		Slug: a.Slug, Name: a.Name, Description: a.Description, Mode: a.Mode, Type: a.Type, Run: run, Prompt: a.Prompt,
		Instructions: a.Instructions, Schedule: a.Schedule, TimeZone: a.TimeZone, CatchUp: a.CatchUp,
		CatchUpWindowSeconds: a.CatchUpWindow, Overlap: a.Overlap, JitterSeconds: a.Jitter, RunsAsUserID: a.RunsAsUserID,
		Paused: a.Paused != 0, MaxConcurrent: a.MaxConcurrent, Priority: a.Priority, Labels: slices.Clone(a.Labels),
		LeaseSeconds: a.LeaseSeconds, ReclaimDelaySeconds: a.ReclaimDelay, TurnTimeoutSeconds: a.TurnTimeout,
		StallTimeoutSeconds: a.StallTimeout, QueueTimeoutSeconds: a.QueueTimeout, MaxLapses: a.MaxLapses,
		SessionSpendLimitMicros: a.SessionSpendLimit, DailySpendLimitMicros: a.DailySpendLimit, TaskUpdates: slices.Clone(a.TaskUpdates),
	}
}

func fill(a *agentRow, in api.AgentInput) {
	a.Slug, a.Name, a.Description, a.Mode, a.Type, a.Run, a.Prompt = in.Slug, in.Name, in.Description, in.Mode, in.Type, in.Run, in.Prompt
	a.Instructions, a.Schedule, a.TimeZone, a.CatchUp = in.Instructions, in.Schedule, in.TimeZone, in.CatchUp
	a.CatchUpWindow, a.Overlap, a.Jitter, a.RunsAsUserID = in.CatchUpWindowSeconds, in.Overlap, in.JitterSeconds, in.RunsAsUserID
	a.Paused, a.MaxConcurrent, a.Priority, a.Labels = db.Flag(in.Paused), in.MaxConcurrent, in.Priority, in.Labels
	a.LeaseSeconds, a.ReclaimDelay, a.TurnTimeout = in.LeaseSeconds, in.ReclaimDelaySeconds, in.TurnTimeoutSeconds
	a.StallTimeout, a.QueueTimeout, a.MaxLapses = in.StallTimeoutSeconds, in.QueueTimeoutSeconds, in.MaxLapses
	a.SessionSpendLimit, a.DailySpendLimit, a.TaskUpdates = in.SessionSpendLimitMicros, in.DailySpendLimitMicros, in.TaskUpdates
}

func same(a, b api.AgentInput) bool {
	if !sameRun(a.Run, b.Run) || !slices.Equal(a.Labels, b.Labels) || !slices.Equal(a.TaskUpdates, b.TaskUpdates) {
		return false
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errors.Join(errX, errY) == nil && string(x) == string(y)
}

func sameRun(a, b api.Run) bool {
	x, y := a, b
	x.Command, x.Env, x.Rules, x.Models, y.Command, y.Env, y.Rules, y.Models = nil, nil, nil, nil, nil, nil, nil, nil
	return reflect.DeepEqual(x, y) && slices.Equal(a.Command, b.Command) && slices.Equal(a.Env, b.Env) && slices.Equal(a.Rules, b.Rules) && slices.Equal(a.Models, b.Models)
}

// putAgent writes a new agent, or the next version of one.
func putAgent(tx *db.Tx, a *agentRow) error {
	err := db.One(tx.PutAgent(tx.Context(), queries.PutAgentParams(*a)))
	if db.IsUnique(err) {
		return slugTaken(a.Slug)
	}
	if err != nil {
		return fmt.Errorf("write version %d of agent %s: %w", a.Version, a.ID, err)
	}
	return nil
}

func slugTaken(slug string) error {
	return &api.Error{
		Code: api.CodeSlugTaken, Detail: fmt.Sprintf("There is an agent %q already.", slug),
		Fields: []api.FieldError{{Field: "slug", Detail: "is taken in this workspace: choose another"}},
	}
}

// keepVersion stores the agent's present state, and logs the change.
func (e *Engine) keepVersion(tx *db.Tx, actor string, a *agentRow, kind string) error {
	snapshot, err := json.Marshal(input(a))
	if err != nil {
		return fmt.Errorf("write version %d of agent %s: %w", a.Version, a.ID, err)
	}
	err = tx.InsertAgentVersion(tx.Context(), queries.InsertAgentVersionParams{
		AgentID: a.ID, Version: a.Version, At: db.Micros(tx.Now), Actor: actor, Snapshot: string(snapshot),
		RunSetBy: a.RunSetBy, TimeoutsSetBy: a.TimeoutsSetBy,
	})
	if err != nil {
		return fmt.Errorf("keep version %d of agent %s: %w", a.Version, a.ID, err)
	}
	tx.AfterCommit(e.cron.Wake)
	tx.AfterCommit(e.unclaimed.Wake)
	tx.AfterCommit(e.watch.Wake)
	data := api.EventData{"version": a.Version}
	if a.PausedReason != "" {
		data["reason"] = a.PausedReason
	}
	return e.logAgent(tx, a, actor, kind, data)
}

func wholeSecond(us int64) int64 { return us - us%1_000_000 }
