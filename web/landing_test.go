package web

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"stint/account"
	"stint/api"
	"stint/engine"
)

func TestLanding_ProposesTheSubjectOfTheOnlyCommit(t *testing.T) {
	for _, dirty := range []bool{false, true} {
		s := newFixture(t, fixtureEnd)
		j := s.change(t, api.LandMerge)
		state := inWorktree(s.Clock.Now())
		state.CommitCount, state.Commits, state.Dirty = 1, state.Commits[:1], dirty
		j.report(state, everyFile()...)
		j.finish()
		if page := s.get(j.changesPath()).Body.String(); strings.Contains(page, ">Say how long to wait &lt;b&gt;</textarea>") == dirty {
			t.Errorf("not all committed is %v: the message proposed is the wrong one", dirty)
		} else if strings.Contains(page, "Once everything is committed, it is possible to push the branch, open a pull request or merge the changes.") != dirty {
			t.Errorf("not all committed is %v: what comes after that is not said, or said too often", dirty)
		}
	}
}

func TestLanding_IsAskedWithdrawnAndTold(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandMerge)
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	j.finish()
	land := j.path() + "/land"
	page := s.get(j.changesPath()).Body.String()
	wholePage(t, j.changesPath(), page)
	for _, want := range []string{`value="push"`, `value="pull_request"`, `value="merge"`, `value="discard"`, `value="squash"`, ">Limit requests per key</textarea>", "Merge into main"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, `value="keep"`) {
		t.Error("what is committed can be committed")
	}
	refused(t, s.post(land, "message", "my words"), "my words", "press one of the buttons")
	refused(t, s.post(land, "verb", "merge", "method", "force", "message", "my words"), "my words", "Method belongs to merge")
	if res := s.post(land, "verb", "keep", "message", "my words"); res.Code != http.StatusConflict || !strings.Contains(res.Body.String(), "my words") || !strings.Contains(res.Body.String(), "Everything is committed already") {
		t.Errorf("keep of what is committed: status %d", res.Code)
	}
	wentTo(t, s.post(land, "verb", "merge", "method", "squash", "message", "Limit them\r\n\nBy key."), j.changesPath())
	if l := j.landed(); l == nil || l.Verb != api.VerbMerge || l.Method != api.MergeSquash || l.Message != "Limit them\n\nBy key." {
		t.Fatalf("asked %+v", l)
	}
	page = s.get(j.changesPath()).Body.String()
	if !strings.Contains(page, "Waiting for the worker to merge the changes") || !strings.Contains(page, "Asked by you") || strings.Contains(page, `value="merge"`) {
		t.Error("the page doesn't say that it waits, or offers more")
	}
	if res := s.post(land, "verb", "push", "message", "my words"); res.Code != http.StatusConflict || !strings.Contains(res.Body.String(), "my words") {
		t.Errorf("a second request: status %d", res.Code)
	}
	withdraw := j.path() + "/landings/" + j.landed().ID.String() + "/withdraw"
	wentTo(t, s.post(withdraw), j.changesPath())
	if res := s.post(withdraw); res.Code != http.StatusConflict {
		t.Errorf("withdrawn twice: status %d", res.Code)
	}
	wentTo(t, s.post(land, "verb", "merge"), j.changesPath())
	j.answer(api.LandRefused, api.LandOutcome{Code: api.LandConflict, Detail: "main <moved> on.", Paths: []string{"go.sum", badPath}})
	page = s.get(j.changesPath()).Body.String()
	for _, want := range []string{"Not merged: there are conflicts", "main &lt;moved&gt; on.", "In conflict:", "<code>go.sum</code>", "&lt;script&gt;alert(2)", `value="merge"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	wentTo(t, s.post(land, "verb", "pull_request"), j.changesPath())
	j.answer(api.LandDone, api.LandOutcome{Commit: "fedcba9876543210", URL: "https://example.test/acme/api/pull/7"})
	page = s.get(j.changesPath()).Body.String()
	wholePage(t, j.changesPath(), page)
	if !strings.Contains(page, `<a href="https://example.test/acme/api/pull/7" rel="nofollow noopener noreferrer">`) || !strings.Contains(page, "<code>fedcba9876</code>") {
		t.Error("the page lacks the address of the pull request, or the commit")
	}
	page = s.get(j.path() + "?view=timeline").Body.String()
	for _, want := range []string{"Its changes were recorded", "8 files, +70903 −7", "Asked to merge the changes by you", "There are conflicts", "The request to merge the changes was taken back by you", "Asked to open a pull request by you"} {
		if !strings.Contains(page, want) {
			t.Errorf("the timeline lacks %q", want)
		}
	}
	page = s.get("/activity").Body.String()
	for _, want := range []string{"asked what to do with the changes of", "did as asked with the changes of", "recorded the changes of", "· 8 files, +70903 −7<", "There are conflicts"} {
		if !strings.Contains(strings.ToLower(page), strings.ToLower(want)) {
			t.Errorf("the activity lacks %q", want)
		}
	}
}

func TestLanding_DiscardAsksTwice(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandPush)
	state := inWorktree(s.Clock.Now())
	state.Dirty = true
	j.report(state, everyFile()...)
	j.finish()
	page := s.get(j.changesPath()).Body.String()
	if !strings.Contains(page, "Not all committed") {
		t.Error("the page doesn't say that some files are not committed")
	}
	if strings.Contains(page, "Discard it") || strings.Contains(page, `name="confirm"`) || strings.Contains(page, `value="merge"`) || !strings.Contains(page, "as far as &#34;push&#34;") {
		t.Error("the first look offers the last step, or more than the owner allows, or doesn't say so")
	}
	wentTo(t, s.post(j.path()+"/land", "verb", "discard"), j.changesPath())
	if page = s.get(j.changesPath()).Body.String(); !strings.Contains(page, "Waiting for the worker to say what discarding would lose") {
		t.Error("the first press is said to discard")
	}
	j.answer(api.LandAsks, api.LandOutcome{Detail: "2 commits are nowhere else.", Paths: []string{"limit/limit.go"}, Token: "tok-1"})
	page = s.get(j.changesPath()).Body.String()
	wholePage(t, j.changesPath(), page)
	for _, want := range []string{"Discard all of this?", "2 commits are nowhere else.", "What would be lost", `name="confirm" value="tok-1"`, `class="btn risk"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	wentTo(t, s.post(j.path()+"/land", "verb", "discard", "confirm", "tok-1"), j.changesPath())
	if l := j.landed(); l.Confirm != "tok-1" {
		t.Errorf("asked %+v", l)
	}
	j.answer(api.LandDone, api.LandOutcome{Detail: "Workspace and branch are gone."})
	page = s.get(j.path() + "?view=timeline").Body.String()
	for _, want := range []string{"Asked to say what discarding would lose by you", "Asked to discard the changes by you"} {
		if !strings.Contains(page, want) {
			t.Errorf("the timeline lacks %q", want)
		}
	}
	if page = s.get(j.changesPath()).Body.String(); !strings.Contains(page, "Discarded") || strings.Contains(page, `value="discard"`) || strings.Contains(page, "Not all committed") {
		t.Error("the page doesn't say that it is done, offers it again, or says what is left to commit")
	}
}

