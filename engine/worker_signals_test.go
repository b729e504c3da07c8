package engine_test

import (
	"context"
	"slices"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

func (w *controlFixture) signal(k *enginetest.Worker, kind api.SignalKind) api.Signal {
	w.Helper()
	got, err := w.SignalWorker(context.Background(), w.Owner, k.ID, kind)
	if err != nil {
		w.Fatalf("signal %s: %v", kind, err)
	}
	if got.Worker.PendingSignal == nil {
		w.Fatalf("after %s nothing is pending", kind)
	}
	return *got.Worker.PendingSignal
}

func (w *controlFixture) ack(k *enginetest.Worker, id api.SignalID) (api.Worker, error) {
	return w.AcknowledgeSignal(context.Background(), k.Caller, k.ID, api.SignalAck{InstanceID: k.Instance, SignalID: id})
}

func (w *controlFixture) record(k *enginetest.Worker) api.Worker {
	w.Helper()
	got, err := w.Engine.Worker(context.Background(), w.Owner, k.ID)
	if err != nil {
		w.Fatalf("%v", err)
	}
	return got
}

// events lists the types of the workspace's events since a sequence number.
func (w *controlFixture) events(after int64) (kinds []string) {
	w.Helper()
	list, err := w.Events(context.Background(), w.Owner, after, 1000)
	if err != nil {
		w.Fatalf("%v", err)
	}
	for _, e := range list {
		kinds = append(kinds, e.Type)
	}
	return kinds
}

// controlFixture is a fixture with one agent and one worker of it.
type controlFixture struct {
	*enginetest.Fixture
	a api.Agent
	k *enginetest.Worker
}

func newControlFixture(t *testing.T) *controlFixture {
	t.Helper()
	w := &controlFixture{Fixture: enginetest.New(t)}
	w.a = w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 5 })
	w.k = w.Worker(w.a)
	return w
}

func TestSignal_SaysWhatIsDesiredAndHoldsAtOnce(t *testing.T) {
	w := newControlFixture(t)
	s := w.New(w.a)
	for _, step := range []struct {
		kind    api.SignalKind
		desired api.Desired
		gate    string // of a claim, "" when it is granted
	}{
		{api.SignalPause, api.DesiredPaused, "worker_paused"},
		{api.SignalRestart, api.DesiredPaused, "worker_paused"}, // a paused worker restarts paused
		{api.SignalStop, api.DesiredStopped, "worker_stopped"},
		{api.SignalRestart, api.DesiredRunning, ""}, // a stopped one is started
		{api.SignalPause, api.DesiredPaused, "worker_paused"},
		{api.SignalResume, api.DesiredRunning, ""},
	} {
		w.signal(w.k, step.kind)
		if got := w.record(w.k).DesiredState; got != step.desired {
			t.Fatalf("after %s the worker is to be %s, want %s", step.kind, got, step.desired)
		}
		c, err := w.k.Try(s.ID)
		if step.gate == "" {
			if err != nil {
				t.Fatalf("after %s: %v", step.kind, err)
			}
			if _, err := w.k.Release(c); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if r := refusal(err); r == nil || r.Code != api.CodeWorkerNotEligible || r.Gate != step.gate {
			t.Fatalf("after %s the claim is answered %v", step.kind, err)
		}
		if w.k.Next() != nil {
			t.Fatalf("after %s claim-next grants", step.kind)
		}
		if wait := w.Get(s.ID).WaitingFor; wait == nil || wait.Code != step.gate {
			t.Errorf("after %s the session waits for %+v", step.kind, wait)
		}
	}
}

func TestSignal_NewerReplacesAndOldIdsAreStale(t *testing.T) {
	w := newControlFixture(t)
	if _, err := w.ack(w.k, 1); refusal(err) == nil || refusal(err).Code != api.CodeStaleSignal {
		t.Errorf("acknowledging what was never sent: %v", err)
	}
	first := w.signal(w.k, api.SignalPause)
	again := w.signal(w.k, api.SignalPause)
	if again != first {
		t.Errorf("the same signal again is another one: %+v, %+v", first, again)
	}
	second := w.signal(w.k, api.SignalStop)
	if _, err := w.ack(w.k, first.ID); refusal(err) == nil || refusal(err).Code != api.CodeStaleSignal {
		t.Errorf("acknowledging the replaced one: %v", err)
	}
	if got := w.record(w.k).PendingSignal; got == nil || got.ID != second.ID {
		t.Errorf("a stale acknowledgement left %+v pending", got)
	}
	before, err := w.LastEvent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.ack(w.k, second.ID); err != nil {
			t.Errorf("acknowledging the pending one: %v", err)
		}
	}
	if got := w.events(before); !slices.Equal(got, []string{"signal_acknowledged"}) {
		t.Errorf("two acknowledgements left the events %v", got)
	}
	third := w.signal(w.k, api.SignalResume)
	if _, err := w.ack(w.k, second.ID); refusal(err) == nil || refusal(err).Code != api.CodeStaleSignal {
		t.Errorf("acknowledging the one before the pending one: %v", err)
	}
	other := w.Worker(w.a)
	if _, err := w.ack(other, third.ID); refusal(err) == nil || refusal(err).Code != api.CodeStaleSignal {
		t.Errorf("acknowledging another worker's signal: %v", err)
	}
}

