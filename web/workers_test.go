package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

func TestWorkers_SignalsAreSentAndShownWithTheirSender(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	k := s.workers["backup"]
	page := workerURL(k.ID)
	for _, verb := range []string{"pause", "resume", "restart", "stop"} {
		if res := s.post(page + "/" + verb); res.Code != http.StatusSeeOther || res.Header().Get("Location") != page {
			t.Fatalf("%s: status %d to %s", verb, res.Code, res.Header().Get("Location"))
		}
		w, err := s.Engine.Worker(t.Context(), s.Owner, k.ID)
		if err != nil || w.PendingSignal == nil || string(w.PendingSignal.Signal) != verb {
			t.Fatalf("after %s the worker is %+v, %v", verb, w, err)
		}
		told := "Told to " + verb + " by " + s.Owner.Name
		for _, path := range []string{page, "/workers"} {
			if body := s.get(path).Body.String(); !strings.Contains(body, told) {
				t.Errorf("%s doesn't say %q", path, told)
			}
		}
		if _, err := s.AcknowledgeSignal(t.Context(), k.Caller, k.ID, api.SignalAck{InstanceID: k.Instance, SignalID: w.PendingSignal.ID}); err != nil {
			t.Fatal(err)
		}
		if body := s.get(page).Body.String(); strings.Contains(body, told) {
			t.Errorf("an acknowledged signal is shown as pending")
		}
	}
	if body := s.get(page).Body.String(); !strings.Contains(body, "/resume") || strings.Contains(body, page+"/pause") {
		t.Error("a stopped worker can be paused, or not be told to go on")
	}
	if res := s.post(page + "/dance"); res.Code != http.StatusNotFound {
		t.Errorf("an unknown verb: status %d", res.Code)
	}
	if res := s.post(page + "/forget"); res.Code != http.StatusSeeOther || res.Header().Get("Location") != "/workers" {
		t.Errorf("forget: status %d", res.Code)
	}
	if res := s.get(page); res.Code != http.StatusNotFound {
		t.Errorf("the page of a forgotten worker: status %d", res.Code)
	}
}

func TestWorkers_ButtonsAreForThoseWhoMayUseThem(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	a := s.Agent(func(in *api.AgentInput) { in.Slug, in.Mode, in.RunsAsUserID = "cloudy", api.Cloud, 0 })
	k := s.Worker(a)
	if body := s.get(workerURL(k.ID)).Body.String(); !strings.Contains(body, "/pause") {
		t.Error("the owner sees no buttons")
	}
	s.Owner.Role = api.Viewer
	body := s.get(workerURL(k.ID)).Body.String()
	for _, verb := range []string{"/pause", "/restart", "/stop", "/forget"} {
		if strings.Contains(body, workerURL(k.ID)+verb) {
			t.Errorf("a viewer sees a way to %s", verb)
		}
	}
	if res := s.post(workerURL(k.ID) + "/pause"); res.Code != http.StatusForbidden {
		t.Errorf("a viewer's pause: status %d", res.Code)
	}
	s.Owner.Role = api.Owner
	if _, err := s.SignalWorker(context.Background(), s.Owner, k.ID, api.SignalPause); err != nil {
		t.Fatal(err)
	}
}

// One process is one row with one pool of slots, however many agents it serves.
func TestWorkers_OneProcessIsOneRow(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	var mine []*enginetest.Worker
	var first api.Agent
	for _, slug := range []string{"one", "two", "three"} {
		a := s.Agent(func(in *api.AgentInput) { in.Slug = slug })
		if slug == "one" {
			first = a
		}
		mine = append(mine, s.Worker(a, func(in *api.WorkerInput) { in.Name, in.ProcessID, in.MaxConcurrent = "desk", "the-desk", 4 }))
	}
	body := s.get("/workers").Body.String()
	wholePage(t, "/workers", body)
	text := readOut(t, body)
	if !strings.Contains(text, "desk for 3 agents") || strings.Count(text, "desk for") != 1 {
		t.Errorf("the process isn't one row: %s", text)
	}
	rows := strings.Count(body, `aria-label="0 of 4 slots in use"`)
	for _, k := range mine {
		if !strings.Contains(body, `href="`+workerURL(k.ID)+`"`) {
			t.Errorf("there is no way to the page of %s", k.ID)
		}
	}
	mine[0].Claim(s.New(first).ID)
	if body = s.get("/workers").Body.String(); strings.Count(body, `aria-label="1 of 4 slots in use"`) != 1 || strings.Count(body, `aria-label="0 of 4 slots in use"`) != rows-1 {
		t.Error("what one agent runs doesn't take one of the slots of all")
	}
}
