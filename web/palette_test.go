package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"stint/account"
	"stint/api"
	"stint/engine"
)

func TestSearch_FindsWhatIsCalledSo(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	id := s.sessions[api.Failed].ID
	for q, want := range map[string][]string{
		"":               {"Agents", "Sessions", "Pages", "New agent"},
		"back":           {`href="/agents/backup"`, `href="/agents/backup/run"`, "stint run backup", "Help: Backup"},
		id.String():      {sessionURL(id), "stint show " + id.String()},
		"status:error":   {sessionURL(id)},
		"T-2":            {`href="/tasks/T-2"`, "stint task show T-2"},
		"insi":           {`href="/insights"`},
		"webhooks":       {`href="/settings/webhooks"`},
		"status:nothing": {"Nothing is called that"},
	} {
		for _, path := range []string{"/search?q=", "/ui/palette?q="} {
			body := s.get(path + q).Body.String()
			for _, w := range want {
				if !strings.Contains(body, w) {
					t.Errorf("%s%s lacks %q", path, q, w)
				}
			}
		}
	}
	if res := s.get("/search?q=" + strings.Repeat("x", 5000)); res.Code != http.StatusOK || strings.Contains(res.Body.String(), strings.Repeat("x", maxSearch+1)) {
		t.Errorf("a text without end answers %d", res.Code)
	}
}

func TestSearch_OffersOnlyWhatOneMayDo(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	who, viewer := s.joins(t, api.Viewer)
	theirs := New(Options{Engine: s.Engine, Accounts: s.Accounts, CallerOf: func(*http.Request) (engine.Caller, account.Identity, bool) { return viewer, who, true }})
	ask := func(q string) string {
		res := httptest.NewRecorder()
		theirs.ServeHTTP(res, httptest.NewRequest(http.MethodGet, "/ui/palette?q="+q, nil))
		return res.Body.String()
	}
	if body := ask("back"); !strings.Contains(body, `href="/agents/backup"`) || strings.Contains(body, "/agents/backup/run") {
		t.Error("a viewer doesn't find the agent, or may run it")
	}
	if body := ask(""); strings.Contains(body, "New agent") || strings.Contains(body, "/sessions/ses_") {
		t.Error("a viewer is offered what they may not do or see")
	}
}

func TestBrowser_ThePaletteLeadsAnywhereByKeys(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	b := openTab(t, s.serve(t))
	b.open("/agents")
	b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.until("it is open and has results", `document.querySelector('#palette[open] .opt') && document.activeElement.name === 'q'`)
	b.press("log-su")
	b.until("it has what was typed for", `document.querySelector('#palette .opt[aria-selected=true]')?.innerText.includes('Log summary')`)
	b.press(kb.ArrowDown)
	b.until("the next one is chosen", `document.getElementById(document.querySelector('#palette input').getAttribute('aria-activedescendant'))?.innerText.includes('Run Log summary')`)
	axe := string(readFile(t, "testdata/axe.min.js"))
	js[bool](b, axe+";true")
	if found := js[[]string](b, `axe.run('#palette', {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ' ' + v.nodes[0].html.slice(0, 200)))`); len(found) > 0 {
		t.Errorf("the open palette has faults: %v", found)
	}
	b.press(kb.Enter)
	b.until("it leads there", `location.pathname === '/agents/log-summary/run'`)
	b.open("/agents")
	b.press("/")
	b.until("a page without a search of its own opens it", `document.querySelector('#palette[open]') !== null`)
	b.press(kb.Escape)
	b.until("it closes", `document.querySelector('#palette[open]') === null`)
}
