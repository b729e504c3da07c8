package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stint/account"
	"stint/api"
	"stint/db"
	"stint/queries"
)

const (
	maxInstructions = 2000 // characters, of agents and workers alike
	maxFolderKey    = 2000 // characters
)

// RegisterWorker finds or creates a worker by (workspace, agent, user, name) and makes the
// caller's process its current instance. A second live process is refused unless it proves
// that it follows the first one, and then takes its claims over. What a person changed in the
// record stays. Errors: invalid, forbidden, worker_running; not_found for the agent, and for a
// record that the input names by its id and that was deleted.
func (e *Engine) RegisterWorker(ctx context.Context, c Caller, agentRef string, in api.WorkerInput) (out api.Registered, err error) {
	if err := checkWorker(&in); err != nil {
		return out, err
	}
	err = e.writeAs(ctx, c, func(tx *db.Tx) error {
		a, err := agentOf(tx.Context(), tx, c, agentRef)
		if err != nil {
			return err
		}
		owner := c.UserID
		needed := account.RunLocalWorkers
		if a.Mode == api.Cloud {
			owner, needed = 0, account.RunCloudWorkers
		}
		if in.Mode == "" {
			in.Mode = a.Mode
		}
		if in.Mode != a.Mode {
			return api.BadField("mode", fmt.Sprintf("must be %s, as the agent is", a.Mode))
		}
		if err := c.May(needed); err != nil {
			return err
		}
		if err := e.workerFits(a, in); err != nil {
			return err
		}
		w, claims, err := e.registerTx(tx, c, a, owner, in)
		if err != nil {
			return err
		}
		out = api.Registered{
			Claims: claims, ServerTime: api.At(db.Micros(tx.Now)),
			BeatSeconds: int64(e.cfg.BeatEvery / time.Second), OfflineAfterSeconds: int64(e.cfg.OfflineAfter / time.Second),
		}
		out.Worker, err = e.presentWorker(tx.Context(), tx, w, a.Slug)
		return err
	})
	return out, err
}

func (e *Engine) registerTx(tx *db.Tx, c Caller, a *agentRow, owner api.UserID, in api.WorkerInput) (*workerRow, []api.Claim, error) {
	now := db.Micros(tx.Now)
	types := make(api.Labels, 0, len(in.Types))
	for _, t := range in.Types {
		types = append(types, string(t))
	}
	w, found, err := findWorker(tx, a, owner, in)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		w, err := e.newWorker(tx, c, a, owner, in, types.Normal())
		return w, []api.Claim{}, err
	}
	in = withPins(&w, in)
	instructionsSetBy := w.InstructionsSetBy
	if !w.Pinned.Has(api.Labels{pinInstructions}) {
		instructionsSetBy = c.InPerson() // they are the words of the caller's own process
	}
	if err := e.mayReplace(&w, in, now); err != nil {
		return nil, nil, err
	}
	follows := w.InstanceID == in.InstanceID || (in.PreviousInstanceID != "" && in.PreviousInstanceID == w.InstanceID)
	if !follows {
		// A stranger to the claims of the one before: they end, and their sessions are
		// claimable again.
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
	err = db.One(tx.ReregisterWorker(tx.Context(), queries.ReregisterWorkerParams{
		InstanceID: in.InstanceID, ProcessID: in.ProcessID, Mode: a.Mode, Instructions: in.Instructions,
		InstructionsSetBy: instructionsSetBy, Types: types.Normal(),
		Labels: in.Labels, MaxConcurrent: in.MaxConcurrent, Platform: in.Platform, Version: in.Version, FolderKey: in.FolderKey,
		FolderShared: db.Flag(in.FolderShared), Staging: in.StagingSeconds, ProcessSlots: in.ProcessSlots, TaskUpdates: *in.TaskUpdates, Land: in.Land, Desired: w.Desired, LastBeatAt: now, ID: w.ID, FromInstanceID: w.InstanceID,
	}))
	if err != nil {
		return nil, nil, fmt.Errorf("register worker %s again: %w", w.ID, err)
	}
	if _, err := tx.MoveClaimsToInstance(tx.Context(), queries.MoveClaimsToInstanceParams{InstanceID: in.InstanceID, WorkerID: w.ID}); err != nil {
		return nil, nil, fmt.Errorf("hand claims of worker %s over: %w", w.ID, err)
	}
	again, err := tx.Worker(tx.Context(), w.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("read worker %s: %w", w.ID, err)
	}
	claims, err := e.liveClaims(tx, &again, a)
	if err != nil {
		return nil, nil, err
	}
	return &again, claims, e.logWorker(tx, &again, c.Actor(), api.EventWorkerRegistered, nil)
}

