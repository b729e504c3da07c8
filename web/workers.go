package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"stint/api"
	"stint/engine"
)

// workersPage is what workers.templ draws.
type workersPage struct{ engine.WorkerListView }

// workerGroup is one process that serves several agents: they share its slots.
type workerGroup struct {
	all []engine.WorkerView
}

// groups puts together the workers of one process.
func (p workersPage) groups() []workerGroup {
	type process struct {
		owner api.UserID
		name  string
	}
	var out []workerGroup
	at := map[process]int{}
	for _, w := range p.Workers {
		k := process{w.OwnerUserID, w.Process}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out = append(out, workerGroup{})
		}
		out[i].all = append(out[i].all, w)
	}
	return out
}

// whole is the group as one worker: whatever runs in any of them takes one of the slots that
// they share.
func (g workerGroup) whole() api.Worker {
	out := g.all[0].Worker
	out.Running = 0
	for _, w := range g.all {
		out.Running += w.Running
		out.MaxConcurrent = max(out.MaxConcurrent, w.MaxConcurrent)
		if w.LastBeatAt.After(out.LastBeatAt.Time) {
			out.LastBeatAt = w.LastBeatAt
		}
	}
	return out
}

// alike reports whether all are in the state of the first.
func (g workerGroup) alike() bool {
	for _, w := range g.all {
		if workerWord(w.Worker) != workerWord(g.all[0].Worker) {
			return false
		}
	}
	return true
}

func (v *visit) workers() error {
	view, err := v.web.engine.WorkerList(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	shell := Shell{Title: "Workers", Place: "workers", Now: view.At, Stream: streamURL("workers", view.View)}
	return v.page(http.StatusOK, shell, workers(workersPage{view}))
}

func (v *visit) watchWorkers() watcher {
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		view, err := v.web.engine.WorkerList(ctx, c)
		if err != nil {
			return nil, position{}, err
		}
		return []part{{target: "worker-list", draw: workerList(workersPage{view})}}, position{seq: view.Seq}, nil
	}
}

// workerPage is what a worker's page draws.
type workerPage struct{ engine.WorkerPage }

func workerURL(id api.WorkerID) string { return "/workers/" + id.String() }

func (v *visit) worker() error {
	id, err := v.workerID()
	if err != nil {
		return err
	}
	view, err := v.web.engine.WorkerPageOf(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	shell := Shell{Title: view.Name, Place: "workers", Now: view.At, Stream: streamURL("worker", view.View, "worker", id.String())}
	return v.page(http.StatusOK, shell, workerWhole(workerPage{view}))
}

func (v *visit) watchWorker(ref string) (watcher, error) {
	id, err := api.ParseWorkerID(ref)
	if err != nil || id == 0 {
		return nil, api.Refuse(api.CodeNotFound, "There is no such worker here.")
	}
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		view, err := v.web.engine.WorkerPageOf(ctx, c, id)
		if err != nil {
			return nil, position{}, err
		}
		p := workerPage{view}
		return []part{{target: "worker-head", draw: workerHead(p)}, {target: "worker-body", draw: workerBody(p)}}, position{seq: view.Seq}, nil
	}, nil
}

// What can be done to a worker besides signals.
const (
	verbEdit   = "edit"
	verbForget = "forget"
)

// The questions before anything that ends something running.
func workerQuestion(w api.Worker, verb string) Confirm {
	c := Confirm{
		ID: "ask-" + verb, Action: workerURL(w.ID) + "/" + verb, Keep: "Keep it", Back: workerURL(w.ID),
		Text: "What it runs is interrupted and given back to the queue, where another worker or a later start takes it up.",
	}
	switch verb {
	case "stop":
		c.Title, c.Do = "Stop “"+w.Name+"” for "+w.AgentSlug+"?", "Stop worker"
		c.Text += " Then it ends, and serves this agent no more until it is started again."
	case "restart":
		c.Title, c.Do = "Restart “"+w.Name+"” for "+w.AgentSlug+"?", "Restart worker"
	default:
		c.Title, c.Do, c.Risky = "Forget “"+w.Name+"” for "+w.AgentSlug+"?", "Forget worker", true
		c.Text = "Its record is deleted, and what it runs is taken from it at once. A process that is forgotten makes no new record unless it is started with --register."
	}
	return c
}

// foreignWords reports whether a local worker's instructions were written by somebody other
// than its owner.
func foreignWords(w api.Worker) bool { return w.Mode == api.Local && w.SetBy != w.OwnerUserID }

