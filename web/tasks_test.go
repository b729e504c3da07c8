package web

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// pagesOf is a further member of the fixture's workspace and how they ask for pages.
func (s *fixture) pagesOf(t *testing.T, role api.Role) (engine.Caller, func(method, path string, form ...string) *httptest.ResponseRecorder) {
	t.Helper()
	who, caller := s.joins(t, role)
	handler := New(Options{Engine: s.Engine, Accounts: s.Accounts, CallerOf: func(*http.Request) (engine.Caller, account.Identity, bool) { return caller, who, true }})
	return caller, func(method, path string, form ...string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, path, strings.NewReader(formValues(form).Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res := httptest.NewRecorder()
		handler.ServeHTTP(res, req)
		return res
	}
}

func (s *fixture) task(t *testing.T, key string) api.Task {
	t.Helper()
	out, err := s.Engine.Task(t.Context(), s.Owner, key)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// browserForm is what a browser would send of the page's form.
func browserForm(t *testing.T, page string) url.Values {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	out := url.Values{}
	for n := range doc.Descendants() {
		name := attr(n, "name")
		switch n.Data {
		case "input":
			out.Set(name, attr(n, "value"))
		case "textarea":
			out.Set(name, "")
			if n.FirstChild != nil {
				out.Set(name, strings.ReplaceAll(n.FirstChild.Data, "\n", "\r\n"))
			}
		case "option":
			if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "selected" }) {
				out.Set(attr(n.Parent, "name"), attr(n, "value"))
			}
		}
	}
	return out
}

// goesTo fails unless a form was accepted and leads to a path.
func goesTo(t *testing.T, res *httptest.ResponseRecorder, path string) {
	t.Helper()
	if res.Code != http.StatusSeeOther || res.Header().Get("Location") != path {
		t.Fatalf("status %d to %q, want %q: %s", res.Code, res.Header().Get("Location"), path, res.Body)
	}
}

func TestTasks_AreMadeChangedAndClosedByForms(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	refused := s.post("/tasks", "title", "", "priority", "p9", "blockedBy", "T-77", "labels", "docs", "description", "All\r\nof it")
	body := refused.Body.String()
	if refused.Code != http.StatusUnprocessableEntity || strings.Count(body, `aria-invalid="true"`) < 2 || !strings.Contains(body, "of it</textarea>") {
		t.Fatalf("a bad form: status %d, %d fields at fault", refused.Code, strings.Count(body, `aria-invalid="true"`))
	}
	res := s.post("/tasks", "title", "Count the <b>stars</b>", "priority", "p1", "blockedBy", "T-2, T-4", "labels", "night sky", "assignee", "me",
		"links", "https://example.test/one One\r\nhttps://example.test/two", "description", "All\r\nof it", "state", "todo")
	goesTo(t, res, "/tasks/T-7")
	made := s.task(t, "T-7")
	if made.Priority != "p1" || len(made.BlockedBy) != 2 || len(made.Labels) != 2 || len(made.Links) != 2 || made.Links[0].Title != "One" ||
		made.Description != "All\nof it" || made.Assignee == nil || made.Assignee.ID != s.Owner.UserID.String() || made.Lease != nil {
		t.Fatalf("made: %+v", made)
	}
	form := s.get("/tasks/T-7/edit").Body.String()
	for _, want := range []string{`value="Count the &lt;b&gt;stars&lt;/b&gt;"`, "T-2 T-4", "https://example.test/one One\nhttps://example.test/two", `value="` + s.Owner.UserID.String() + `" selected`} {
		if !strings.Contains(form, want) {
			t.Errorf("the form lacks %q", want)
		}
	}
	page := s.get("/tasks/T-7").Body.String()
	if strings.Contains(page, "<b>stars") || !strings.Contains(page, "It waits for other tasks") || strings.Contains(page, "/dispatch\"") {
		t.Error("a title is markup, or a task that waits can be dispatched")
	}
	first := browserForm(t, form)
	save := func(changes ...string) *httptest.ResponseRecorder {
		filled := maps.Clone(first)
		maps.Copy(filled, formValues(changes))
		var pairs []string
		for name, values := range filled {
			pairs = append(pairs, name, values[0])
		}
		return s.post("/tasks/T-7/edit", pairs...)
	}
	goesTo(t, save("title", "Count them", "blockedBy", ""), "/tasks/T-7")
	if got := s.task(t, "T-7"); got.Title != "Count them" || got.State != api.TaskTodo || len(got.BlockedBy) != 0 || got.Assignee == nil || got.Description != "All\nof it" {
		t.Errorf("saved: %+v", got)
	}
	// A form that was filled before that: another field is merged, the same one comes back.
	goesTo(t, save("priority", "p3"), "/tasks/T-7")
	if got := s.task(t, "T-7"); got.Title != "Count them" || got.Priority != "p3" || len(got.BlockedBy) != 0 {
		t.Errorf("merged: %+v", got)
	}
	stale := save("title", "Count other things")
	page = stale.Body.String()
	if stale.Code != http.StatusConflict || !strings.Contains(page, `value="Count other things"`) || !strings.Contains(page, "to: “Count them”") {
		t.Errorf("a field that somebody else changed: status %d", stale.Code)
	}
	if got := s.task(t, "T-7").Title; got != "Count them" {
		t.Errorf("it overwrote: %q", got)
	}
	first = browserForm(t, page)
	goesTo(t, save(), "/tasks/T-7")
	if got := s.task(t, "T-7"); got.Title != "Count other things" || got.Priority != "p3" {
		t.Errorf("saved again: %+v", got)
	}
	goesTo(t, s.post("/tasks/T-7/state", "state", "done"), "/tasks/T-7")
	if page = s.get("/tasks/T-7").Body.String(); !strings.Contains(page, "Open again") || strings.Contains(page, "Claim it") {
		t.Error("a task that is done can be claimed, or not be opened again")
	}
}

