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

// workerLook is how a worker's state is told; what it was told to do goes before
// what it seems to do.
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
		words = append(words, string(t))
	}
	return strings.Join(words, ", ")
}

// workerFacts are the coarse facts that a worker tells of itself.
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
