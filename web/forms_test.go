package web

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"stint/api"
)

// wentTo fails unless the answer sends the browser to an address that begins so.
func wentTo(t *testing.T, res *httptest.ResponseRecorder, path string) string {
	t.Helper()
	to := res.Header().Get("Location")
	if res.Code != http.StatusSeeOther || !strings.HasPrefix(to, path) {
		t.Fatalf("status %d to %q, want 303 to %s…\n%s", res.Code, to, path, res.Body)
	}
	return to
}

// refused fails unless the form came back with these texts.
func refused(t *testing.T, res *httptest.ResponseRecorder, texts ...string) {
	t.Helper()
	if res.Code != http.StatusUnprocessableEntity {
		t.Fatalf("status %d, want 422", res.Code)
	}
	for _, text := range texts {
		if !strings.Contains(res.Body.String(), text) {
			t.Errorf("the form doesn't say %q", text)
		}
	}
}

func TestAgentForm_MakesAndChangesAnAgent(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	full := []string{
		"slug", "tidy", "name", "Tidy up", "mode", "local", "type", "command", "command", `sh -c 'echo "a b"'`, "check", "test -s 'a file'", "workFolder", "/srv",
		"env", "HOME, LANG", "prompt", "one\r\ntwo", "schedule", "*/5 * * * *", "timeZone", "Europe/Berlin", "overlap", "queue_one",
		"catchUp", "none", "maxConcurrent", "3", "leaseSeconds", "600", "labels", "linux gpu",
	}
	wentTo(t, s.post("/agents", full...), "/agents/tidy")
	a, err := s.Engine.Agent(t.Context(), s.Owner, "tidy")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Run.Check, []string{"test", "-s", "a file"}) {
		t.Errorf("it checks %q", a.Run.Check)
	}
	if len(a.Run.Command) != 3 || a.Run.Command[2] != `echo "a b"` || a.Prompt != "one\ntwo" || len(a.Run.Env) != 2 ||
		a.Overlap != api.OverlapQueueOne || a.CatchUp != api.CatchUpNone || a.MaxConcurrent != 3 || len(a.Labels) != 2 {
		t.Errorf("made %+v", a.AgentInput)
	}
	// What the form shows is what it accepts: saving it unchanged changes nothing.
	if formOf(a.AgentInput).Get("command") != `sh -c 'echo "a b"'` {
		t.Errorf("command shown as %q", formOf(a.AgentInput).Get("command"))
	}
	var same []string
	for name, values := range formOf(a.AgentInput) {
		same = append(same, name, values[0])
	}
	wentTo(t, s.post("/agents/tidy/edit", same...), "/agents/tidy")
	again, err := s.Engine.Agent(t.Context(), s.Owner, "tidy")
	if err != nil || again.Version != a.Version {
		t.Errorf("version %d after an edit without a change, before %d: %v", again.Version, a.Version, err)
	}
	wentTo(t, s.post("/agents/tidy/edit", "slug", "tidy-up", "command", "true", "timeZone", "UTC"), "/agents/tidy-up")
}

func TestAgentForm_EachMistakeStandsAtItsField(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	base := func(change ...string) []string {
		return append([]string{"mode", "local", "type", "command", "command", "true", "timeZone", "UTC"}, change...)
	}
	refused(t, s.post("/agents", base("slug", "backup", "description", "typed text")...), `id="slug-error"`, "typed text", `aria-invalid="true"`)
	refused(t, s.post("/agents", base("slug", "B A D")...), `id="slug-error"`)
	refused(t, s.post("/agents", base("slug", "ok", "schedule", "61 * * * *")...), `id="schedule-error"`)
	refused(t, s.post("/agents", base("slug", "ok", "schedule", "0 0 30 2 *")...), `id="schedule-error"`)
	refused(t, s.post("/agents", "slug", "ok", "mode", "local", "type", "command", "command", "true", "schedule", "@daily", "timeZone", "Mars/Base"), `id="timeZone-error"`)
	refused(t, s.post("/agents", base("slug", "ok", "maxConcurrent", "many")...), `id="maxConcurrent-error"`, "whole number", "<details class=\"fold\" open")
	refused(t, s.post("/agents", "slug", "ok", "mode", "local", "type", "command", "timeZone", "UTC", "command", `sh -c 'open`), `id="command-error"`)
	refused(t, s.post("/agents", "slug", "ok", "mode", "local", "type", "command", "timeZone", "UTC", "command", ""), `id="command-error"`)
	refused(t, s.post("/agents", base("slug", "ok", "workFolder", "relative")...), `id="workFolder-error"`)
	refused(t, s.post("/agents", base("slug", "ok", "env", "A=B")...), `id="env-error"`)
	refused(t, s.post("/agents/backup/edit", "slug", "log-summary"), `id="slug-error"`, `action="/agents/backup/edit"`)
}

