package web

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"stint/api"
)

// However long a command is that somebody is asked about, the buttons that decide
// are on the screen with it.
func TestBrowser_TheButtonsOfALongApprovalAreInSight(t *testing.T) {
	s := newScene(t, sceneEnd)
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

// An option without a space in it is as wide as the page at most.
func TestBrowser_LongOptionsAreBroken(t *testing.T) {
	s := newScene(t, sceneEnd)
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