func TestTasks_LeaseIsToldApartFromTheAssignment(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	_, other := s.pagesOf(t, api.Member)
	goesTo(t, s.post("/tasks/T-4/claim"), "/tasks/T-4")
	mine, theirs := s.get("/tasks/T-4").Body.String(), other(http.MethodGet, "/tasks/T-4").Body.String()
	if !strings.Contains(mine, "You are at work on it") || !strings.Contains(mine, "/release") || !strings.Contains(mine, "Yours") {
		t.Error("the holder's page doesn't say so")
	}
	if !strings.Contains(theirs, s.Owner.Name+" is at work on it") || strings.Contains(theirs, "/release") || strings.Contains(theirs, "/claim") || strings.Contains(theirs, "/dispatch") {
		t.Error("the other's page offers what would be refused")
	}
	until := s.task(t, "T-4").Lease.ExpiresAt.Time
	if res := other(http.MethodPost, "/tasks/T-4/claim"); res.Code != http.StatusConflict || !strings.Contains(res.Body.String(), s.Owner.Name+" holds T-4 until") {
		t.Errorf("a claim against it: status %d: %s", res.Code, res.Body)
	}
	if res := other(http.MethodPost, "/tasks/T-4/state", "state", "in_progress"); res.Code != http.StatusConflict {
		t.Errorf("in progress against it: status %d", res.Code)
	}
	goesTo(t, s.post("/tasks/T-4/extend", "hours", "4"), "/tasks/T-4")
	if got := s.task(t, "T-4").Lease.ExpiresAt.Time; got.Sub(until) != 4*time.Hour {
		t.Errorf("extended by %s", got.Sub(until))
	}
	if res := s.post("/tasks/T-4/extend", "hours", "soon"); res.Code != http.StatusUnprocessableEntity {
		t.Errorf("hours that are no number: status %d", res.Code)
	}
	goesTo(t, s.post("/tasks/T-4/renew"), "/tasks/T-4")
	s.Advance(7 * time.Hour) // the lease is over, the assignment stands
	if page := s.get("/tasks?assignee=me").Body.String(); !strings.Contains(page, taskRowID(s.task(t, "T-4"))) {
		t.Error("it is no longer the owner's after a lapse")
	}
	if page := s.get("/tasks?holder=any").Body.String(); strings.Contains(page, taskRowID(s.task(t, "T-4"))) {
		t.Error("somebody is at work on it after a lapse")
	}
	took := other(http.MethodPost, "/tasks/T-4/claim")
	goesTo(t, took, "/tasks/T-4")
	if said, _ := url.QueryUnescape(took.Result().Cookies()[0].Value); !strings.Contains(said, "it was "+s.Owner.Name+"'s") {
		t.Errorf("taken over: %q", said)
	}
	goesTo(t, other(http.MethodPost, "/tasks/T-4/release"), "/tasks/T-4")
	if got := s.task(t, "T-4"); got.Lease != nil || got.Assignee != nil {
		t.Errorf("released: %+v", got)
	}
}