func TestLanding_SaysWhyNothingIsOffered(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandOff)
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	j.finish()
	page := s.get(j.changesPath()).Body.String()
	if !strings.Contains(page, "the setting land of this agent is off") || strings.Contains(page, "/land\"") {
		t.Error("the page doesn't say why, or offers something")
	}
	if res := s.post(j.path()+"/land", "verb", "push", "message", "my words"); res.Code != http.StatusConflict || !strings.Contains(res.Body.String(), "my words") {
		t.Errorf("status %d", res.Code)
	}
}

// Members see a cloud session's changes, and admins alone may have them landed.
func TestLanding_OfACloudAgentIsTheAdmins(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	a := s.Agent(func(in *api.AgentInput) {
		in.Slug, in.Mode, in.RunsAsUserID, in.Type, in.Run = "cloudy", api.Cloud, 0, api.TypeClaudeCode, api.Run{WorkFolder: "/srv"}
	})
	k := s.Worker(a, func(in *api.WorkerInput) { in.Land, in.Types = api.LandMerge, []api.AgentType{api.TypeClaudeCode} })
	j := &talkJob{s: s, agent: a, k: k, claim: k.Claim(s.New(a).ID)}
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	j.finish()
	_, member := s.joins(t, api.Member)
	pages := New(Options{Engine: s.Engine, Accounts: s.Accounts, CallerOf: func(*http.Request) (engine.Caller, account.Identity, bool) { return member, account.Identity{}, true }})
	ask := func(method, path, form string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res := httptest.NewRecorder()
		pages.ServeHTTP(res, r)
		return res
	}
	if body := ask(http.MethodGet, j.changesPath(), "").Body.String(); !strings.Contains(body, "const most = 60") || strings.Contains(body, "/land\"") {
		t.Error("a member doesn't see the changes, or is offered to land them")
	}
	if res := ask(http.MethodPost, j.path()+"/land", "verb=push"); res.Code != http.StatusForbidden {
		t.Errorf("a member lands: status %d", res.Code)
	}
	wentTo(t, s.post(j.path()+"/land", "verb", "push"), j.changesPath())
	if body := ask(http.MethodGet, j.changesPath(), "").Body.String(); !strings.Contains(body, "Asked by "+s.Owner.Name) || strings.Contains(body, "/withdraw") {
		t.Error("a member doesn't see who asked, or may take it back")
	}
}

