package engine

import (
	"context"
	"fmt"
	"time"

	"stint/api"
	"stint/db"
	"stint/queries"
)

// The codes of gates: why a session or a worker can't be matched now.
const (
	gateNotBefore     = "not_before"
	gateAfter         = "after"
	gateOverlap       = "overlap"
	gateOpenPrompt    = "open_prompt"
	gateAgentPaused   = "agent_paused"
	gateAgentFull     = "agent_full"
	gateSpendLimit    = "spend_limit"
	gateUndrained     = "undrained"
	gateThreadBusy    = "thread_busy"
	gateReclaimDelay  = "reclaim_delay"
	gateFolderBusy    = "folder_busy"
	gateAffinity      = "affinity"
	gateNoWorker      = "no_worker"
	gateWorkerMode    = "worker_mode"
	gateWorkerOwner   = "worker_owner"
	gateWorkerType    = "worker_type"
	gateWorkerLabels  = "worker_labels"
	gateWorkerOffline = "worker_offline"
	gateWorkerSilent  = "worker_silent"
	gateWorkerPaused  = "worker_paused"
	gateWorkerStopped = "worker_stopped"
	gateWorkerFull    = "worker_full"
	gateWorkerDisk    = "worker_disk"
	gateReady         = "ready"
)

// facts is everything that decides whether a session may run, loaded in one transaction. The
// functions on it are pure: admission obeys them, claim obeys them, waitingFor prints them, so
// the three can't disagree (contract 2.4).
type facts struct {
	s           *sessionRow
	a           *agentRow
	predecessor api.Status // of the session named in after; empty when none is left
	overlap     int64      // runs that hold the gate overlap
	undrained   bool       // the session's own last claim isn't drained
	threadBusy  bool       // another session of the thread runs or isn't drained
	workers     []workerFacts
	holder      *holder // what runs in the way, only for the sentence; nil = not looked up, or not to be named
}

type workerFacts struct {
	w        *workerRow
	running  int64 // claims live or not drained
	inFolder int64 // sessions in the worker's plain folder, anybody's, live or not drained

	aside     bool  // it isn't asking: another caller is shown what it could take
	inProcess int64 // claims of its whole process, live or not drained; only loaded for one that is aside

	heldSince  int64 // when the request that is held for it came; 0 = it is asking now, which is a sign of life
	staleAfter int64 // micros of silence after which a worker is stale; for a held request
}

func hold(code, sentence string) *api.Waiting {
	return &api.Waiting{Code: code, Sentence: sentence}
}

func holdUntil(code, sentence string, until int64) *api.Waiting {
	return &api.Waiting{Code: code, Sentence: sentence, Until: api.At(until)}
}

// rowGate says what holds a session in pending, or nil. Once a time has come it no longer
// holds the session, even if the clock is set back.
func (f *facts) rowGate(now int64) *api.Waiting {
	s := f.s
	if s.NotBefore > now && s.Status == api.Pending {
		return holdUntil(gateNotBefore, "It was told not to start before "+clock(s.NotBefore)+".", s.NotBefore)
	}
	if s.AfterID != 0 && f.predecessor != "" && !f.predecessor.Terminal() {
		return hold(gateAfter, fmt.Sprintf("It waits for session %s, which is %s.", s.AfterID, f.predecessor))
	}
	if s.OverlapHeld != 0 && f.overlap > 0 {
		return hold(gateOverlap, "An earlier run of this agent still lasts; this one starts when it is over.")
	}
	if s.PromptID != 0 {
		return hold(gateOpenPrompt, "It waits for a person's answer.")
	}
	return nil
}

// gate says why this worker can't claim the session now, or nil: the one check behind every
// way to a claim and behind what a poll shows.
func (f *facts) gate(wf *workerFacts, now int64, exempt bool) *api.Waiting {
	if g := f.claimGate(now, exempt); g != nil {
		return g
	}
	return f.workerGate(wf, now, exempt)
}

