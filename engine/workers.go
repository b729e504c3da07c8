package engine

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxInstructions = 2000 // characters, of agents and workers alike
	maxFolderKey    = 2000 // characters
)

// workerOf reads a worker that the caller may act as; a deleted or foreign one is 404.
func workerOf(ctx context.Context, q queries.Querier, c Caller, id api.WorkerID) (*workerRow, error) {
	w, err := q.Worker(ctx, id)
	if none(err) || (err == nil && !c.runs(&w)) {
		return nil, notFound("worker")
	}
	if err != nil {
		return nil, fmt.Errorf("read worker %s: %w", id, err)
	}
	return &w, nil
}

// sameInstance refuses a call of a process that another has replaced (contract 5.1).
func sameInstance(w *workerRow, instance string) error {
	if w.InstanceID == instance {
		return nil
	}
	return api.Refuse(api.CodeInstanceSuperseded, "Another process has registered as this worker since; this one must stop.")
}

// RegisterWorker finds or creates a worker by (workspace, agent, user, name) and
// makes the caller's process its current instance. A second live process is
// refused unless it proves that it follows the first one, and then takes its
// claims over. What a person changed of the record stays. Errors: invalid,
// forbidden, worker_running; not_found for the agent, and for a record that the
// input names by its id and that was deleted.
func (e *Engine) RegisterWorker(ctx context.Context, c Caller, agentRef string, in api.WorkerInput) (out api.Registered, err error) {
	if err := checkWorker(&in); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		a, err := agentOf(wctx(), tx, c, agentRef)
		if err != nil {
			return err
		}
		owner := c.UserID
		needed := mayRunLocalWorkers
		if a.Mode == api.Cloud {
			owner, needed = 0, mayRunCloudWorkers
		}
		if in.Mode == "" {
			in.Mode = a.Mode
		}
		if in.Mode != a.Mode {
			return &api.Error{
				Code: api.CodeInvalid, Detail: "One field is not valid.",
				Fields: []api.FieldError{{Field: "mode", Detail: fmt.Sprintf("must be %s, as the agent is", a.Mode)}},
			}
		}
		if err := c.may(needed); err != nil {
			return err
		}
		w, claims, err := e.registerTx(tx, c, a, owner, in)
		if err != nil {
			return err
		}
		out = api.Registered{
			Claims: claims, ServerTime: api.At(micros(tx.Now)),
			BeatSeconds: int64(e.cfg.BeatEvery / time.Second), OfflineAfterSeconds: int64(e.cfg.OfflineAfter / time.Second),
		}
		out.Worker, err = e.presentWorker(wctx(), tx, w, a.Slug)
		return err
	})
	return out, err
}