func TestAgentForm_MakesAnAgentThatConverses(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	page := s.get("/agents/new?from=unattended").Body.String()
	wholePage(t, "/agents/new?from=unattended", page)
	for _, want := range []string{`value="claude_code" selected`, "allow shell git status", `name="unattended" value="true" checked`, "30 2 * * *"} {
		if !strings.Contains(page, want) {
			t.Errorf("the preset's form lacks %s", want)
		}
	}
	full := []string{
		"slug", "thinker", "mode", "local", "type", "codex", "command", "left over", "timeZone", "UTC", "workFolder", "/srv", "model", "m1", "executable", "/opt/codex",
		"permissions", "approval", "workspaceMode", "worktree", "baseBranch", "main", "maxTurns", "50", "unattended", "true",
		"rules", "allow shell make test *\r\n\r\ndeny network\r\n", "sessionLimit", "2.50", "dailyLimit", "$10",
	}
	wentTo(t, s.post("/agents", full...), "/agents/thinker")
	a, err := s.Engine.Agent(t.Context(), s.Owner, "thinker")
	if err != nil {
		t.Fatal(err)
	}
	want := []api.RunRule{{Area: "shell", Pattern: "make test *", Ruling: "allow"}, {Area: "network", Ruling: "deny"}}
	if !slices.Equal(a.Run.Rules, want) || a.Run.Command != nil || a.Run.Model != "m1" || !a.Run.Unattended || a.Run.MaxTurns != 50 || a.Run.BaseBranch != "main" ||
		a.SessionSpendLimitMicros != 2_500_000 || a.DailySpendLimitMicros != 10_000_000 {
		t.Errorf("made %+v", a.AgentInput)
	}
	var same []string
	for name, values := range formOf(a.AgentInput) {
		same = append(same, name, values[0])
	}
	same = append(same, "permissions", "approval") // as a browser sends it if nothing was chosen
	wentTo(t, s.post("/agents/thinker/edit", same...), "/agents/thinker")
	if again, err := s.Engine.Agent(t.Context(), s.Owner, "thinker"); err != nil || again.Version != a.Version {
		t.Errorf("version %d after an edit without a change, before %d: %v", again.Version, a.Version, err)
	}
	page = s.get("/agents/thinker").Body.String()
	wholePage(t, "/agents/thinker", page)
	for _, want := range []string{"Codex", "1 allow, 1 deny", "nobody: what no rule allows is refused", "a worktree per conversation from main", "$0.00 of $10.00", "$2.50"} {
		if !strings.Contains(page, want) {
			t.Errorf("the agent's page lacks %q", want)
		}
	}
	base := func(change ...string) []string {
		return append([]string{"slug", "ok", "mode", "local", "type", "codex", "timeZone", "UTC"}, change...)
	}
	refused(t, s.post("/agents", base("rules", "allow")...), `id="rules-error"`, "Line 1 names no area")
	refused(t, s.post("/agents", base("rules", "maybe shell ls")...), `id="rules-error"`)
	refused(t, s.post("/agents", base("dailyLimit", "lots")...), `id="dailyLimit-error"`)
	refused(t, s.post("/agents", base("sessionLimit", "2000000")...), `id="sessionLimit-error"`)
	refused(t, s.post("/agents", base("maxTurns", "many")...), `id="maxTurns-error"`)
	refused(t, s.post("/agents", base("model", "-x")...), `id="model-error"`)
}

