package worker

import (
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/proc"
)

func TestEndWords_CountInWords(t *testing.T) {
	for swept, want := range map[int][]string{
		0: nil,
		1: {"One process that the command left behind was ended."},
		2: {"2 processes that the command left behind were ended."},
	} {
		if got := endWords(proc.Result{Swept: swept}); !slices.Equal(got, want) {
			t.Errorf("after %d it says %q", swept, got)
		}
	}
}

// What ended a command is said by its own name, not by the deadline that the
// shutdown sets.
func TestEndWords_AShutdownIsNoDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent("slow", "sh", "-c", "echo begun; exec sleep 600")
	g := w.start(w.options())
	id := w.trigger(a, "")
	w.eventually("it runs", func() bool { return w.text(id, "stdout") != "" })
	g.end()
	w.untilStatus(id, api.Queued)
	said := strings.Join(kinds(w.items(id), api.ItemStatus), "\n")
	if !strings.Contains(said, "The worker ended the command: "+errDraining.Error()) || strings.Contains(said, "deadline") {
		t.Errorf("the session tells %q", said)
	}
}
