package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"stint/api"
)

func TestWorkerForm_ChangesAWorker(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	id := s.workers["backup"].ID
	page, edit := workerURL(id), workerURL(id)+"/edit"
	if body := s.get(page).Body.String(); !strings.Contains(body, `href="`+edit+`"`) {
		t.Error("the worker's page has no way to edit it")
	}
	body := s.get(edit).Body.String()
	wholePage(t, edit, body)
	for _, want := range []string{`value="workshop"`, `value="4"`, `action="` + edit + `"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the form lacks %s", want)
		}
	}
	now := func() api.Worker {
		w, err := s.Engine.Worker(t.Context(), s.Owner, id)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	wentTo(t, s.post(edit, "name", "desk", "maxConcurrent", "2", "labels", "linux, gpu", "instructions", "Be kind.\r\nBe brief."), page)
	if w := now(); w.Name != "desk" || w.MaxConcurrent != 2 || !slices.Equal(w.Labels, api.Labels{"gpu", "linux"}) || w.Instructions != "Be kind.\nBe brief." {
		t.Errorf("it became %+v", w)
	}
	// Saving it as shown changes nothing, and an empty field clears.
	before := len(s.audited(t, "worker_edited"))
	wentTo(t, s.post(edit, "name", "desk", "maxConcurrent", "2", "labels", "gpu linux", "instructions", "Be kind.\r\nBe brief."), page)
	if after := len(s.audited(t, "worker_edited")); after != before || before == 0 {
		t.Errorf("%d edits are in the log, before %d", after, before)
	}
	wentTo(t, s.post(edit, "name", "desk", "labels", "", "instructions", ""), page)
	if w := now(); w.MaxConcurrent != 2 || len(w.Labels) != 0 || w.Instructions != "" {
		t.Errorf("emptied, it is %+v", w)
	}
}

func (s *fixture) audited(t *testing.T, kind string) []api.AuditEntry {
	t.Helper()
	list, err := s.Audit(t.Context(), s.Owner, api.AuditFilter{Type: kind}, api.Page{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestWorkerForm_EachMistakeStandsAtItsField(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	id := s.workers["backup"].ID
	edit := workerURL(id) + "/edit"
	refused(t, s.post(edit, "name", "", "instructions", "typed text"), `id="name-error"`, "typed text", `aria-invalid="true"`, "1 field needs a change")
	refused(t, s.post(edit, "name", "x", "maxConcurrent", "many"), `id="maxConcurrent-error"`, "whole number", `value="many"`)
	refused(t, s.post(edit, "name", "x", "maxConcurrent", "0"), `id="maxConcurrent-error"`)
	refused(t, s.post(edit, "name", "x", "maxConcurrent", "1001"), `id="maxConcurrent-error"`)
	refused(t, s.post(edit, "name", "x", "labels", "A!"), `id="labels-error"`, `value="A!"`)
	refused(t, s.post(edit, "name", "x", "instructions", strings.Repeat("x", 2001)), `id="instructions-error"`)
	other := s.Worker(s.agents["backup"])
	taken, err := s.Engine.Worker(t.Context(), s.Owner, other.ID)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, s.post(edit, "name", taken.Name), `id="name-error"`, "another worker")
	w, err := s.Engine.Worker(t.Context(), s.Owner, id)
	if err != nil || w.Name != "workshop" {
		t.Errorf("it became %+v (%v)", w, err)
	}
	if res := s.post(workerURL(api.WorkerID(1))+"/edit", "name", "x"); res.Code != http.StatusNotFound {
		t.Errorf("a worker that isn't: status %d", res.Code)
	}
}

// An admin may change a cloud worker; only its owner a local one.
func TestWorkerForm_RightsAreTheAPIs(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	a := s.Agent(func(in *api.AgentInput) { in.Slug, in.Mode, in.RunsAsUserID = "cloudy", api.Cloud, 0 })
	edit := workerURL(s.Worker(a).ID) + "/edit"
	for role, want := range map[api.Role]int{api.Viewer: 403, api.Member: 403, api.Admin: 303, api.Owner: 303} {
		s.Owner.Role = role
		if res := s.post(edit, "name", "as-"+string(role)); res.Code != want {
			t.Errorf("as %s: status %d", role, res.Code)
		}
		if shown := strings.Contains(s.get(strings.TrimSuffix(edit, "/edit")).Body.String(), edit); shown != (want == 303) {
			t.Errorf("as %s the way to the form is shown: %t", role, shown)
		}
	}
	s.Owner.Role = api.Owner
	_, member := s.joins(t, api.Member)
	if _, err := s.EditWorker(t.Context(), member, s.workers["backup"].ID, func(*api.WorkerEdit) error { return nil }); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("another's local worker: %v", err)
	}
	_, s.Owner = s.joins(t, api.Admin)
	local := workerURL(s.workers["backup"].ID)
	for _, verb := range []string{"/edit", "/forget"} {
		if res := s.post(local+verb, "name", "taken-over"); res.Code != 403 {
			t.Errorf("an admin's %s of another's local worker: status %d", verb, res.Code)
		}
		if strings.Contains(s.get(local).Body.String(), local+verb) {
			t.Errorf("an admin is offered %s of another's local worker", verb)
		}
	}
	if res := s.post(local + "/pause"); res.Code != 303 {
		t.Errorf("an admin's signal to another's local worker: status %d", res.Code)
	}
}
