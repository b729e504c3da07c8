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
		1: {"One process that was left behind was ended."},
		2: {"2 processes that were left behind were ended."},
	} {
		if got := endWords(proc.Result{Swept: swept}); !slices.Equal(got, want) {
			t.Errorf("after %d it says %q", swept, got)
		}
	}
	named := endWords(proc.Result{Swept: 3, Left: []string{"sleep", "ssh-agent"}})
	if want := []string{"3 processes that were left behind were ended: sleep, ssh-agent."}; !slices.Equal(named, want) {
		t.Errorf("with names it says %q", named)
	}
}

// A process that was left running means that a good end is no plain success, unless it does no
// work or the owner expects it.
func TestEndOf_WhatMayBeLeft(t *testing.T) {
	for _, tt := range []struct {
		left     []string
		mayLeave []string
		want     string
	}{
		{nil, nil, api.OutcomeUnfinished}, // nobody saw its name
		{[]string{"sleep"}, nil, api.OutcomeUnfinished},
		{[]string{"ssh-agent", "gpg-agent"}, nil, api.OutcomeSuccess},
		{[]string{"git", "ssh-agent"}, nil, api.OutcomeUnfinished},
		{[]string{"git", "ssh-agent"}, []string{"git"}, api.OutcomeSuccess},
		{[]string{"java", "git"}, []string{"git"}, api.OutcomeUnfinished},
		{[]string{"gradle-worker"}, []string{"gradle*"}, api.OutcomeSuccess},
		{[]string{"a-long-name-tha"}, []string{"a-long-name-that-is-cut"}, api.OutcomeSuccess},
		{[]string{"anything"}, []string{"*"}, api.OutcomeSuccess},
	} {
		if got := (runSettings{mayLeave: tt.mayLeave}).endOf(proc.Result{Swept: max(1, len(tt.left)), Left: tt.left}); got != tt.want {
			t.Errorf("%q left where it may leave %q: %q", tt.left, tt.mayLeave, got)
		}
	}
	if got := (runSettings{}).endOf(proc.Result{}); got != api.OutcomeSuccess {
		t.Errorf("with nothing left: %q", got)
	}
}

// What ended a command is named by its own reason, not by the deadline that the shutdown sets.
func TestEndWords_AShutdownIsNoDeadline(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
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