// While the page is open it shows what becomes of a request, and that there are other files.
func TestChanges_AreLive(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	j := s.change(t, api.LandMerge)
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	live := s.listen(t, server, s.streamOf(t, j.changesPath()), "")
	j.report(inWorktree(s.Clock.Now()), everyFile()[:2]...)
	live.until("The files have changed", "2 files, +2 −1")
	j.finish()
	live.until(`value="merge"`)
	wentTo(t, s.post(j.path()+"/land", "verb", "merge"), j.changesPath())
	live.until("Waiting for the worker")
	j.answer(api.LandDone, api.LandOutcome{Commit: "fedcba9876543210"})
	live.until("fedcba9876")
}

func TestUnlanded_IsCountedListedAndMarked(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	if home, list := s.get("/").Body.String(), s.get("/sessions").Body.String(); strings.Contains(home, "wait to be landed") || strings.Contains(list, "Changes wait") {
		t.Error("changes wait where there are none")
	}
	if page := s.get("/sessions?q=is:unlanded+is:kept").Body.String(); !strings.Contains(page, `href="/sessions?q=is%3Akept" aria-current>`) {
		t.Error("the chip for changes that wait doesn't take is:unlanded out of the search")
	}
	if page := s.get("/sessions?unlanded=true").Body.String(); !strings.Contains(page, "No changes wait to be landed") {
		t.Error("the empty list doesn't say what it is a list of")
	}
	j := s.change(t, api.LandMerge)
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	j.finish()
	if page := s.get("/").Body.String(); !strings.Contains(page, `<a href="/sessions?unlanded=true">The changes of 1 session wait to be landed</a>`) {
		t.Error("the home page doesn't lead to them")
	}
	all := s.get("/sessions?agent=coder&q=limit").Body.String()
	if !strings.Contains(all, `href="/sessions?agent=coder&amp;q=limit&amp;unlanded=true"`) || !strings.Contains(all, j.path()+`?view=changes">changes wait</a>`) {
		t.Error("the list doesn't offer the filter, or doesn't mark the row")
	}
	page := s.get("/sessions?unlanded=true").Body.String()
	wholePage(t, "/sessions?unlanded=true", page)
	if strings.Count(page, `id="row-`) != 1 || !strings.Contains(page, "row-"+j.claim.SessionID.String()) || !strings.Contains(page, `<input type="hidden" name="unlanded" value="true">`) || !strings.Contains(page, `unlanded=true`) {
		t.Error("the list isn't narrowed, or forgets that it is")
	}
	server := s.serve(t)
	live := s.listen(t, server, s.streamOf(t, "/sessions?unlanded=true"), "")
	s.New(s.agents["issue-triage"])
	wentTo(t, s.post(j.path()+"/land", "verb", "push"), j.changesPath())
	j.answer(api.LandDone, api.LandOutcome{})
	got := live.until("row-" + j.claim.SessionID.String()).html
	for strings.Contains(got, "changes wait</a>") { // drawn before the worker answered
		got = live.until("row-" + j.claim.SessionID.String()).html
	}
	if strings.Contains(got, " new") {
		t.Errorf("newer ones are counted: %s", got)
	}
}