func TestSignal_RegistrationEndsStoppedAndWhatWaitedForIt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kind    api.SignalKind
		desired api.Desired
		pending bool
	}{
		{"a stop", api.SignalStop, api.DesiredRunning, false},
		{"a restart", api.SignalRestart, api.DesiredRunning, false},
		{"a pause", api.SignalPause, api.DesiredPaused, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newControlFixture(t)
			w.signal(w.k, tt.kind)
			in := api.WorkerInput{Name: w.k.Name, InstanceID: w.k.Instance, MaxConcurrent: 10}
			// The same live process, as when its folder changed: that settles nothing.
			got, err := w.RegisterWorker(t.Context(), w.Owner, w.a.Slug, in)
			if err != nil || got.Worker.PendingSignal == nil || (tt.kind == api.SignalStop) != (got.Worker.DesiredState == api.DesiredStopped) {
				t.Fatalf("registering again in the same life: %+v, %v", got.Worker, err)
			}
			in.InstanceID, in.PreviousInstanceID = "boot-next", w.k.Instance
			got, err = w.RegisterWorker(t.Context(), w.Owner, w.a.Slug, in)
			if err != nil {
				t.Fatal(err)
			}
			if got.Worker.DesiredState != tt.desired || (got.Worker.PendingSignal != nil) != tt.pending {
				t.Errorf("after the start it is to be %s, with %+v pending", got.Worker.DesiredState, got.Worker.PendingSignal)
			}
		})
	}
}