func (e *Engine) registerTx(tx *db.Tx, c Caller, a *agentRow, owner api.UserID, in api.WorkerInput) (*workerRow, []api.Claim, error) {
	now := micros(tx.Now)
	types := make(api.Labels, 0, len(in.Types))
	for _, t := range in.Types {
		types = append(types, string(t))
	}
	w, found, err := findWorker(tx, a, owner, in)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		w = workerRow{
			ID: api.WorkerID(tx.NewID()), WorkspaceID: a.WorkspaceID, AgentID: a.ID, OwnerUserID: owner, Mode: a.Mode, Name: in.Name,
			InstanceID: in.InstanceID, ProcessID: in.ProcessID, Instructions: in.Instructions, Types: types.Normal(),
			Labels: in.Labels, MaxConcurrent: in.MaxConcurrent, Platform: in.Platform, Version: in.Version,
			FolderKey: in.FolderKey, FolderShared: flag(in.FolderShared), State: api.Online, Desired: api.DesiredRunning,
			LastBeatAt: now, CreatedAt: now,
		}
		err := tx.InsertWorker(wctx(), queries.InsertWorkerParams{
			ID: w.ID, WorkspaceID: w.WorkspaceID, AgentID: w.AgentID, OwnerUserID: w.OwnerUserID, Mode: w.Mode, Name: w.Name,
			InstanceID: w.InstanceID, ProcessID: w.ProcessID, Instructions: w.Instructions, Types: w.Types, Labels: w.Labels,
			MaxConcurrent: w.MaxConcurrent, Platform: w.Platform, Version: w.Version, FolderKey: w.FolderKey,
			FolderShared: w.FolderShared, LastBeatAt: now,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("insert worker %q: %w", in.Name, err)
		}
		return &w, []api.Claim{}, e.logWorker(tx, &w, c.actor(), evWorkerRegistered, nil)
	}
	in = withPins(&w, in)
	if err := e.mayReplace(&w, in, now); err != nil {
		return nil, nil, err
	}
	follows := w.InstanceID == in.InstanceID || (in.PreviousInstanceID != "" && in.PreviousInstanceID == w.InstanceID)
	if !follows {
		// A stranger to the claims of the one before: they end, and their sessions are claimable again.
		if err := e.endClaims(tx, &w, closedByLapse); err != nil {
			return nil, nil, err
		}
	}
	if err := e.endLapsed(tx, &w); err != nil {
		return nil, nil, err
	}
	if err := e.started(tx, &w, in.InstanceID); err != nil {
		return nil, nil, err
	}
	err = one(tx.ReregisterWorker(wctx(), queries.ReregisterWorkerParams{
		InstanceID: in.InstanceID, ProcessID: in.ProcessID, Mode: a.Mode, Instructions: in.Instructions, Types: types.Normal(),
		Labels: in.Labels, MaxConcurrent: in.MaxConcurrent, Platform: in.Platform, Version: in.Version, FolderKey: in.FolderKey,
		FolderShared: flag(in.FolderShared), Desired: w.Desired, LastBeatAt: now, ID: w.ID, FromInstanceID: w.InstanceID,
	}))
	if err != nil {
		return nil, nil, fmt.Errorf("register worker %s again: %w", w.ID, err)
	}
	if _, err := tx.MoveClaimsToInstance(wctx(), queries.MoveClaimsToInstanceParams{InstanceID: in.InstanceID, WorkerID: w.ID}); err != nil {
		return nil, nil, fmt.Errorf("hand claims of worker %s over: %w", w.ID, err)
	}
	again, err := tx.Worker(wctx(), w.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("read worker %s: %w", w.ID, err)
	}
	claims, err := e.liveClaims(tx, &again, a)
	if err != nil {
		return nil, nil, err
	}
	e.offerAll(tx, a.ID)
	return &again, claims, e.logWorker(tx, &again, c.actor(), evWorkerRegistered, nil)
}

// findWorker finds the record that a process registers as: the one whose id it
// kept, if that still has the name that the process gives itself or the one that
// a person gave it; else the one of that name. A deleted id is 404, because the
// process is to ask somebody before it makes a new record (contract 5.2).
func findWorker(tx *db.Tx, a *agentRow, owner api.UserID, in api.WorkerInput) (w workerRow, found bool, err error) {
	if in.WorkerID != 0 {
		w, err = tx.WorkerEvenDeleted(wctx(), in.WorkerID)
		if none(err) || (err == nil && (w.AgentID != a.ID || w.OwnerUserID != owner || w.DeletedAt != 0)) {
			return w, false, notFound("worker")
		}
		if err != nil {
			return w, false, fmt.Errorf("read worker %s: %w", in.WorkerID, err)
		}
		if w.Name == in.Name || w.Pinned.Has(api.Labels{pinName}) {
			return w, true, nil
		}
	}
	w, err = tx.WorkerByName(wctx(), queries.WorkerByNameParams{AgentID: a.ID, OwnerUserID: owner, Name: in.Name})
	if none(err) {
		return workerRow{}, false, nil
	}
	if err != nil {
		return w, false, fmt.Errorf("read worker %q: %w", in.Name, err)
	}
	return w, true, nil
}

// mayReplace refuses a second live process: one whose predecessor has beaten
// within the stale limit and that can't prove to follow it (contract 5.1).
func (e *Engine) mayReplace(w *workerRow, in api.WorkerInput, now int64) error {
	if w.InstanceID == in.InstanceID || (in.PreviousInstanceID != "" && w.InstanceID == in.PreviousInstanceID) {
		return nil
	}
	if w.State == api.Offline || w.LastBeatAt+span(e.cfg.StaleAfter) <= now {
		return nil
	}
	return &api.Error{
		Code: api.CodeWorkerRunning, WorkerID: w.ID, Holder: w.Name,
		Detail:    fmt.Sprintf("A worker named %q of this agent is running: its last sign of life is from %s. Stop it, or use another name.", w.Name, clock(w.LastBeatAt)),
		ExpiresAt: api.At(w.LastBeatAt + span(e.cfg.StaleAfter)),
	}
}

