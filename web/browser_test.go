package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"stint/api"
)

// chromium is one browser for all tests of the package.
var chromium browser

type browser struct {
	once sync.Once
	ctx  context.Context
	err  error
	end  []context.CancelFunc
}

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(chromium.end) - 1; i >= 0; i-- {
		chromium.end[i]()
	}
	os.Exit(code)
}

func (b *browser) start() {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.ExecPath("/usr/bin/chromium"),
		chromedp.WSURLReadTimeout(90*time.Second), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en-GB"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	b.end = append(b.end, cancel)
	b.ctx, cancel = chromedp.NewContext(ctx)
	b.end = append(b.end, cancel)
	b.err = chromedp.Do(b.ctx)
}

// tab is one page in the browser. Anything that goes wrong in it (console errors, exceptions,
// refusals by the content policy) fails the test at its end.
type tab struct {
	t        *testing.T
	ctx      context.Context
	base     string
	mu       sync.Mutex // guards complaints
	complain []string
	allowed  []string
}

func openTab(t *testing.T, server *httptest.Server) *tab {
	t.Helper()
	chromium.once.Do(chromium.start)
	if chromium.err != nil {
		t.Fatalf("start Chromium: %v", chromium.err)
	}
	ctx, cancel := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext()) // with separate cookies
	t.Cleanup(cancel)
	ctx, cancelTime := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancelTime)
	b := &tab{t: t, ctx: ctx, base: server.URL}
	b.do(chromedp.Func(func(context.Context, *chromedp.Target) error { return nil }))
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, struct{}{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complain {
			t.Errorf("in the browser: %s", c)
		}
	})
	return b
}

func (b *tab) hear(ev any) {
	var text string
	switch e := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning {
			return
		}
		for _, a := range e.Args {
			text += string(a.Value) + " "
		}
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level != "error" {
			return
		}
		text = e.Entry.Text
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.allowed {
		if strings.Contains(text, a) {
			return
		}
	}
	b.complain = append(b.complain, text)
}

// allow accepts console messages that the test itself causes.
func (b *tab) allow(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, text)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// js evaluates an expression.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return got
}

// until waits for an expression to become true, even across navigations.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	var err error
	limit := time.After(90 * time.Second)
	for again := time.NewTicker(40 * time.Millisecond); ; {
		var yes bool
		// An error may only mean that the page is just being replaced.
		if yes, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool](`Boolean(`+expression+`)`)); yes {
			again.Stop()
			return
		}
		select {
		case <-again.C:
		case <-limit:
			page, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.pathname + '\\n' + document.body.innerText"))
			b.t.Fatalf("%s: it never did (%v)\nthe page says:\n%s", what, err, page)
		}
	}
}

const isLive = `document.querySelector('#live')?.dataset.state === 'live'`

func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

func TestBrowser_OutputArrivesAndWhatIsTypedStays(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	b := openTab(t, server)
	b.open(sessionURL(s.sessions[api.Active].ID))
	b.until("the page is live", isLive)
	j := s.running[0]
	s.print(j, "\x1b[32mgreen\x1b[0m line\n")
	b.until("the line arrived in colour", `[...document.querySelectorAll('.lines .term-fg32')].some(e => e.textContent === 'green')`)

	asking := s.sessions[api.AwaitingInput]
	b.open(sessionURL(asking.ID))
	b.until("the page is live", isLive)
	b.do(chromedp.Click(chromedp.CSS("[name=text]")), chromedp.SendKeys(chromedp.CSS("[name=text]"), "half an ans"))
	for range 5 {
		s.New(s.agents["log-summary"])
		s.Clock.Step(time.Second)
		if _, err := s.AddActivity(t.Context(), s.Owner, s.workers["log-summary"].ID, j.claim.SessionID, api.ActivityInput{UnderClaim: j.k.Under(j.claim.ClaimID), Type: api.ActivityProgress, Text: "on and on"}); err != nil {
			t.Fatal(err)
		}
	}
	// The count in the rail changes with one more stale session: proof that updates came.
	b.do(chromedp.SendKeys(chromedp.CSS("[name=text]"), "wer"))
	if got := js[string](b, `document.querySelector('[name=text]').value + '|' + document.activeElement.name`); got != "half an answer|text" {
		t.Errorf("while updates came the field became %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS("#session-answer button")))
	b.until("the answer was taken", `document.querySelector('#session-head .state')?.classList.contains('s-active') && document.querySelector('.toast')?.innerText.includes('Answered')`)
	s.Want(asking.ID, api.Active)
}

func TestBrowser_CancelShowsAtOnceInEveryWindow(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	other := openTab(t, server)
	other.open("/sessions")
	other.until("the list is live", isLive)
	b := openTab(t, server)
	id := s.sessions[api.Active].ID
	b.open(sessionURL(id))
	b.do(chromedp.Click(chromedp.CSS("[data-dialog=ask-cancel]")))
	b.until("the question is asked, the way back has the focus", `document.querySelector('#ask-cancel').open && document.activeElement.textContent === 'Keep it'`)
	b.do(chromedp.Click(chromedp.CSS("#ask-cancel button[type=submit]")))
	b.until("the page says cancelled", `document.querySelector('#session-head .state')?.textContent.trim() === 'Cancelled'`)
	other.until("the list says cancelled", fmt.Sprintf(`document.querySelector('#row-%s .state').textContent.trim() === 'Cancelled'`, id))
	s.Want(id, api.Cancelled)
}

func TestBrowser_AStreamThatFailsAtFirstIsTriedAgain(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	var refuse atomic.Int32
	refuse.Store(2)
	pages := s.handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/ui/stream") && refuse.Add(-1) >= 0 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		pages.ServeHTTP(w, r)
	}))
	closeAfter(t, server)
	b := openTab(t, server)
	b.allow("503")
	b.open("/")
	b.until("it says that it tries again", `document.querySelector('#live').textContent.includes('Reconnecting')`)
	b.until("it is live in the end", isLive)
	s.New(s.agents["issue-triage"], func(in *api.SessionInput) { in.Title = "Seen after all" })
	b.until("and it is fed", `document.querySelector('#next').innerText.includes('Seen after all')`)

	// The connection breaks: it reconnects by itself and misses nothing.
	b.allow("ERR_")
	b.allow("htmx:sse:error")
	server.CloseClientConnections()
	s.New(s.agents["issue-triage"], func(in *api.SessionInput) { in.Title = "While nobody listened" })
	b.until("what was missed is there", `document.querySelector('#next').innerText.includes('While nobody listened')`)
	b.until("it is live again", isLive)

	// Signed out: it says so and doesn't retry for ever.
	b.allow("401")
	s.revoke()
	server.CloseClientConnections()
	b.until("it says that the reader is signed out", `document.querySelector('#live').textContent.includes('Signed out')`)
}