// A program that speaks ACP is one of those with a name, or any other with its arguments; both come
// back as they were typed.
func TestAgentForm_NamesAProgramByACP(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	form := []string{"slug", "robot", "mode", "local", "type", "acp", "timeZone", "UTC", "workFolder", "/srv"}
	refused(t, s.post("/agents", form...), `id="executable-error"`, "opencode, gemini")
	refused(t, s.post("/agents", append(form, "executable", "robot 'x")...), `id="executable-error"`)
	wentTo(t, s.post("/agents", append(form, "executable", "/opt/my robot/run --acp")...), "/agents/robot")
	a, err := s.Engine.Agent(t.Context(), s.Owner, "robot")
	if err != nil || a.Run.Executable != "" || len(a.Run.Command) != 3 || formOf(a.AgentInput).Get("executable") != "/opt/my robot/run --acp" {
		t.Errorf("made %+v, shown as %q: %v", a.Run, formOf(a.AgentInput).Get("executable"), err)
	}
	wentTo(t, s.post("/agents/robot/edit", append(form, "executable", "opencode")...), "/agents/robot")
	if a, err := s.Engine.Agent(t.Context(), s.Owner, "robot"); err != nil || a.Run.Executable != "opencode" || a.Run.Command != nil {
		t.Errorf("made %+v, %v", a.Run, err)
	}
	if page := s.get("/agents/robot").Body.String(); !strings.Contains(page, "<code>opencode</code>") || !strings.Contains(page, "<p>opencode</p>") {
		t.Error("the agent's page doesn't name the program")
	}
}

func TestSchedulePreview(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	for query, want := range map[string]string{
		"schedule=30+2+*+*+*&timeZone=Europe/Berlin": "Wed 4 Mar 02:30 +01:00",
		"schedule=&timeZone=UTC":                     "only when somebody starts it",
		"schedule=99+*+*+*+*&timeZone=UTC":           `class="wrong"`,
		"schedule=@daily&timeZone=Nowhere":           `class="wrong"`,
	} {
		res := s.get("/ui/schedule?" + query)
		if res.Code != http.StatusOK || !strings.Contains(res.Body.String(), want) {
			t.Errorf("%s: status %d, %q isn't in %s", query, res.Code, want, res.Body)
		}
		if strings.Contains(res.Body.String(), "<html") {
			t.Errorf("%s: a whole page where a part was asked for", query)
		}
	}
}

func TestAgent_PauseResumeDelete(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	wentTo(t, s.post("/agents/backup/pause"), "/agents/backup")
	if page := s.get("/agents/backup").Body.String(); !strings.Contains(page, "/agents/backup/resume") || !strings.Contains(page, "Paused") {
		t.Error("the page doesn't say that the agent is paused")
	}
	wentTo(t, s.post("/agents/backup/resume"), "/agents/backup")
	wentTo(t, s.post("/agents/backup/delete"), "/agents")
	if res := s.get("/agents/backup"); res.Code != http.StatusNotFound {
		t.Errorf("the deleted agent's page: status %d", res.Code)
	}
	// Its sessions stay readable.
	if res := s.get(sessionURL(s.sessions[api.Complete].ID)); res.Code != http.StatusOK || !strings.Contains(res.Body.String(), "deleted") {
		t.Errorf("a session of the deleted agent: status %d", res.Code)
	}
}