// liveClaims answers the claims that a new instance takes over.
func (e *Engine) liveClaims(tx *db.Tx, w *workerRow, a *agentRow) ([]api.Claim, error) {
	rows, err := tx.LiveClaimsOfWorker(wctx(), w.ID)
	if err != nil {
		return nil, fmt.Errorf("read claims of worker %s: %w", w.ID, err)
	}
	out := []api.Claim{}
	for i := range rows {
		s, err := tx.Session(wctx(), rows[i].SessionID)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", rows[i].SessionID, err)
		}
		c, err := e.answer(tx, &rows[i], w, &s, a, term{seconds: rows[i].LeaseSeconds})
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func checkWorkerText(v *api.Invalid, name, instructions string) {
	if n := utf8.RuneCountInString(name); n < 1 || n > 64 {
		v.Add("name", "must have 1 to 64 characters")
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		v.Add("name", "holds a control character")
	}
	if n := utf8.RuneCountInString(instructions); n > maxInstructions {
		v.Add("instructions", fmt.Sprintf("has %d characters; at most %d fit", n, maxInstructions))
	}
}

func checkLimit(v *api.Invalid, most int64) {
	if most < 1 || most > 1000 {
		v.Add("maxConcurrent", "must be 1 to 1000")
	}
}

func checkWorker(in *api.WorkerInput) error {
	var v api.Invalid
	checkWorkerText(&v, in.Name, in.Instructions)
	if in.MaxConcurrent == 0 {
		in.MaxConcurrent = 1
	}
	checkLimit(&v, in.MaxConcurrent)
	if len(in.Types) == 0 {
		in.Types = []api.AgentType{api.TypeCommand}
	}
	for _, t := range in.Types {
		if t != api.TypeCommand && t != api.TypeCodex && t != api.TypeClaudeCode {
			v.Add("types", fmt.Sprintf("%q is no agent type: use command, codex or claude_code", t))
		}
	}
	checkLabels(&v, &in.Labels)
	checkFacts(&v, in.Platform, in.Version)
	for field, text := range map[string]string{"instanceId": in.InstanceID, "previousInstanceId": in.PreviousInstanceID, "processId": in.ProcessID} {
		if len(text) > 100 {
			v.Add(field, "has more than 100 characters")
		}
	}
	if len(in.FolderKey) > maxFolderKey || strings.ContainsAny(in.FolderKey, "%_") {
		v.Add("folderKey", fmt.Sprintf("must have at most %d characters, none of them %% or _", maxFolderKey))
	}
	return v.Err()
}

// Workers lists workers, newest first: one's own, cloud ones, and for an admin all.
func (e *Engine) Workers(ctx context.Context, c Caller, agentRef string, page api.Page) (api.List[api.Worker], error) {
	out := api.List[api.Worker]{Items: []api.Worker{}}
	n, before, err := pageOf(page, math.MaxInt64)
	if err != nil {
		return out, err
	}
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		var agent api.AgentID
		if agentRef != "" {
			a, err := agentOf(ctx, tx, c, agentRef)
			if err != nil {
				return err
			}
			agent = a.ID
		}
		rows, err := tx.ListWorkers(ctx, queries.ListWorkersParams{
			WorkspaceID: c.WorkspaceID, Before: api.WorkerID(before), AgentID: int64(agent), Me: c.UserID,
			Admin: flag(c.Role.AtLeast(api.Admin)), N: n + 1,
		})
		if err != nil {
			return fmt.Errorf("list workers: %w", err)
		}
		list := listOf(rows, n, func(w workerRow) *workerRow { return &w }, func(w workerRow) int64 { return int64(w.ID) })
		out.NextCursor = list.NextCursor
		for _, w := range list.Items {
			a, err := tx.AgentEvenDeleted(ctx, w.AgentID)
			if err != nil {
				return fmt.Errorf("read agent %s: %w", w.AgentID, err)
			}
			shown, err := e.presentWorker(ctx, tx, w, a.Slug)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, shown)
		}
		return nil
	})
	return out, err
}