func TestTask_ShowsWhatItsSessionChanged(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.change(t, api.LandMerge)
	task := s.Task("Limit requests")
	d := s.Dispatch(task.Key, api.DispatchInput{Agent: "coder"})
	j.claim = j.k.Claim(d.Session.ID)
	if page := s.get(taskURL(task.Key)).Body.String(); strings.Contains(page, "changes-title") {
		t.Error("changes where there are none")
	}
	j.report(inWorktree(s.Clock.Now()), everyFile()...)
	j.finish()
	page := s.get(taskURL(task.Key)).Body.String()
	wholePage(t, taskURL(task.Key), page)
	if !strings.Contains(page, j.changesPath()+`">8 files, +70903 −7</a>`) || !strings.Contains(page, "<code>stint/limit-requests</code>") || !strings.Contains(page, "Nobody has landed them yet") {
		t.Error("the task doesn't show what was changed")
	}
	wentTo(t, s.post(j.path()+"/land", "verb", "pull_request"), j.changesPath())
	j.answer(api.LandDone, api.LandOutcome{URL: "https://example.test/acme/api/pull/7"})
	if page = s.get(taskURL(task.Key)).Body.String(); !strings.Contains(page, "https://example.test/acme/api/pull/7") || strings.Contains(page, "Nobody has landed") {
		t.Error("the task doesn't show what came of it")
	}
}

func TestWorker_SaysHowFarChangesMayBeLanded(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	a := s.agents["backup"]
	for _, level := range api.LandLevels {
		k := s.Worker(a, func(in *api.WorkerInput) { in.Land = level })
		if page := s.get(workerURL(k.ID)).Body.String(); landLevels[level] == "" || !strings.Contains(page, landLevels[level]) || !strings.Contains(page, "stint worker init") {
			t.Errorf("the page of a worker doesn't say %s", level)
		}
	}
}

// What the API knows of changes has words here.
func TestChanges_EveryWordIsKnown(t *testing.T) {
	t.Parallel()
	for _, v := range api.LandVerbs {
		if w := landVerbs[v]; w.button == "" || w.do == "" || w.done == "" || w.not == "" || !icons[w.icon] {
			t.Errorf("%s: %+v", v, w)
		}
	}
	for _, c := range api.FileChanges {
		if changeLooks[c].word == "" || noLines[c] == "" {
			t.Errorf("no word for a file that is %s", c)
		}
	}
	for _, p := range api.Places {
		if placeWords[p] == "" {
			t.Errorf("no words for %s", p)
		}
	}
	if got := mergeOptions(); len(got) != len(api.MergeMethods)+1 || slices.ContainsFunc(got, func(o Option) bool { return o.Word == "" }) {
		t.Errorf("methods %v", got)
	}
}