// managed reads a worker that the reader may change, or signal if that is asked.
func (v *visit) managed(id api.WorkerID, verb string) (api.Worker, error) {
	view, err := v.web.engine.WorkerPageOf(v.r.Context(), v.caller, id)
	if err != nil {
		return api.Worker{}, err
	}
	if verb == verbEdit || verb == verbForget {
		return view.Worker, v.refuse(view.Edits, "A local worker is its owner's alone to change or forget, a cloud worker the admins'")
	}
	return view.Worker, v.refuse(view.Signals, "Local workers are told what to do by their owners and admins, cloud workers by admins")
}

func (v *visit) askWorker() error {
	id, err := v.workerID()
	if err != nil {
		return err
	}
	w, err := v.managed(id, v.path("verb"))
	if err != nil {
		return err
	}
	c := workerQuestion(w, v.path("verb"))
	return v.page(http.StatusOK, Shell{Title: c.Title, Place: "workers"}, confirmPage(c))
}

func (v *visit) actWorker() error {
	id, err := v.workerID()
	if err != nil {
		return err
	}
	verb := v.path("verb")
	if verb == verbForget {
		if err := v.web.engine.DeleteWorker(v.r.Context(), v.caller, id); err != nil {
			return err
		}
		return v.to("/workers", "Forgot the worker")
	}
	done, err := v.web.engine.SignalWorker(v.r.Context(), v.caller, id, api.SignalKind(verb))
	if err != nil {
		return err
	}
	return v.to(workerURL(id), said(done.Changed, "It was told to "+verb, "It had been told to "+verb+" already"))
}

// signalWords describe a pending signal and who sent it.
func signalWords(s api.Signal) string {
	return "Told to " + string(s.Signal) + " by " + s.SentByName
}

// workerLook is how a worker's state is shown; a pending signal takes precedence over what it
// seems to do.
func workerLook(w api.Worker) (icon, class, word string) {
	switch {
	case w.State == api.Offline:
		return "unplug", "s-cancelled", "Offline"
	case w.State == api.WorkerStale:
		return "unplug", "s-stale", "Silent"
	case w.DesiredState == api.DesiredPaused:
		return "pause", "s-pending", "Paused"
	case w.DesiredState == api.DesiredStopped:
		return "circle-stop", "s-cancelled", "Stopping"
	default:
		return "circle-check", "s-complete", "Online"
	}
}

func workerIcon(w api.Worker) string {
	icon, _, _ := workerLook(w)
	return icon
}

func workerClass(w api.Worker) string {
	_, class, _ := workerLook(w)
	return class
}

func workerWord(w api.Worker) string {
	_, _, word := workerLook(w)
	return word
}

func typeWords(types []api.AgentType) string {
	words := make([]string, 0, len(types))
	for _, t := range types {
		words = append(words, t.Word())
	}
	return strings.Join(words, ", ")
}

// workerFacts are the coarse facts that a worker reports about itself.
func workerFacts(w api.Worker) string {
	facts := []string{string(w.Mode)}
	for _, s := range []string{typeWords(w.Types), w.Platform, w.Version} {
		if s != "" {
			facts = append(facts, s)
		}
	}
	return strings.Join(facts, " · ")
}

func slotsWords(w api.Worker) string {
	return fmt.Sprintf("%d of %d", w.Running, w.MaxConcurrent)
}

// slotMarks are the worker's slots, the taken ones first; at most twelve are drawn.
func slotMarks(w api.Worker) []bool {
	marks := make([]bool, min(w.MaxConcurrent, 12))
	for i := range marks {
		marks[i] = int64(i) < w.Running
	}
	return marks
}

// landLevels say how far a worker's owner lets changes be landed.
var landLevels = map[api.LandLevel]string{
	api.LandOff: "Not from here", api.LandPush: "Changes may be committed, pushed and discarded",
	api.LandPullRequest: "Changes may be committed, pushed, discarded and put into pull requests",
	api.LandMerge:       "Changes may be committed, pushed, discarded, put into pull requests and merged",
}

// noticeTitle says in a few words what a worker wants looked at.
func noticeTitle(n api.Notice) string {
	switch n.Code {
	case api.NoticeWorkflowInvalid:
		return "Its workflow file can't be used"
	case api.NoticeWorkflowChanged:
		return "Its workflow file executes something new"
	case api.NoticeDiskLow:
		return "Its disk is nearly full"
	}
	return "Its owner's file can't be used"
}