// claimGate says what leaves a session queued or stale whoever asks, or nil. exempt lifts what
// doesn't apply to finishing work that is done (contract 4.1).
func (f *facts) claimGate(now int64, exempt bool) *api.Waiting {
	if g := f.rowGate(now); g != nil {
		return g
	}
	switch s, a := f.s, f.a; {
	case f.undrained:
		return hold(gateUndrained, "The last worker hasn't confirmed yet that its processes are gone.")
	case f.threadBusy:
		return f.held(gateThreadBusy, "Another session of the same thread is running.")
	case exempt:
		return nil
	case a.Paused != 0:
		return hold(gateAgentPaused, "The agent is paused"+because(a.PausedReason)+".")
	case spentAll(a, now):
		return holdUntil(gateSpendLimit, fmt.Sprintf("The agent has spent %s today, its limit.", api.Dollars(a.SpentOnDay)), sumEnds(a, now))
	case a.Running >= a.MaxConcurrent:
		return f.held(gateAgentFull, fmt.Sprintf("The agent is at its limit: %d of %d running.", a.Running, a.MaxConcurrent))
	case s.Status == api.Stale && s.ReclaimAt > now:
		return holdUntil(gateReclaimDelay, "After a lapse this agent waits until "+clock(s.ReclaimAt)+" before it is tried again.", s.ReclaimAt)
	case s.Status == api.Queued && s.ReclaimAt > now && s.Releases == 0:
		return holdUntil(gateReclaimDelay, "Stint was restored from a backup, and a worker of before may still run this: it waits until "+clock(s.ReclaimAt)+".", s.ReclaimAt)
	case s.Status == api.Queued && s.ReclaimAt > now:
		return holdUntil(gateReclaimDelay, fmt.Sprintf("Workers gave it back %d times in a row; it rests until %s before it is tried again.", s.Releases, clock(s.ReclaimAt)), s.ReclaimAt)
	}
	return nil
}

// workerGate says why this worker can't have the session, or nil.
func (f *facts) workerGate(wf *workerFacts, now int64, exempt bool) *api.Waiting {
	s, a, w := f.s, f.a, wf.w
	switch {
	case w.Mode != s.Mode:
		return hold(gateWorkerMode, fmt.Sprintf("The session is %s, the worker %s.", s.Mode, w.Mode))
	case s.Mode == api.Local && w.OwnerUserID != s.OwnerUserID:
		return hold(gateWorkerOwner, "A local session runs only on its owner's workers.")
	case !w.Types.Has(api.Labels{string(a.Type)}):
		return hold(gateWorkerType, fmt.Sprintf("The worker doesn't run agents of type %s.", a.Type))
	case !w.Labels.Has(s.Labels):
		return hold(gateWorkerLabels, fmt.Sprintf("The worker lacks a label that the agent asks for (%s).", api.Listed(s.Labels)))
	case w.Desired == api.DesiredStopped && !exempt: // before offline, which it then is as well
		return hold(gateWorkerStopped, "The worker was told to stop.")
	case w.State == api.Offline:
		return hold(gateWorkerOffline, "The worker is offline.")
	case exempt:
		return nil
	case wf.silent(now):
		return hold(gateWorkerSilent, "The worker has not been heard of since it asked, and may be frozen or gone.")
	case w.Desired == api.DesiredPaused:
		return hold(gateWorkerPaused, "The worker is paused.")
	case wf.running >= w.MaxConcurrent:
		return hold(gateWorkerFull, fmt.Sprintf("The worker is at its limit: %d of %d running.", wf.running, w.MaxConcurrent))
	case wf.inFolder > 0:
		return f.held(gateFolderBusy, "Another session is running in the same work folder, or in one above or below it.")
	case s.AffinityUntil > now && s.ProcessID != w.ProcessID:
		return holdUntil(gateAffinity, "It can be resumed where it ran before; until "+clock(s.AffinityUntil)+" it waits for that worker.", s.AffinityUntil)
	}
	return wf.asideGate()
}