// newWorker puts the record of a worker that registers for the first time.
func (e *Engine) newWorker(tx *db.Tx, c Caller, a *agentRow, owner api.UserID, in api.WorkerInput, types api.Labels) (*workerRow, error) {
	w := workerRow{
		ID: api.WorkerID(tx.NewID()), WorkspaceID: a.WorkspaceID, AgentID: a.ID, OwnerUserID: owner, Mode: a.Mode, Name: in.Name,
		InstanceID: in.InstanceID, ProcessID: in.ProcessID, Instructions: in.Instructions, InstructionsSetBy: c.InPerson(), Types: types,
		Labels: in.Labels, MaxConcurrent: in.MaxConcurrent, Platform: in.Platform, Version: in.Version,
		FolderKey: in.FolderKey, FolderShared: db.Flag(in.FolderShared), State: api.Online, Desired: api.DesiredRunning,
		LastBeatAt: db.Micros(tx.Now), CreatedAt: db.Micros(tx.Now), Staging: in.StagingSeconds, ProcessSlots: in.ProcessSlots,
		TaskUpdates: *in.TaskUpdates, Land: in.Land,
	}
	err := tx.InsertWorker(tx.Context(), queries.InsertWorkerParams(w))
	if err != nil {
		return nil, fmt.Errorf("insert worker %q: %w", in.Name, err)
	}
	return &w, e.logWorker(tx, &w, c.Actor(), api.EventWorkerRegistered, nil)
}

// findWorker finds the record that a process registers as: the one whose id it kept, if that
// still has the name that the process gives itself or the one that a person gave it; else the
// one with that name. A deleted id is 404, because the process has to ask somebody before it
// creates a new record (contract 5.2).
func findWorker(tx *db.Tx, a *agentRow, owner api.UserID, in api.WorkerInput) (w workerRow, found bool, err error) {
	if in.WorkerID != 0 {
		w, err = workerEvenDeleted(tx.Context(), tx, in.WorkerID)
		if db.None(err) || (err == nil && (w.AgentID != a.ID || w.OwnerUserID != owner || w.DeletedAt != 0)) {
			return w, false, db.NotFound("worker")
		}
		if err != nil {
			return w, false, fmt.Errorf("read worker %s: %w", in.WorkerID, err)
		}
		if w.Name == in.Name || w.Pinned.Has(api.Labels{pinName}) {
			return w, true, nil
		}
	}
	w, err = tx.WorkerByName(tx.Context(), queries.WorkerByNameParams{AgentID: a.ID, OwnerUserID: owner, Name: in.Name})
	if db.None(err) {
		return workerRow{}, false, nil
	}
	if err != nil {
		return w, false, fmt.Errorf("read worker %q: %w", in.Name, err)
	}
	return w, true, nil
}

// mayReplace refuses a second live process: one whose predecessor has beaten within the stale
// limit and that can't prove that it follows it (contract 5.1).
func (e *Engine) mayReplace(w *workerRow, in api.WorkerInput, now int64) error {
	if w.InstanceID == in.InstanceID || (in.PreviousInstanceID != "" && w.InstanceID == in.PreviousInstanceID) {
		return nil
	}
	if w.State == api.Offline || w.LastBeatAt+db.Span(e.cfg.StaleAfter) <= now {
		return nil
	}
	return &api.Error{
		Code: api.CodeWorkerRunning, WorkerID: w.ID, Holder: w.Name,
		Detail:    fmt.Sprintf("A worker named %q of this agent is running: its last sign of life is from %s. Stop it, or use another name.", w.Name, clock(w.LastBeatAt)),
		ExpiresAt: api.At(w.LastBeatAt + db.Span(e.cfg.StaleAfter)),
	}
}

