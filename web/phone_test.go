package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"stint/api"
)

// However long a command is that somebody is asked about, the buttons that decide are on the
// screen with it.
func TestBrowser_TheButtonsOfALongApprovalAreInSight(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	long := approval
	long.Action = &api.AskedAction{Area: "shell", Tool: "Bash", What: strings.Repeat("echo one more line of it\n", 100)}
	j.ask(long)
	b := openTab(t, s.serve(t))
	for _, size := range [][2]int64{{390, 844}, {1280, 640}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		b.open(j.path())
		b.until("the page is live", isLive)
		for _, verdict := range []string{"once", "session", "deny"} {
			if !js[bool](b, `(e => { const r = e.getBoundingClientRect(); return e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height - 4)) })(document.querySelector('[name=verdict][value=`+verdict+`]'))`) {
				t.Errorf("%d × %d: the button %s is out of sight", size[0], size[1], verdict)
			}
		}
	}
}

// What the agent said last, which a question may be about, is visible beside the question,
// which stays in place, and keeps being followed.
func TestBrowser_AQuestionDoesNotHideTheTranscriptsEnd(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	for i := range 40 {
		j.tell(api.ItemInput{Kind: api.ItemText, Text: fmt.Sprintf("**line %d** of what it says", i)})
	}
	j.ask(approval)
	b := openTab(t, s.serve(t))
	const inSight = `(e => { const r = e.getBoundingClientRect(); return document.querySelector('[data-log=follow]').getAttribute('aria-pressed') === 'true' && !!document.elementFromPoint(r.x + 40, r.y + r.height / 2)?.closest('#talk-lines') })(document.querySelector('#talk-lines').lastElementChild)`
	for _, size := range [][2]int64{{1280, 800}, {390, 844}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		b.open(j.path())
		b.until("the page is live", isLive)
		js[bool](b, `document.querySelector('.talk').scrollIntoView(), true`)
		b.until(fmt.Sprintf("the end is in sight at %d × %d", size[0], size[1]), inSight)
	}
	// A reader who scrolls up stays there.
	b.until("it isn't followed", `(document.querySelector('.talk .view').scrollTop = 0, document.querySelector('[data-log=follow]').getAttribute('aria-pressed') === 'false')`)
	j.tell(api.ItemInput{Kind: api.ItemText, Text: "more"})
	b.until("what is new is counted", `!document.querySelector('[data-more]').hidden && document.querySelector('.talk .view').scrollTop < 100`)
}

// An option without a space in it is as wide as the page at most.
func TestBrowser_LongOptionsWrap(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	j.ask(api.PromptInput{Kind: api.PromptQuestions, Text: "Which?", Choices: []api.Choice{{ID: "q", Text: strings.Repeat("W", 300), Options: []string{strings.Repeat("B", 300)}, Other: true}}})
	b := openTab(t, s.serve(t))
	b.do(chromedp.EmulateViewport(390, 844))
	for _, path := range []string{j.path(), "/inbox"} {
		b.open(path)
		if wide := js[int64](b, `Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll('.question, .question *')].map(e => e.scrollWidth))`); wide > 390 {
			t.Errorf("%s is %d px wide", path, wide)
		}
	}
}