// asideGate says why a worker that isn't asking won't take it. One that is asking right now is
// alive and has a slot, which it knows better; of one that isn't, neither is certain.
func (wf *workerFacts) asideGate() *api.Waiting {
	switch w := wf.w; {
	case !wf.aside:
		return nil
	case w.State == api.WorkerStale || w.LostAt > w.LastBeatAt:
		return hold(gateWorkerSilent, "The worker has not been heard of for a while, and may be frozen or gone.")
	case w.ProcessSlots > 0 && wf.inProcess >= w.ProcessSlots:
		return hold(gateWorkerFull, fmt.Sprintf("The worker is busy with other agents too: %d of the %d sessions that it runs at once are running.", wf.inProcess, w.ProcessSlots))
	}
	if text := noticeOf(wf.w, api.NoticeDiskLow); text != "" {
		return hold(gateWorkerDisk, text)
	}
	return nil
}

// silent reports whether a request that is still open may be all that is left of its worker:
// since it asked it has lost a claim or gone stale, without a sign of life. It would be given
// the very session that it has just lost. contract 4.7
func (wf *workerFacts) silent(now int64) bool {
	if wf.heldSince == 0 {
		return false
	}
	return wf.w.LostAt > wf.heldSince || max(wf.heldSince, wf.w.LastBeatAt)+wf.staleAfter <= now
}

// A session waits for its best worker: the named reason is the one closest to being lifted.
var nearness = map[string]int{
	gateFolderBusy: 9, gateWorkerFull: 8, gateAffinity: 7, gateWorkerDisk: 6, gateWorkerPaused: 6, gateWorkerStopped: 5,
	gateWorkerOffline: 4, gateWorkerSilent: 4, gateWorkerLabels: 3, gateWorkerType: 2, gateWorkerOwner: 1, gateWorkerMode: 0,
}