func TestTasks_DispatchShowsTheBriefingAndRefusesWhatIsHeld(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	_, other := s.pagesOf(t, api.Member)
	if page := s.get("/tasks/T-4/dispatch").Body.String(); !strings.Contains(page, "# T-4: Look at the failing backup") || !strings.Contains(page, "Choose one") {
		t.Error("the briefing isn't there to be read first, or an agent is chosen for no reason")
	}
	if page := s.get("/tasks/T-6/dispatch").Body.String(); !strings.Contains(page, "It is done.") || strings.Contains(page, `name="agent"`) {
		t.Error("what is done could be dispatched")
	}
	if res := s.post("/tasks/T-4/dispatch", "key", "k1"); res.Code != http.StatusUnprocessableEntity || !strings.Contains(res.Body.String(), `id="agent-error"`) {
		t.Errorf("without an agent: status %d", res.Code)
	}
	res := s.post("/tasks/T-4/dispatch", "key", "k2", "agent", "backup", "prompt", "Only look.")
	held := s.task(t, "T-4").Lease
	if held == nil || !held.Bound {
		t.Fatalf("dispatched: %+v", held)
	}
	goesTo(t, res, sessionURL(held.SessionID))
	goesTo(t, s.post("/tasks/T-4/dispatch", "key", "k2", "agent", "backup", "prompt", "Only look."), sessionURL(held.SessionID))
	if page := s.get(sessionURL(held.SessionID)).Body.String(); !strings.Contains(page, `href="/tasks/T-4"`) {
		t.Error("the session's page doesn't name the task")
	}
	again := s.post("/tasks/T-4/dispatch", "key", "k3", "agent", "backup", "prompt", "Do it all again.")
	body := again.Body.String()
	if again.Code != http.StatusConflict || !strings.Contains(body, s.Owner.Name+" holds T-4") || !strings.Contains(body, "Do it all again.") || !strings.Contains(body, `name="force"`) {
		t.Errorf("a second dispatch: status %d", again.Code)
	}
	if body := other(http.MethodGet, "/tasks/T-4/dispatch").Body.String(); strings.Contains(body, `name="force"`) || strings.Contains(body, held.SessionID.String()) {
		t.Error("a member is offered force, or told of somebody else's local session")
	}
	if res := other(http.MethodPost, "/tasks/T-4/dispatch", "agent", "backup", "force", "true"); res.Code != http.StatusForbidden {
		t.Errorf("force as a member: status %d", res.Code)
	}
	forced := s.post("/tasks/T-4/dispatch", "key", "k4", "agent", "backup", "force", "true")
	if now := s.task(t, "T-4").Lease; forced.Code != http.StatusSeeOther || now.SessionID == held.SessionID {
		t.Errorf("forced: status %d, %+v", forced.Code, now)
	}
}