// Worker returns one worker. Errors: not_found.
func (e *Engine) Worker(ctx context.Context, c Caller, id api.WorkerID) (api.Worker, error) {
	out, _, err := e.workerNow(ctx, c, id)
	return out, err
}

func (e *Engine) workerNow(ctx context.Context, c Caller, id api.WorkerID) (out api.Worker, row *workerRow, err error) {
	err = e.store.Read(ctx, func(tx *db.ReadTx) error {
		w, err := tx.Worker(ctx, id)
		if none(err) || (err == nil && !c.seesWorker(&w)) {
			return notFound("worker")
		}
		if err != nil {
			return fmt.Errorf("read worker %s: %w", id, err)
		}
		row = &w
		out, err = e.showWorker(ctx, tx, &w)
		return err
	})
	return out, row, err
}

// DeleteWorker forgets a worker; its claims end and their sessions go stale at
// once, without counting as lapses. Rights: an admin or the worker's owner.
// Errors: forbidden, not_found.
func (e *Engine) DeleteWorker(ctx context.Context, c Caller, id api.WorkerID) error {
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := managedWorker(wctx(), tx, c, id, "delete this worker")
		if err != nil {
			return err
		}
		return e.deleteWorkerTx(tx, c, w)
	})
}

func (e *Engine) deleteWorkerTx(tx *db.Tx, c Caller, w *workerRow) error {
	if err := e.endClaims(tx, w, closedByDeletion); err != nil {
		return err
	}
	if err := e.dropSignal(tx, w.ID, signalDeleted); err != nil {
		return err
	}
	if err := one(tx.DeleteWorker(wctx(), queries.DeleteWorkerParams{DeletedAt: micros(tx.Now), ID: w.ID})); err != nil {
		return fmt.Errorf("delete worker %s: %w", w.ID, err)
	}
	return e.logWorker(tx, w, c.actor(), evWorkerDeleted, nil)
}

func (e *Engine) logWorker(tx *db.Tx, w *workerRow, actor, kind string, data api.EventData) error {
	if data == nil {
		data = api.EventData{}
	}
	data["worker"] = w.ID.String()
	return e.logEvent(tx, event{workspace: w.WorkspaceID, agent: w.AgentID, actor: actor, kind: kind, data: data})
}

// showWorker is presentWorker where the agent's slug isn't known yet.
func (e *Engine) showWorker(ctx context.Context, q queries.Querier, w *workerRow) (api.Worker, error) {
	a, err := q.AgentEvenDeleted(ctx, w.AgentID)
	if err != nil {
		return api.Worker{}, fmt.Errorf("read agent %s: %w", w.AgentID, err)
	}
	return e.presentWorker(ctx, q, w, a.Slug)
}

func (e *Engine) presentWorker(ctx context.Context, q queries.Querier, w *workerRow, agentSlug string) (api.Worker, error) {
	load, err := q.WorkerLoad(ctx, queries.WorkerLoadParams{WorkerID: w.ID})
	if err != nil {
		return api.Worker{}, fmt.Errorf("read the load of worker %s: %w", w.ID, err)
	}
	pending, err := pendingSignal(ctx, q, w.ID)
	if err != nil {
		return api.Worker{}, err
	}
	notices, err := noticesOf(w)
	if err != nil {
		return api.Worker{}, err
	}
	types := make([]api.AgentType, 0, len(w.Types))
	for _, t := range w.Types {
		types = append(types, api.AgentType(t))
	}
	return api.Worker{
		ID: w.ID, AgentID: w.AgentID, AgentSlug: agentSlug, Mode: w.Mode, OwnerUserID: w.OwnerUserID, Name: w.Name,
		Instructions: w.Instructions, Types: types, Labels: w.Labels, MaxConcurrent: w.MaxConcurrent, Platform: w.Platform,
		Version: w.Version, State: w.State, DesiredState: w.Desired, Running: load.Running,
		LastBeatAt: api.At(w.LastBeatAt), CreatedAt: api.At(w.CreatedAt),
		PendingSignal: pending, Notices: notices, NoticesSince: api.At(w.NoticesSince),
	}, nil
}
