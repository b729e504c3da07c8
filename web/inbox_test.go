package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"stint/account"
	"stint/api"
	"stint/engine"
)

func TestInbox_HoldsAllThatWaitsAndAnswersInPlace(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	j.ask(approval)
	asking := s.sessions[api.AwaitingInput]
	page := s.get("/inbox").Body.String()
	wholePage(t, "/inbox", page)
	stale, failed := s.sessions[api.Stale], s.sessions[api.Failed]
	for what, want := range map[string]string{
		"the question":         "Which log shall I read first?",
		"the whole act":        "rm -rf build &amp;&amp; make &lt;all&gt;",
		"the stale session":    `id="in-` + stale.ID.String() + `"`,
		"its retry":            `action="` + sessionURL(stale.ID) + `/retry"`,
		"the failed session":   "AGENT_EXIT_NONZERO",
		"where it is archived": `action="` + sessionURL(failed.ID) + `/archive"`,
		"the title":            "4 things wait for you",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the inbox lacks %s: %s", what, want)
		}
	}
	prompt := s.Get(asking.ID).Prompted.ID.String()
	path := sessionURL(asking.ID) + "/answer"
	refused(t, s.post(path, "prompt", prompt, "from", "inbox", "text", " "), "things wait for you", "Is missing: write an answer")
	wentTo(t, s.post(path, "prompt", prompt, "from", "inbox", "text", "The cron job's."), "/inbox")
	s.Want(asking.ID, api.Active)
	late := s.post(path, "prompt", prompt, "from", "inbox", "text", "The deploy's, please.")
	for _, want := range []string{"3 things wait for you", "came too late", "The deploy&#39;s, please."} {
		if late.Code != http.StatusConflict || !strings.Contains(late.Body.String(), want) {
			t.Errorf("status %d, or the page lacks %q", late.Code, want)
		}
	}
	wentTo(t, s.post(sessionURL(failed.ID)+"/archive", "from", "inbox"), "/inbox")
	if page := s.get("/inbox").Body.String(); strings.Contains(page, failed.ID.String()) {
		t.Error("an archived failure is still in the inbox")
	}
}

func TestInbox_ShowsFormsToThoseWhoMayUseThem(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	a := s.Agent(func(in *api.AgentInput) { in.Mode, in.Slug, in.Type = api.Cloud, "cloudy", api.TypeClaudeCode })
	k := s.Worker(a, func(in *api.WorkerInput) { in.Mode, in.Types = api.Cloud, []api.AgentType{api.TypeClaudeCode} })
	c := k.Claim(s.New(a).ID)
	if _, err := k.Ask(c, "Shall I go on?"); err != nil {
		t.Fatal(err)
	}
	for role, form := range map[api.Role]bool{api.Viewer: false, api.Member: false, api.Admin: true} {
		who, caller := s.joins(t, role)
		handler := New(Options{Engine: s.Engine, Accounts: s.Accounts, CallerOf: func(*http.Request) (engine.Caller, account.Identity, bool) { return caller, who, true }})
		for _, path := range []string{"/inbox", sessionURL(c.SessionID)} {
			res := httptest.NewRecorder()
			handler.ServeHTTP(res, httptest.NewRequest(http.MethodGet, path, nil))
			page := res.Body.String()
			if !strings.Contains(page, "Shall I go on?") || strings.Contains(page, "/answer") != form || strings.Contains(page, "Which log shall I read first?") {
				t.Errorf("%s as %s: form %v, want %v; or the question is missing, or a local one is shown", path, role, !form, form)
			}
		}
	}
}

func TestBrowser_TheInboxIsAnsweredInPlaceAndStaysLive(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	first := j.ask(questions)
	other := s.another(j)
	server := s.serve(t)
	b := openTab(t, server)
	b.do(chromedp.EmulateViewport(390, 844))
	b.open("/inbox")
	b.until("the page is live", isLive)
	own := "[id='" + first.ID.String() + "-own1']"
	b.do(chromedp.Click(chromedp.CSS(own)), chromedp.SendKeys(chromedp.CSS(own), "half"))
	p := other.ask(approval)
	b.until("a new question came on top, what is typed stayed", `document.querySelector('#inbox-items > li').id === 'in-`+p.ID.String()+`' && document.activeElement.name === 'own1' && document.activeElement.value === 'half'`)
	b.until("the count in the rail went up", `document.querySelector('#needs-count').textContent.trim().startsWith('5')`)
	if wide := js[string](b, sideways); wide != "" {
		t.Errorf("the inbox scrolls sideways: %s", wide)
	}
	// The question is answered elsewhere: a form with something typed into it stays.
	if _, err := s.AnswerPrompt(t.Context(), s.Owner, j.claim.SessionID, api.AnswerInput{PromptID: first.ID, Answer: api.Answer{Choices: map[string]string{"colour": "red", "pass": "x"}}}); err != nil {
		t.Fatal(err)
	}
	b.until("the form stays and says so", `document.querySelector('#needs-count').textContent.trim().startsWith('4') && document.activeElement.value === 'half' && !document.querySelector('#in-`+first.ID.String()+` [data-late]').hidden`)
	js[bool](b, `document.querySelector('#in-`+p.ID.String()+` [value=once]').click(), true`)
	b.until("it was approved", `document.querySelector('.toast')?.innerText.includes('Answered') && location.pathname === '/inbox' && !document.querySelector('#in-`+p.ID.String()+`')`)
	if got, err := s.Prompt(t.Context(), s.Owner, other.claim.SessionID, p.ID); err != nil || got.Answer == nil || !*got.Answer.Approved {
		t.Errorf("the worker gets %+v, %v", got.Answer, err)
	}

	// The same without scripts.
	p = other.ask(approval)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.open("/inbox")
	js[bool](b, `document.querySelector('#in-`+p.ID.String()+` [value=deny]').click(), true`)
	b.until("it was denied", `location.pathname === '/inbox' && !document.querySelector('#in-`+p.ID.String()+`')`)
	if got, err := s.Prompt(t.Context(), s.Owner, other.claim.SessionID, p.ID); err != nil || got.Answer == nil || *got.Answer.Approved {
		t.Errorf("the worker gets %+v, %v", got.Answer, err)
	}
}

// What the watch found wrong stands in the inbox and on the home page in the same words, for
// those who may know it.
func TestInbox_ShowsWhatIsWrong(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	a := s.Agent(func(in *api.AgentInput) { in.Slug, in.Schedule, in.CatchUp = "silent", "@every 10m", api.CatchUpNone })
	s.Jump(35 * time.Minute)
	s.Turn()
	for _, path := range []string{"/inbox", "/"} {
		page := s.get(path).Body.String()
		wholePage(t, path, page)
		for _, want := range []string{"silent didn&#39;t run when it was due", "none of its last", "/agents/" + a.Slug} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q: %s", path, want, page)
			}
		}
	}
	if page := s.get("/inbox").Body.String(); !strings.Contains(page, "To mend it: stint audit --type slot_decided") {
		t.Errorf("the inbox says nothing of a mend: %s", page)
	}
}