func TestRun_OneFormIsOneSession(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	form := []string{"key", "K1", "prompt", "look\r\nhere", "title", "By hand", "priority", "5", "notBefore", "2026-03-04T09:30"}
	first := wentTo(t, s.post("/agents/backup/run", form...), "/sessions/ses_")
	if again := wentTo(t, s.post("/agents/backup/run", form...), "/sessions/ses_"); again != first {
		t.Errorf("the same form made %s and %s", first, again)
	}
	id, err := api.ParseSessionID(strings.TrimPrefix(first, "/sessions/"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Get(id); got.Prompt != "look\nhere" || got.Priority != 5 || got.Status != api.Pending || got.NotBefore.String() != "2026-03-04T09:30:00.000Z" {
		t.Errorf("made %+v", got)
	}
	refused(t, s.post("/agents/backup/run", "key", "K1", "prompt", "another"), "sent before", "another")
	refused(t, s.post("/agents/backup/run", "key", "K2", "prompt", "keep me", "priority", "high"), `id="priority-error"`, "keep me")
	refused(t, s.post("/agents/backup/run", "key", "K2", "prompt", "keep me", "notBefore", "soon"), `id="notBefore-error"`)
	own := s.agents["backup"].Prompt
	if own == "" {
		t.Fatal("the agent of this test needs a prompt of its own")
	}
	for name, at := range map[string]struct {
		path string
		form []string
		want string
	}{
		"the quick form left empty":     {"/run", []string{"agent", "backup", "prompt", " \r\n"}, own},
		"the quick form":                {"/run", []string{"agent", "backup", "prompt", "look"}, "look"},
		"the form emptied":              {"/agents/backup/run", []string{"key", "K3", "prompt", ""}, ""},
		"a form that has no such field": {"/agents/backup/run", []string{"key", "K4"}, own},
	} {
		made, err := api.ParseSessionID(strings.TrimPrefix(wentTo(t, s.post(at.path, at.form...), "/sessions/ses_"), "/sessions/"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Get(made).Prompt; got != at.want {
			t.Errorf("%s: prompt %q, want %q", name, got, at.want)
		}
	}
}

func TestSession_ActionsSayWhatTheyDid(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	on := func(status api.Status) string { return sessionURL(s.sessions[status].ID) }
	wentTo(t, s.post(on(api.Queued)+"/cancel"), on(api.Queued))
	s.Want(s.sessions[api.Queued].ID, api.Cancelled)
	if done := s.post(on(api.Queued) + "/cancel").Result().Cookies(); len(done) == 0 || !strings.Contains(done[0].Value, "already") {
		t.Errorf("a second cancel said %v", done)
	}
	wentTo(t, s.post(on(api.Active)+"/stop"), on(api.Active))
	if page := s.get(on(api.Active)).Body.String(); !strings.Contains(page, "It was asked to stop") {
		t.Error("the page doesn't say that it is stopping")
	}
	wentTo(t, s.post(on(api.Stale)+"/retry"), on(api.Stale))
	s.Want(s.sessions[api.Stale].ID, api.Queued)
	next := wentTo(t, s.post(on(api.Failed)+"/retry"), "/sessions/ses_")
	if next == on(api.Failed) {
		t.Error("a retry of an ended session led back to it")
	}
	if page := s.get(next).Body.String(); !strings.Contains(page, "<h2>Attempts</h2>") {
		t.Error("the new attempt doesn't show the old one")
	}
	wentTo(t, s.post(on(api.Complete)+"/archive"), on(api.Complete))
	if page := s.get("/sessions?agent=backup").Body.String(); strings.Contains(page, "row-"+s.sessions[api.Complete].ID.String()) {
		t.Error("an archived session is still listed")
	}
}

func TestAnswer_CountsOnceAndKeepsWhatWasTyped(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	asking := s.sessions[api.AwaitingInput]
	path := sessionURL(asking.ID)
	prompt := s.Get(asking.ID).Prompted.ID.String()
	if page := s.get(path).Body.String(); !strings.Contains(page, prompt) {
		t.Fatal("the page has no form for the open question")
	}
	wentTo(t, s.post(path+"/answer", "prompt", prompt, "text", "The cron job's."), path)
	s.Want(asking.ID, api.Active)
	late := s.post(path+"/answer", "prompt", prompt, "text", "The deploy's, please.")
	if late.Code != http.StatusConflict || !strings.Contains(late.Body.String(), "The deploy&#39;s, please.") {
		t.Errorf("a second answer: status %d, typed text kept: %v", late.Code, strings.Contains(late.Body.String(), "The deploy"))
	}
	if res := s.post(path+"/answer", "prompt", "nonsense", "text", "x"); res.Code != http.StatusNotFound {
		t.Errorf("an answer to nothing: status %d", res.Code)
	}
}

func TestForms_AreReadStrictly(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	const files = "multipart/form-data; boundary=x"
	for _, c := range []struct {
		kind, path string
		want       int
	}{
		{"text/plain", "/agents/backup/run", 415},
		{"application/json", "/agents/backup/run", 415},
		{"", "/agents/backup/run", 415},
		{files, "/agents/backup/run", 422}, // it may come with files, but this is none of that form
		{files, "/agents/backup/pause", 415},
	} {
		r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader("prompt=x"))
		r.Header.Set("Content-Type", c.kind)
		res := httptest.NewRecorder()
		s.handler.ServeHTTP(res, r)
		if res.Code != c.want {
			t.Errorf("%q at %s: status %d, want %d", c.kind, c.path, res.Code, c.want)
		}
	}
	if res := s.post("/agents/backup/run", "prompt", strings.Repeat("x", 2<<20)); res.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("2 MiB: status %d", res.Code)
	}
}
