package engine_test

import (
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

// The home page and the overview count processes by one rule: one that serves several agents
// counts once, whatever its records are called, and one that doesn't say which it is by its name.
func TestWorkerCount_AProcessCountsOnce(t *testing.T) {
	w := enginetest.New(t)
	first, second, third := w.Agent(), w.Agent(), w.Agent()
	as := func(process, name string) func(*api.WorkerInput) {
		return func(in *api.WorkerInput) { in.ProcessID, in.Name = process, name }
	}
	gone := w.Worker(first, as("prc_a", "workshop"))
	w.Worker(second, as("prc_a", "den"))
	w.Worker(third, as("prc_b", "workshop"))
	w.Worker(first, as("", "script"))
	w.Worker(second, as("", "script"))
	quiet := w.Worker(third, as("", "other script"))
	for _, k := range []*enginetest.Worker{gone, quiet} {
		_, err := w.Beat(t.Context(), w.Owner, k.ID, api.Beat{InstanceID: k.Instance, Goodbye: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := api.WorkerCount{All: 4, Online: 3}
	if got, err := w.Engine.WorkerCount(t.Context(), w.Owner); err != nil || got != want {
		t.Errorf("counted %+v, %v", got, err)
	}
	if home, err := w.Home(t.Context(), w.Owner, time.UTC); err != nil || home.Workers != want {
		t.Errorf("the home page says %+v, %v", home.Workers, err)
	}
}