// liveClaims returns the claims that a new instance takes over.
func (e *Engine) liveClaims(tx *db.Tx, w *workerRow, a *agentRow) ([]api.Claim, error) {
	rows, err := tx.LiveClaimsOfWorker(tx.Context(), w.ID)
	if err != nil {
		return nil, fmt.Errorf("read claims of worker %s: %w", w.ID, err)
	}
	out := []api.Claim{}
	for i := range rows {
		s, err := tx.Session(tx.Context(), rows[i].SessionID)
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", rows[i].SessionID, err)
		}
		c, err := e.answer(tx, &rows[i], &s, a, term{seconds: rows[i].LeaseSeconds})
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
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
		if _, known := t.Describe(); !known {
			v.Add("types", fmt.Sprintf("%q is no agent type: use %s", t, api.AgentTypeNames()))
		}
	}
	checkLabels(&v, &in.Labels)
	if in.Land == "" {
		in.Land = api.LandOff
	}
	if !slices.Contains(api.LandLevels, in.Land) {
		v.Add("land", "must be "+api.OrList(api.LandLevels))
	}
	if in.TaskUpdates == nil {
		in.TaskUpdates = &api.TaskUpdates
	} else {
		left := slices.Clone(*in.TaskUpdates)
		checkTaskUpdates(&v, &left)
		in.TaskUpdates = &left
	}
	checkFacts(&v, in.Platform, in.Version)
	if in.StagingSeconds < 0 || in.StagingSeconds > maxStaging {
		v.Add("stagingSeconds", fmt.Sprintf("must be 0 to %d seconds", maxStaging))
	}
	if in.ProcessSlots < 0 || in.ProcessSlots > 1000 {
		v.Add("processSlots", "must be 0 to 1000")
	}
	for field, text := range map[string]string{"instanceId": in.InstanceID, "previousInstanceId": in.PreviousInstanceID, "processId": in.ProcessID} {
		if len(text) > 100 {
			v.Add(field, "has more than 100 characters")
		}
		v.CheckLine(field, text)
	}
	v.CheckLine("folderKey", in.FolderKey)
	if len(in.FolderKey) > maxFolderKey || strings.ContainsAny(in.FolderKey, "%_") {
		v.Add("folderKey", fmt.Sprintf("must have at most %d characters, none of them %% or _", maxFolderKey))
	}
	return v.Err()
}

// ServesAgent refuses a worker that isn't one of the agent's, by its id or slug.
// Errors: not_found.
func (e *Engine) ServesAgent(ctx context.Context, c Caller, id api.WorkerID, agent string) error {
	return e.store.ReadRights(ctx, func(tx *db.ReadTx) error {
		w, err := tx.Worker(ctx, id)
		if db.None(err) || (err == nil && !seesWorker(c, &w)) {
			return db.NotFound("worker")
		}
		if err != nil {
			return fmt.Errorf("read worker %s: %w", id, err)
		}
		if agent == w.AgentID.String() {
			return nil
		}
		a, err := agentEvenDeleted(ctx, tx, w.AgentID)
		if err != nil {
			return fmt.Errorf("read agent %s: %w", w.AgentID, err)
		}
		if agent != a.Slug {
			return api.Refuse(api.CodeNotFound, "This agent has no such worker.")
		}
		return nil
	})
}

// DeleteWorker deletes a worker; its claims end and their sessions go stale at once, without
// counting as lapses. Rights: only the owner of a local worker, an admin for a cloud one.
// Errors: forbidden, not_found.
func (e *Engine) DeleteWorker(ctx context.Context, c Caller, id api.WorkerID) error {
	return e.writeAs(ctx, c, func(tx *db.Tx) error {
		w, err := ownWorker(tx.Context(), tx, c, id)
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
	if err := e.dropLandings(tx, w, c.Actor()); err != nil {
		return err
	}
	if _, err := tx.DropStandingApprovals(tx.Context(), w.ID); err != nil {
		return fmt.Errorf("forget the standing approvals of worker %s: %w", w.ID, err)
	}
	if err := db.One(tx.DeleteWorker(tx.Context(), queries.DeleteWorkerParams{DeletedAt: db.Micros(tx.Now), ID: w.ID})); err != nil {
		return fmt.Errorf("delete worker %s: %w", w.ID, err)
	}
	return e.logWorker(tx, w, c.Actor(), api.EventWorkerDeleted, nil)
}