func TestSignal_StoppedRecordOfALiveProcessStartsAgain(t *testing.T) {
	w := newControlFixture(t)
	stop := w.signal(w.k, api.SignalStop)
	if _, err := w.ack(w.k, stop.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Engine.Beat(t.Context(), w.Owner, w.k.ID, api.Beat{InstanceID: w.k.Instance, Goodbye: true}); err != nil {
		t.Fatal(err)
	}
	w.signal(w.k, api.SignalRestart)
	got, err := w.RegisterWorker(t.Context(), w.Owner, w.a.Slug, api.WorkerInput{Name: w.k.Name, InstanceID: w.k.Instance})
	if err != nil || got.Worker.DesiredState != api.DesiredRunning || got.Worker.PendingSignal != nil {
		t.Errorf("%+v, %v", got.Worker, err)
	}
}

func TestWorker_WhatAPersonChangedStays(t *testing.T) {
	w := newControlFixture(t)
	edit := func(change func(*api.WorkerEdit)) (api.Worker, error) {
		return w.EditWorker(t.Context(), w.Owner, w.k.ID, func(in *api.WorkerEdit) error { change(in); return nil })
	}
	got, err := edit(func(in *api.WorkerEdit) { in.Name, in.MaxConcurrent, in.Labels = "desk", 1, api.Labels{"gpu", "gpu"} })
	if err != nil || got.Name != "desk" || got.MaxConcurrent != 1 || !slices.Equal(got.Labels, api.Labels{"gpu"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	in := api.WorkerInput{
		Name: w.k.Name, WorkerID: w.k.ID, InstanceID: "boot-next", PreviousInstanceID: w.k.Instance, Instructions: "from the process",
		MaxConcurrent: 10, Labels: api.Labels{"slow"},
	}
	again, err := w.RegisterWorker(t.Context(), w.Owner, w.a.Slug, in)
	if err != nil {
		t.Fatal(err)
	}
	if r := again.Worker; r.ID != w.k.ID || r.Name != "desk" || r.MaxConcurrent != 1 || !slices.Equal(r.Labels, api.Labels{"gpu"}) || r.Instructions != "from the process" {
		t.Errorf("after the registration it is %+v", r)
	}
	// A process that gives itself another name is another worker.
	in.WorkerID, in.Name, in.PreviousInstanceID = 0, "second", ""
	second, err := w.RegisterWorker(t.Context(), w.Owner, w.a.Slug, in)
	if err != nil || second.Worker.ID == w.k.ID {
		t.Fatalf("%+v, %v", second.Worker, err)
	}
	in.WorkerID, in.Name = second.Worker.ID, "third"
	third, err := w.RegisterWorker(t.Context(), w.Owner, w.a.Slug, in)
	if err != nil || third.Worker.ID == second.Worker.ID {
		t.Errorf("an id under another name found %+v, %v", third.Worker, err)
	}
	if _, err := edit(func(in *api.WorkerEdit) { in.Name = "second" }); refusal(err) == nil || refusal(err).Code != api.CodeConflict {
		t.Errorf("a name that is taken: %v", err)
	}
	before, _ := w.LastEvent(t.Context())
	if _, err := edit(func(*api.WorkerEdit) {}); err != nil || len(w.events(before)) != 0 {
		t.Errorf("a change of nothing: %v, events %v", err, w.events(before))
	}
	for _, bad := range []func(*api.WorkerEdit){
		func(in *api.WorkerEdit) { in.Name = "" },
		func(in *api.WorkerEdit) { in.MaxConcurrent = -1 },
		func(in *api.WorkerEdit) { in.Labels = api.Labels{"Not A Label"} },
		func(in *api.WorkerEdit) { in.Instructions = string(make([]byte, 2001)) },
	} {
		if _, err := edit(bad); refusal(err) == nil || refusal(err).Code != api.CodeInvalid {
			t.Errorf("a bad change: %v", err)
		}
	}
}

func TestWorker_DeletedIdIsNotRegisteredAgain(t *testing.T) {
	w := newControlFixture(t)
	w.signal(w.k, api.SignalStop)
	if err := w.DeleteWorker(t.Context(), w.Owner, w.k.ID); err != nil {
		t.Fatal(err)
	}
	in := api.WorkerInput{Name: w.k.Name, WorkerID: w.k.ID, InstanceID: "boot-next", PreviousInstanceID: w.k.Instance}
	if _, err := w.RegisterWorker(t.Context(), w.Owner, w.a.Slug, in); refusal(err) == nil || refusal(err).Code != api.CodeNotFound {
		t.Errorf("the deleted id: %v", err)
	}
	in.WorkerID = 0
	got, err := w.RegisterWorker(t.Context(), w.Owner, w.a.Slug, in)
	if err != nil || got.Worker.ID == w.k.ID || got.Worker.PendingSignal != nil {
		t.Errorf("asked for anew: %+v, %v", got.Worker, err)
	}
}