func TestTasks_BoardMovesCardsWithAndWithoutScripts(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	board := "/tasks?label=docs&view=board"
	page := s.get(board).Body.String()
	wholePage(t, board, page)
	if !strings.Contains(page, `action="/tasks/T-1/state?label=docs&amp;view=board"`) || strings.Contains(page, "T-4") {
		t.Error("the board forgets its filter")
	}
	goesTo(t, s.post("/tasks/T-1/state?label=docs&view=board", "state", "review"), board)
	if got := s.task(t, "T-1").State; got != api.TaskReview {
		t.Errorf("moved to %s", got)
	}
	req := httptest.NewRequest(http.MethodPost, "/tasks/T-1/state?view=board", strings.NewReader("state=blocked"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("HX-Request", "true")
	res := httptest.NewRecorder()
	s.handler.ServeHTTP(res, req)
	if res.Code != http.StatusNoContent || s.task(t, "T-1").State != api.TaskBlocked {
		t.Errorf("by script: status %d", res.Code)
	}
	if res := s.post("/tasks/T-1/state", "state", "somewhere"); res.Code != http.StatusUnprocessableEntity {
		t.Errorf("an unknown state: status %d", res.Code)
	}
	if res := s.post("/tasks/T-1/state?evil=https://elsewhere.test/", "state", "todo"); res.Header().Get("Location") != "/tasks" {
		t.Errorf("it leads to %q", res.Header().Get("Location"))
	}
}

func TestTasks_CommentsAreKeptWhenRefused(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	goesTo(t, s.post("/tasks/T-1/comments", "text", "One *thing* <script>x</script>"), "/tasks/T-1")
	if page := s.get("/tasks/T-1").Body.String(); !strings.Contains(page, "One <em>thing</em>") || strings.Contains(page, "<script>x") {
		t.Error("a comment isn't Markdown, or more than that")
	}
	long := strings.Repeat("long ", 10_000)
	if res := s.post("/tasks/T-1/comments", "text", long); res.Code != http.StatusUnprocessableEntity || !strings.Contains(res.Body.String(), long[:1000]) {
		t.Errorf("a comment that is too long: status %d", res.Code)
	}
}

func TestTasks_ExportIsWhatTheCommandLineReads(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	csv, json := s.get("/tasks/export.csv"), s.get("/tasks/export.json")
	if !strings.HasPrefix(csv.Body.String(), "key,slug,title,") || !strings.Contains(csv.Body.String(), "\nT-2,,Update the dependencies,") {
		t.Errorf("CSV: %s", csv.Body)
	}
	if !strings.Contains(json.Body.String(), `"title": "Update the dependencies"`) || json.Header().Get("Content-Disposition") == "" {
		t.Errorf("JSON: %s", json.Body)
	}
}

func TestTasks_PagesAreAlive(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	readers := map[string]*reader{}
	for _, path := range []string{"/tasks", "/tasks?view=board", "/tasks?view=next", "/tasks/T-4"} {
		readers[path] = s.listen(t, server, s.streamOf(t, path), "")
	}
	if _, err := s.Engine.ClaimTask(t.Context(), s.Owner, "T-4", api.TaskClaimInput{}); err != nil {
		t.Fatal(err)
	}
	readers["/tasks"].until(`hx-target="#task-T-4"`, "You are at work on it")
	readers["/tasks?view=board"].until(`hx-target="#column-blocked"`, "You are at work on it")
	readers["/tasks?view=next"].until(`hx-target="#task-next"`)
	readers["/tasks/T-4"].until(`hx-target="#task-aside"`, "lease left")
	if _, err := s.Engine.CommentTask(t.Context(), s.Owner, "T-4", api.TaskCommentInput{Text: "Brand new"}); err != nil {
		t.Fatal(err)
	}
	readers["/tasks/T-4"].until(`hx-target="#task-comments"`, "Brand new")
	in := engine.DefaultTask()
	in.Title = "Another"
	if _, _, err := s.Engine.CreateTask(t.Context(), s.Owner, in, engine.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	readers["/tasks"].until(`hx-target="#newer"`, "1 new", `hx-target="#task-chips"`)
	readers["/tasks?view=board"].until(`hx-target="#column-todo"`, "Another")
}

// manyTasks makes n tasks of all states and priorities, with links and labels.
func manyTasks(t testing.TB, n int) *fixture {
	t.Helper()
	s := newStage(enginetest.New(t))
	for i := range n {
		in := engine.DefaultTask()
		in.Title = fmt.Sprintf("Task %d: something that somebody has to do before long", i)
		in.State, in.Priority = api.TaskStates[i*7%5], api.TaskPriorities[i*3%3]
		if in.State == api.TaskInProgress {
			in.State = api.TaskTodo
		}
		in.Labels = api.Labels{"area-" + fmt.Sprint(i%9), "kind"}
		for k := range 5 {
			in.Links = append(in.Links, api.TaskLink{URL: fmt.Sprintf("https://example.test/%d/%d", i, k), Title: "Something to read"})
		}
		if _, _, err := s.Engine.CreateTask(t.Context(), s.Owner, in, engine.Idempotency{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A board of many tasks is no larger than a board of some hundred: it shows the most urgent.
func TestTasks_BoardOfManyIsSmall(t *testing.T) {
	s := manyTasks(t, 600)
	page := s.get("/tasks?view=board").Body.Bytes()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(page); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d compressed", len(page), packed.Len())
	if packed.Len() > 120<<10 {
		t.Errorf("%d bytes compressed, at most 120 KiB", packed.Len())
	}
	if n := strings.Count(string(page), "All of them"); n < 3 || !strings.Contains(string(page), `href="/tasks?state=todo"`) {
		t.Errorf("%d columns lead to what they leave out", n)
	}
}

func BenchmarkTaskBoard(b *testing.B) {
	s := manyTasks(b, 10_000)
	for b.Loop() {
		if res := s.get("/tasks?view=board"); res.Code != http.StatusOK {
			b.Fatal(res.Code)
		}
	}
}

func TestBrowser_CardsMoveByKeysButtonsAndDragging(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	holder, as := s.pagesOf(t, api.Member)
	goesTo(t, as(http.MethodPost, "/tasks/T-5/claim"), "/tasks/T-5")
	b := openTab(t, s.serve(t))
	b.allow("409") // the refusal below
	b.open("/tasks?view=board")
	b.until("the page is live", isLive)
	in := func(key string, state api.TaskState) string {
		return `!!document.querySelector("#` + columnID(state) + ` #card-` + key + `")`
	}
	b.press("j")
	b.until("the first card is marked", `!!document.querySelector("#card-T-1.at")`)
	b.press("]")
	b.until("the key moves it on", in("T-1", api.TaskInProgress))
	b.until("its button moves it", `(document.querySelector("#card-T-4 [data-move='1']")?.click(), `+in("T-4", api.TaskReview)+`)`)
	drag := func(key string, state api.TaskState) {
		js[bool](b, `(() => {
			const card = document.getElementById("card-`+key+`"), data = new DataTransfer(), column = document.getElementById("`+columnID(state)+`")
			for (const [at, kind] of [[card.querySelector("a"), "dragstart"], [column, "dragover"], [column, "drop"]])
				at.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data }))
			return true
		})()`)
	}
	drag("T-4", api.TaskDone)
	b.until("it is where it was dropped", in("T-4", api.TaskDone))
	drag("T-5", api.TaskInProgress)
	b.until("who holds it is said, and it stays", `document.querySelector("#toasts").textContent.includes("`+holder.Name+` holds T-5 until") && `+in("T-5", api.TaskReview))
	if got := s.task(t, "T-5").State; got != api.TaskReview {
		t.Errorf("a refused move: %s", got)
	}
}

// A list's rows are its readers' own, however long they were away: a row that no longer fits
// the filter is shown as it is now.
func TestTasks_ListIsRightAfterAGap(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	stream := s.streamOf(t, "/tasks?state=blocked")
	goesTo(t, s.post("/tasks/T-4/state", "state", "review"), "/tasks/T-4")
	s.listen(t, server, stream, "").until(`hx-target="#task-T-4"`, "In review")
	none := s.streamOf(t, "/tasks?q=nothing+yet")
	in := engine.DefaultTask()
	in.Title = "Nothing yet, or so"
	if _, _, err := s.Engine.CreateTask(t.Context(), s.Owner, in, engine.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	s.listen(t, server, none, "").until(`hx-target="#newer"`, "1 new")
}

func TestTasks_AnEmptyBoardFillsByItself(t *testing.T) {
	s := newStage(enginetest.New(t))
	server := s.serve(t)
	page := s.get("/tasks?view=board").Body.String()
	if !strings.Contains(page, `id="column-todo"`) || !strings.Contains(page, "No tasks yet") {
		t.Error("an empty board has no columns, or doesn't say what tasks are")
	}
	r := s.listen(t, server, s.streamOf(t, "/tasks?view=board"), "")
	in := engine.DefaultTask()
	in.Title = "The first"
	if _, _, err := s.Engine.CreateTask(t.Context(), s.Owner, in, engine.Idempotency{}); err != nil {
		t.Fatal(err)
	}
	r.until(`hx-target="#board-empty"`, `hx-target="#column-todo"`, "The first")
}
