package web

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"stint/api"
)

// Each kind of file, an open form, a conflict and the question before a discard, in both themes,
// wide and narrow: the page never scrolls sideways, whatever the lines of a diff do.
func TestBrowser_NoPageOfChangesHasAnAccessibilityFault(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.reviewed(t)
	if _, err := s.CommentOnChanges(t.Context(), s.Owner, j.claim.SessionID, api.ReviewInput{Path: "limit/limit.go", Line: 3, Text: strings.Repeat("W", 300)}); err != nil {
		t.Fatal(err)
	}
	path := strings.Repeat("very/long/", 20) + "path.go"
	few := func() *talkJob {
		k := s.another(j)
		k.report(inWorktree(s.Clock.Now()), everyFile()[:2]...)
		k.finish()
		return k
	}
	asks := few()
	asks.pendingFor("{landing}")
	asks.answer(api.LandAsks, api.LandOutcome{Detail: "It would be lost.", Paths: []string{path}, Token: "tok"})
	conflict := s.another(j)
	long := everyFile()[0]
	long.Path, long.Patch = path, "@@ -1 +1 @@\n-"+strings.Repeat("x", 4000)+"\n+"+strings.Repeat("y ", 4000)+"\n"
	conflict.report(inWorktree(s.Clock.Now()), long)
	conflict.finish()
	conflict.pendingFor("{landing}")
	conflict.answer(api.LandRefused, api.LandOutcome{Code: api.LandConflict, Paths: []string{path}, URL: "https://example.test/" + strings.Repeat("p", 300)})
	openTab(t, s.serve(t)).haveNoFault(t, []string{
		j.changesPath() + "&comment=limit%2Flimit.go&line=3&side=old", asks.changesPath() + "&comment=limit%2Flimit.go",
		conflict.changesPath() + "&comment=", j.path() + "?file=go.sum&view=changes", "/sessions?unlanded=true",
	})
}

func TestBrowser_AReviewIsWrittenAndSentWithoutScripts(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.reviewed(t)
	b := openTab(t, s.serve(t))
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	click := func(selector string) { js[bool](b, `document.querySelector('`+selector+`').click(), true`) }
	b.open(j.changesPath())
	click(`.diff a[href*="line=4"][href*="side=new"]`)
	b.until("the form is open, in sight, under its line", `document.querySelector('.del ~ .talkback #comment') && location.hash === '#comment'`)
	js[bool](b, `document.querySelector('#comment-text').value = 'Per what?', true`)
	click("#comment .btn.main")
	b.until("the comment stands there", `document.readyState === 'complete' && document.querySelector('.talkback .draft')?.innerText.includes('Per what?')`)
	click("#review-send .btn.main")
	b.until("the agent has it", `document.querySelector('#session-head') && document.body.innerText.includes('line 4:') && !location.pathname.endsWith('`+j.claim.SessionID.String()+`')`)
}

// What is typed into the message stays while the page hears of other things.
func TestBrowser_AMessageStaysWhileUpdatesCome(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.reviewed(t)
	b := openTab(t, s.serve(t))
	b.open(j.changesPath())
	b.until("the page is live", isLive)
	js[bool](b, `document.querySelector('#land-message').value = 'half a mess', true`)
	j.pendingFor("{landing}")
	b.until("the request is shown", `document.querySelector('#landing').innerText.includes('Waiting for the worker')`)
	if got := js[string](b, `document.querySelector('#land-message')?.value ?? 'gone'`); got != "half a mess" {
		t.Errorf("the message became %q", got)
	}
	if !js[bool](b, `!document.querySelector('#land [data-late]').hidden`) {
		t.Error("nothing says that it can't be sent now")
	}
}