// waitingFor says in one code and one sentence why a waiting session isn't
// running; nil for one that doesn't wait.
func (f *facts) waitingFor(now int64) *api.Waiting {
	if !f.s.Status.Waiting() {
		return nil
	}
	if g := f.claimGate(now, false); g != nil {
		return g
	}
	if len(f.workers) == 0 {
		return hold(gateNoWorker, "No worker serves this agent yet. One of yours that runs takes it up within seconds; else start one with “stint up” or “stint worker run”.")
	}
	var best *api.Waiting
	for i := range f.workers {
		g := f.workerGate(&f.workers[i], now, false)
		if g == nil {
			return hold(gateReady, "It is ready: the next free worker takes it.")
		}
		if best == nil || nearness[g.Code] > nearness[best.Code] {
			best = g
		}
	}
	if len(f.workers) > 1 {
		best.Sentence = fmt.Sprintf("None of %d workers can take it. %s", len(f.workers), best.Sentence)
	}
	return best
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func clock(t int64) string { return time.UnixMicro(t).UTC().Format("2006-01-02 15:04:05 UTC") }

// loadFacts reads what the gates of a session need, workers excepted.
func loadFacts(ctx context.Context, q queries.Querier, s *sessionRow, a *agentRow) (*facts, error) {
	f := &facts{s: s, a: a}
	if s.AfterID != 0 && s.Status == api.Pending {
		st, err := q.SessionStatus(ctx, s.AfterID)
		if err != nil && !db.None(err) {
			return nil, err
		}
		f.predecessor = st
	}
	if s.OverlapHeld != 0 {
		n, err := heldBy(ctx, q, s, a)
		if err != nil {
			return nil, err
		}
		f.overlap = n
	}
	if s.Status != api.Pending {
		return f, f.loadThread(ctx, q)
	}
	return f, nil
}

// loadThread reads what else of the session's thread runs; only a claim needs it.
func (f *facts) loadThread(ctx context.Context, q queries.Querier) error {
	s := f.s
	if s.Fence == 0 && api.SessionID(s.ThreadID) == s.ID {
		return nil // the first of its thread, and never claimed
	}
	rows, err := q.UndrainedOfThread(ctx, s.ThreadID)
	for _, c := range rows {
		if c.SessionID == s.ID {
			f.undrained = true
		} else {
			f.threadBusy = true
		}
	}
	return err
}

// loadClaimFacts is loadFacts for a session that may still be pending and is treated as a
// claim would: a claim admits what no row gate holds any more.
func loadClaimFacts(ctx context.Context, q queries.Querier, s *sessionRow, a *agentRow) (*facts, error) {
	f, err := loadFacts(ctx, q, s, a)
	if err == nil && s.Status == api.Pending {
		err = f.loadThread(ctx, q)
	}
	return f, err
}

// heldBy counts the runs that keep a session behind the gate overlap (contract
// 3.5): for replace only the scheduled ones that it replaced, else all of the agent's.
func heldBy(ctx context.Context, q queries.Querier, s *sessionRow, a *agentRow) (int64, error) {
	if a.Overlap == api.OverlapReplace {
		return q.UndrainedScheduled(ctx, queries.UndrainedScheduledParams{AgentID: a.ID, Except: s.ID})
	}
	return a.Running, nil
}

func loadWorker(ctx context.Context, q queries.Querier, w *workerRow) (workerFacts, error) {
	load, err := q.WorkerLoad(ctx, queries.WorkerLoadParams{WorkerID: w.ID, FolderKey: plainFolder(w)})
	return workerFacts{w: w, running: load.Running, inFolder: load.InFolder}, err
}

// lookFromAside loads what only matters for a worker that isn't asking itself.
func (wf *workerFacts) lookFromAside(ctx context.Context, q queries.Querier) (err error) {
	wf.aside = true
	if w := wf.w; w.ProcessSlots > 0 {
		wf.inProcess, err = q.ProcessLoad(ctx, queries.ProcessLoadParams{ProcessID: w.ProcessID, OwnerUserID: w.OwnerUserID, WorkspaceID: w.WorkspaceID})
	}
	return err
}

// plainFolder is the key of a folder that only one session may use at once; empty when its
// owner says that it is shared.
func plainFolder(w *workerRow) string {
	if w.FolderShared != 0 {
		return ""
	}
	return w.FolderKey
}

// waiting computes waitingFor of a session in its transaction, and names what is
// in its way.
func waiting(ctx context.Context, q queries.Querier, s *sessionRow, a *agentRow, now int64) (*api.Waiting, error) {
	if !s.Status.Waiting() {
		return nil, nil
	}
	f, err := loadClaimFacts(ctx, q, s, a)
	if err != nil {
		return nil, err
	}
	g, err := f.waiting(ctx, q, now)
	if err != nil {
		return nil, err
	}
	if f.holder, err = f.loadHolder(ctx, q, g.Code); err != nil || f.holder == nil {
		return g, err
	}
	return f.waitingFor(now), nil
}

// waiting reads only the workers that the answer needs.
func (f *facts) waiting(ctx context.Context, q queries.Querier, now int64) (*api.Waiting, error) {
	if g := f.claimGate(now, false); g != nil {
		return g, nil
	}
	likely, err := q.LikelyWorker(ctx, f.a.ID)
	if err != nil && !db.None(err) {
		return nil, err
	}
	if err == nil {
		wf := workerFacts{w: &likely.Worker, running: likely.Running, inFolder: likely.InFolder}
		if err := wf.lookFromAside(ctx, q); err != nil {
			return nil, err
		}
		f.workers = []workerFacts{wf}
		if g := f.waitingFor(now); g.Code == gateReady {
			return g, nil
		}
	}
	rows, err := q.WorkersOfAgent(ctx, f.a.ID)
	if err != nil {
		return nil, err
	}
	f.workers = nil
	for i := range rows {
		wf, err := loadWorker(ctx, q, &rows[i])
		if err != nil {
			return nil, err
		}
		if err := wf.lookFromAside(ctx, q); err != nil {
			return nil, err
		}
		f.workers = append(f.workers, wf)
	}
	return f.waitingFor(now), nil
}