func TestBrowser_Keys(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	b := openTab(t, server)
	b.open("/")
	b.until("scripts run", `!document.querySelector('#live').hidden`)
	b.press("g")
	b.press("s")
	b.until("g s leads to the sessions", `location.pathname === '/sessions' && document.readyState === 'complete'`)
	b.press("j")
	b.press("j")
	b.until("j j is on the second row", `document.querySelectorAll('.rows > li')[1].classList.contains('at')`)
	b.press("/")
	b.press("gst?.")
	b.until("keys are letters in a field", `document.querySelector('#q').value.endsWith('gst?.') && location.pathname === '/sessions' && !document.querySelector('#keys').open`)
	js[bool](b, `document.activeElement.blur(), true`)
	b.press("?")
	b.until("? lists the keys", `document.querySelector('#keys').open`)
	js[bool](b, `document.querySelector('#keys-on').click(), document.querySelector('#keys [data-close]').click(), true`)
	b.until("the keys are off and the list is closed", `!document.querySelector('#keys-on').checked && !document.querySelector('#keys').open`)
	b.press("t")
	b.press("g")
	b.press("h")
	if got := js[string](b, `document.documentElement.dataset.theme + ' ' + location.pathname`); got != "auto /sessions" {
		t.Errorf("keys that are switched off did something: %s", got)
	}
	b.open("/sessions")
	b.do(chromedp.Click(chromedp.CSS(".theme button[value=dark]")))
	b.open("/agents")
	if got := js[string](b, `document.documentElement.dataset.theme`); got != "dark" {
		t.Errorf("the chosen theme was forgotten: %s", got)
	}
}

func TestBrowser_EverythingWorksWithoutScripts(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	server := s.serve(t)
	b := openTab(t, server)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	click := func(selector string) { js[bool](b, `document.querySelector('`+selector+`').click(), true`) }
	b.open("/agents/new")
	if js[bool](b, `!document.querySelector('.theme').hidden && document.querySelector('[data-dialog=keys]').hidden`) == false {
		t.Error("a control that needs scripts is shown without them")
	}
	js[bool](b, `document.querySelector('#slug').value = 'by-hand', document.querySelector('#command').value = 'true', document.querySelector('#workFolder').value = '/tmp', true`)
	click(".form button.main")
	b.until("the agent was made", `document.querySelector('#agent-head')`)
	click("#agent-head a.main")
	b.until("the run form came", `document.querySelector('#prompt')`)
	click(".form button.main")
	b.until("the session was made", `document.querySelector('#session-head')`)
	click("[data-dialog=ask-cancel]")
	b.until("the question is a page of its own", `location.pathname.endsWith('/cancel')`)
	b.until("the question whether to cancel is asked", `document.querySelector('.asking button.risk')`)
	click(".asking button.risk")
	b.until("it was cancelled", `document.querySelector('#session-head .s-cancelled')`)
	click(".theme button[value=dark]")
	b.until("the theme was changed, on the same page", `document.querySelector('[data-theme=dark] #session-head')`)
	if res := s.get("/agents/by-hand"); res.Code != http.StatusOK {
		t.Errorf("the agent's page: status %d", res.Code)
	}
}
