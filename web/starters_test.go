package web

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stint/api"
	"stint/engine"
)

var fieldValue = regexp.MustCompile(`<input id="([A-Za-z]+)" name="[A-Za-z]+" type="[a-z]+" value="([^"]*)"`)

// Each example is created as proposed: either it works at once, in an existing folder, or the
// form says that the project's folder is missing.
func TestStarters_WorkUntouchedOrSayWhatIsMissing(t *testing.T) {
	for _, folders := range []string{filepath.Join(t.TempDir(), "work"), ""} {
		s := newFixture(t, fixtureEnd)
		s.handler = New(Options{Engine: s.Engine, Accounts: s.Accounts, CallerOf: s.callerOf, Folders: folders})
		for _, start := range starters {
			page := s.get("/agents/new?from=" + start.key).Body.String()
			wholePage(t, start.key, page)
			form := []string{"mode", "local", "type", "command"}
			if kind := start.values["type"]; kind != "" {
				form[3] = kind
			}
			for _, m := range fieldValue.FindAllStringSubmatch(page, -1) {
				form = append(form, m[1], strings.ReplaceAll(m[2], "&#39;", "'"))
			}
			res := s.post("/agents", form...)
			if start.project || folders == "" {
				refused(t, res, `id="workFolder-error"`, "Is missing: an absolute path")
				continue
			}
			wentTo(t, res, "/agents/"+start.values["slug"])
			a, err := s.Engine.Agent(t.Context(), s.Owner, start.values["slug"])
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(a.Run.WorkFolder); err != nil || !info.IsDir() || filepath.Dir(a.Run.WorkFolder) != folders {
				t.Errorf("%s works in %q: %v", start.key, a.Run.WorkFolder, err)
			}
		}
	}
}

func TestStarters_MakeNoOtherFolder(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	base := t.TempDir()
	folders := filepath.Join(base, "work")
	s.handler = New(Options{Engine: s.Engine, Accounts: s.Accounts, CallerOf: s.callerOf, Folders: folders})
	for slug, path := range map[string]string{"one": filepath.Join(base, "other"), "two": filepath.Join(folders, "a", "b"), "three": folders + "/../else"} {
		wentTo(t, s.post("/agents", "slug", slug, "mode", "local", "type", "command", "command", "true", "timeZone", "UTC", "workFolder", path), "/agents/"+slug)
	}
	s.Owner.Role = api.Member
	mine := filepath.Join(folders, "mine")
	if res := s.post("/agents", "slug", "mine", "mode", "local", "type", "command", "command", "true", "timeZone", "UTC", "workFolder", mine); res.Code != http.StatusForbidden {
		t.Errorf("a member made an agent: status %d", res.Code)
	}
	s.Owner.Role = api.Owner
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		t.Errorf("made %v: %v", left, err)
	}
}

func TestAgentForm_MissesTheFolderWhereNothingNamesIt(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	full := []string{"slug", "elsewhere", "mode", "local", "type", "command", "command", "true", "timeZone", "UTC", "workFolder", ""}
	refused(t, s.post("/agents", full...), `id="workFolder-error"`)
	wentTo(t, s.post("/agents", append(full, "folderElsewhere", "true")...), "/agents/elsewhere")
	if page := s.get("/agents/elsewhere/edit").Body.String(); !strings.Contains(page, `name="folderElsewhere" value="true" checked`) {
		t.Error("the edit of an agent without a folder asks for one")
	}
	refused(t, s.post("/agents/elsewhere/edit", full...), `id="workFolder-error"`)
	in := engine.DefaultConfig().DefaultAgent()
	if bad := fillAgent(&in, formValues(full)); len(bad) > 0 {
		t.Errorf("the reading of it complains: %v", bad)
	}
}

// One answer names every bad field, whoever found it, and counts them correctly.
func TestForms_NameAllThatIsWrongAtOnce(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	bad := []string{
		"slug", "BACKUP!", "mode", "local", "type", "command", "command", "sh 'open", "timeZone", "Mars/Base", "schedule", "61 * * * *", "workFolder", "relative",
		"env", "A=B C=D", "maxConcurrent", "many", "leaseSeconds", "-1", "labels", "A!", "dailyLimit", "lots",
	}
	fields := []string{"slug", "command", "timeZone", "schedule", "workFolder", "env", "maxConcurrent", "leaseSeconds", "labels", "dailyLimit"}
	for _, path := range []string{"/agents", "/agents/backup/edit"} {
		res := s.post(path, bad...)
		refused(t, res, "10 fields need a change", `<details class="fold" open`, "3 fields need a change")
		page := res.Body.String()
		wholePage(t, path, page)
		for _, field := range fields {
			if strings.Count(page, `id="`+field+`-error"`) != 1 {
				t.Errorf("%s: the fault of %s isn't at its field", path, field)
			}
		}
		if strings.Contains(page, "The schedule The") || strings.Count(page, "out of range") > 1 {
			t.Errorf("%s: the schedule's fault is reported twice", path)
		}
	}
	// A slug that is taken is reported with the rest, even if the form itself can't read a
	// field.
	refused(t, s.post("/agents", "slug", "backup", "mode", "local", "type", "command", "command", "true", "timeZone", "UTC", "workFolder", "/srv", "maxConcurrent", "many"),
		"2 fields need a change", `id="slug-error"`, "taken in this workspace")
	refused(t, s.post("/agents/backup/edit", "maxConcurrent", "many"), "1 field needs a change")
	edit := workerURL(s.workers["backup"].ID) + "/edit"
	refused(t, s.post(edit, "name", "", "maxConcurrent", "many", "labels", "A!", "instructions", strings.Repeat("x", 2001)),
		"4 fields need a change", `id="name-error"`, `id="maxConcurrent-error"`, `id="labels-error"`, `id="instructions-error"`)
}
