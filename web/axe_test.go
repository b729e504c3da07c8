package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"stint/api"
	"stint/engine/enginetest"
)

// look is a way of viewing a page.
type look struct {
	scheme string
	width  int64
	axe    string // axe's options
}

// Which rules hold doesn't depend on the theme, except contrast; so in each window one theme
// is checked with all of them and the other with that one.
var looks = []look{
	{"light", 1280, allRules}, {"dark", 1280, contrastAlone}, {"dark", 360, allRules}, {"light", 360, contrastAlone},
}

const (
	allRules      = `{resultTypes: ['violations']}`
	contrastAlone = `{resultTypes: ['violations'], runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}}`

	// sideways names what makes a page wider than its window; empty if nothing does.
	sideways = `(() => {
	const root = document.documentElement, width = root.clientWidth
	if (root.scrollWidth <= width) return ''
	return root.scrollWidth + ' px: ' + [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 6)
		.map(e => e.tagName + '.' + e.className + ' to ' + Math.round(e.getBoundingClientRect().right)).join(', ')
})()`
)

// everyPage fills the fixture with what pages show in the course of time, and returns the address
// of every kind of page.
func (s *fixture) everyPage(t *testing.T) []string {
	paths := []string{
		"/", "/sessions", "/sessions?q=nothing", "/sessions?status=error", "/agents", "/agents/log-summary", "/agents/log-summary/edit", "/agents/new", "/agents/new?from=ask", "/agents/helper",
		"/tasks", "/tasks?view=board", "/tasks?view=next", "/tasks/T-1", "/tasks/T-2", "/tasks/T-3", "/tasks/new", "/tasks/T-2/edit", "/tasks/T-4/dispatch", "/tasks/export",
		"/agents/log-summary/run", "/run", "/schedules?span=7d", "/insights", "/search?q=back", "/workers", "/nothing", "/agents/backup/delete",
		workerURL(s.workers["backup"].ID), workerURL(s.workers["backup"].ID) + "/edit", "/settings/programs", "/settings/account", "/system", "/activity", "/help", "/help/states", "/help/configuration", "/help/exit-codes", "/api/docs", "/api/docs/createSession", "/api/docs/Session",
	}
	for _, status := range []api.Status{api.Active, api.AwaitingInput, api.Failed, api.Stale, api.Complete, api.Queued} {
		paths = append(paths, sessionURL(s.sessions[status].ID))
	}
	j := s.converse(t)
	j.tell(everyKind...)
	j.ask(questions)
	asks := s.another(j)
	asks.ask(approval)
	s.Agent(func(in *api.AgentInput) { in.Slug, in.Schedule, in.CatchUp = "silent", "@every 10m", api.CatchUpNone })
	s.Jump(35 * time.Minute)
	s.Turn() // it has missed its slots, which the inbox says
	paths = append(paths, j.path(), asks.path(), "/inbox")
	base := sessionURL(s.sessions[api.Active].ID)
	return append(paths, base+"?view=timeline", base+"?view=input", base+"?view=json", base+"/cancel")
}

func TestBrowser_NoPageHasAnAccessibilityFault(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	b := openTab(t, server)
	b.allow("404") // the error page is one of those checked
	b.haveNoFault(t, s.everyPage(t))
}

// What a newcomer sees has no history.
func TestBrowser_NoEmptyPageHasAnAccessibilityFault(t *testing.T) {
	s := newStage(enginetest.New(t))
	openTab(t, s.serve(t)).haveNoFault(t, []string{"/", "/inbox", "/sessions", "/tasks", "/tasks?view=board", "/tasks?view=next", "/agents", "/schedules", "/insights", "/workers", "/activity"})
}

func (b *tab) haveNoFault(t *testing.T, paths []string) {
	t.Helper()
	axe := string(readFile(t, "testdata/axe.min.js"))
	for _, path := range paths {
		b.open(path)
		js[bool](b, axe+";true")
		for _, l := range looks {
			b.see(l)
			found := js[[]string](b, `axe.run(document, `+l.axe+`).then(r => r.violations.map(v =>
				v.impact + ' ' + v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + (n.any[0]?.message || '')).join(' | ')))`)
			for _, f := range found {
				t.Errorf("%s, %s: %s", path, l, f)
			}
			if wide := js[string](b, sideways); wide != "" {
				t.Errorf("%s, %s scrolls sideways: %s", path, l, wide)
			}
		}
	}
}

func (l look) String() string { return fmt.Sprintf("%s, %d px", l.scheme, l.width) }

// see applies a look.
func (b *tab) see(l look) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(l.width, 900))
}
