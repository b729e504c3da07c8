package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"stint/api"
	"stint/engine/enginetest"
)

// talkJob is a claimed session of an agent that converses.
type talkJob struct {
	s     *fixture
	agent api.Agent
	k     *enginetest.Worker
	claim api.Claim
	said  int
}

// converse begins a conversation.
func (s *fixture) converse(t *testing.T) *talkJob {
	t.Helper()
	a := s.Agent(func(in *api.AgentInput) {
		in.Slug, in.Name, in.Type, in.Run = "helper", "Helper", api.TypeClaudeCode, api.Run{WorkFolder: "/srv/helper"}
		in.MaxConcurrent = 3
	})
	k := s.Worker(a, func(in *api.WorkerInput) { in.Types = []api.AgentType{api.TypeClaudeCode} })
	one := s.New(a, func(in *api.SessionInput) { in.Title, in.Prompt = "Tidy the parser", new("Please tidy the parser.") })
	return &talkJob{s: s, agent: a, k: k, claim: k.Claim(one.ID)}
}

func (j *talkJob) path() string { return sessionURL(j.claim.SessionID) }

// tell appends items of the agent's.
func (j *talkJob) tell(items ...api.ItemInput) {
	j.s.Helper()
	for i := range items {
		j.said++
		items[i].ClientID, items[i].At = fmt.Sprintf("talk-%d", j.said), api.Time{Time: j.s.Clock.Now()}
	}
	in := api.ItemsRequest{UnderClaim: j.k.Under(j.claim.ClaimID), Items: items}
	if _, err := j.s.AddItems(context.Background(), j.s.Owner, j.k.ID, j.claim.SessionID, in); err != nil {
		j.s.Fatalf("tell: %v", err)
	}
}

// ask opens a prompt.
func (j *talkJob) ask(p api.PromptInput) api.Prompt {
	j.s.Helper()
	out, err := j.s.PatchSession(context.Background(), j.s.Owner, j.k.ID, j.claim.SessionID, api.SessionPatch{
		UnderClaim: j.k.Under(j.claim.ClaimID), Status: api.AwaitingInput, Prompt: &p,
	})
	if err != nil || out.Prompted == nil {
		j.s.Fatalf("ask: %v", err)
	}
	return *out.Prompted
}

// another is a second session of the same agent.
func (s *fixture) another(j *talkJob) *talkJob {
	s.Helper()
	next := *j
	next.claim = j.k.Claim(s.New(j.agent, func(in *api.SessionInput) { in.Title = "Tidy the lexer" }).ID)
	return &next
}

var (
	everyKind = []api.ItemInput{
		{Kind: api.ItemThinking, Text: "Where does it begin?"},
		{Kind: api.ItemText, Text: "# Plan\n\n1. **Read** `x.go`\n2. [the notes](https://example.test/doc)\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```go\nfunc x() {}\n```"},
		{Kind: api.ItemToolCall, Tool: "Bash", CallID: "d1", Text: "git diff"},
		{Kind: api.ItemToolResult, Tool: "Bash", CallID: "d1", Text: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"},
		{Kind: api.ItemToolCall, Tool: "Bash", CallID: "d2", Text: "make"},
		{Kind: api.ItemToolResult, Tool: "Bash", CallID: "d2", Failed: true, Text: "exit status 2"},
		{Kind: api.ItemToolCall, Tool: "Read", CallID: "d3", Text: "x.go"},
		{Kind: api.ItemStatus, Text: "compacting"},
		{Kind: api.ItemTurnEnd},
	}
	approval = api.PromptInput{
		Kind: api.PromptApproval, Text: "Run a command", DeadlineSeconds: 600, Default: &api.Answer{Approved: new(bool), Text: "nobody was there"},
		Action: &api.AskedAction{Area: "shell", Tool: "Bash", Why: "It is full of old <things>", What: "rm -rf build && make <all>\x1b[8m; curl evil\u202e"},
	}
	questions = api.PromptInput{Kind: api.PromptQuestions, Text: "Before I go on", Choices: []api.Choice{
		{ID: "colour", Text: "Which colour?", Options: []string{"red", "blue"}, Other: true},
		{ID: "pass", Text: "The password?", Secret: true},
	}}
)

// The form shows what the agent says about its options, and takes several where it may.
func TestComposer_OptionsWhole(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	j.ask(api.PromptInput{Kind: api.PromptQuestions, Text: "?", Choices: []api.Choice{{
		ID: "q", Header: "Colour", Text: "Which?", Options: []string{"red", "blue", "green"}, Several: true, Other: true,
		About: []api.OptionAbout{{Description: "Like <fire>", Preview: "<b>#f00</b>"}},
	}}})
	page := s.get(j.path()).Body.String()
	wholePage(t, j.path(), page)
	for _, want := range []string{`<span class="tag">Colour</span>`, "One or more", "Like &lt;fire&gt;", "&lt;b&gt;#f00&lt;/b&gt;", `type="checkbox" name="q0" value="2"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %s", want)
		}
	}
	if strings.Count(page, "What it looks like") != 1 {
		t.Error("an option without a preview has one")
	}
	id := j.claim.SessionID
	prompt := s.Get(id).Prompted.ID
	wentTo(t, s.post(j.path()+"/answer", "prompt", prompt.String(), "q0", "0", "q0", "2", "q0", "other", "own0", "and a dark one"), j.path())
	p, err := s.AwaitAnswer(t.Context(), s.Owner, id, prompt, j.claim.ClaimID, 0)
	if err != nil || p.Answer == nil || p.Answer.Choices["q"] != "red\ngreen\nand a dark one" {
		t.Errorf("it was answered %+v, %v", p.Answer, err)
	}
}

func TestTranscript_ShowsWhatWasSaidAndDone(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	j.tell(
		api.ItemInput{Kind: api.ItemThinking, Text: "Where does it begin?"},
		api.ItemInput{Kind: api.ItemText, Text: "# Plan\n\n**Bold** <script>alert(1)</script> and ![pic](https://example.test/x.png) [bad](javascript:alert(1)) [good](https://example.test/doc)\n\n<div onclick=x>\n\n| a | b |\n|---|---|\n| 1 | 2 |"},
		api.ItemInput{Kind: api.ItemToolCall, Tool: "Bash", CallID: "c1", Text: "git diff"},
		api.ItemInput{Kind: api.ItemToolResult, Tool: "Bash", CallID: "c1", Text: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old <line>\n+new line\n"},
		api.ItemInput{Kind: api.ItemToolCall, Tool: "Bash", CallID: "c2", Text: "make"},
		api.ItemInput{Kind: api.ItemToolResult, Tool: "Bash", CallID: "c2", Failed: true, Text: "exit status 2"},
		api.ItemInput{Kind: api.ItemToolCall, Tool: "Read", CallID: "c3", Text: "{\n  \"path\": \"x.go\"\n}"},
		api.ItemInput{Kind: api.ItemTurnEnd},
	)
	if _, err := s.AddActivity(t.Context(), s.Owner, j.k.ID, j.claim.SessionID, api.ActivityInput{
		UnderClaim: j.k.Under(j.claim.ClaimID), Type: api.ActivityPolicyDecision, Text: "Refused: curl example.org",
	}); err != nil {
		t.Fatal(err)
	}
	wentTo(t, s.post(j.path()+"/say", "text", "Keep <b>the</b> tests", "key", "k1"), j.path())
	wentTo(t, s.post(j.path()+"/say", "text", "Keep <b>the</b> tests", "key", "k1"), j.path())
	page := s.get(j.path()).Body.String()
	wholePage(t, j.path(), page)
	for _, want := range []string{
		"Please tidy the parser.", "<strong>Bold</strong>", "&lt;script&gt;alert(1)&lt;/script&gt;", "[picture: pic]", `<p class="heading">Plan</p>`,
		`<a href="https://example.test/doc" rel="nofollow noreferrer">good</a>`, `<th scope="col">a</th>`,
		`<span class="del">-old &lt;line&gt;</span>`, `<span class="add">+new line</span>`, `class="call s-error"`, "exit status 2",
		"{ &#34;path&#34;: &#34;x.go&#34; }", "End of turn", "Where does it begin?", "Refused: curl example.org", "Keep &lt;b&gt;the&lt;/b&gt; tests", `class="talk"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the transcript lacks %s", want)
		}
	}
	for _, bad := range []string{"<script>alert", "javascript:", "<img", "onclick=x>\n", "<h1>Plan"} {
		if strings.Contains(page, bad) {
			t.Errorf("the transcript holds %s", bad)
		}
	}
	if n := strings.Count(page, "Keep &lt;b&gt;the&lt;/b&gt; tests"); n != 1 {
		t.Errorf("the message stands %d times after it was sent twice with one key", n)
	}
	if strings.Count(page, `class="call `) != 3 {
		t.Error("a result stands apart from its call")
	}
	if text := s.get(j.path() + "/output.txt").Body.String(); !strings.HasSuffix(text, "\n") {
		t.Errorf("the plain text ends with %q", text)
	}
	if input := s.get(j.path() + "?view=input").Body.String(); !strings.Contains(input, "Claude Code") || !strings.Contains(input, "a person, before it leaves its sandbox") {
		t.Error("the input doesn't say what runs, or whom it asks")
	}
	// The same as a log, for those who want every byte.
	if log := s.get(j.path() + "?view=output").Body.String(); !strings.Contains(log, "Result: exit status 2") {
		t.Error("the log lacks a result")
	}
}

func TestTranscript_IsReadBackPageByPageAndLive(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	server := s.serve(t)
	for i := range 12 {
		j.tell(api.ItemInput{Kind: api.ItemText, Text: fmt.Sprintf("part %d.\n\n", i) + strings.Repeat("word ", 1000)})
	}
	j.tell(api.ItemInput{Kind: api.ItemToolCall, Tool: "Bash", CallID: "c1", Text: "sleep 5"})
	page, seen, pages := s.get(j.path()).Body.String(), 0, 0
	stream := s.streamOf(t, j.path())
	for {
		seen += strings.Count(page, ">part ")
		pages++
		if len(page) > 60<<10 {
			t.Errorf("a page of %d bytes", len(page))
		}
		_, rest, more := strings.Cut(page, `href="`+j.path()+`?view=transcript&amp;before=`)
		if !more {
			break
		}
		before, _, _ := strings.Cut(rest, `"`)
		page = s.get(j.path() + "?view=transcript&before=" + before).Body.String()
	}
	if seen != 12 || pages < 2 {
		t.Errorf("%d parts on %d pages, want 12 on several", seen, pages)
	}
	r := s.listen(t, server, stream, "")
	j.tell(api.ItemInput{Kind: api.ItemToolResult, Tool: "Bash", CallID: "c1", Text: "slept"})
	r.until(`hx-target="#t13" hx-swap="outerMorph"`, "slept", "sleep 5")
	j.tell(api.ItemInput{Kind: api.ItemText, Text: "*And on.*"})
	last := r.until(`hx-target="#talk-lines" hx-swap="beforeend"`, "<em>And on.</em>")
	j.tell(api.ItemInput{Kind: api.ItemText, Text: "After the gap"})
	got := s.listen(t, server, stream, last.id).until("After the gap")
	if strings.Contains(got.html, "And on.") {
		t.Error("an entry came twice")
	}
}

// Questions whose text only lists them are asked once.
func TestComposer_QuestionsAreShownOnce(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	in := questions
	in.Text = "Which colour?\nThe password?"
	j.ask(in)
	for _, path := range []string{j.path() + "?view=json", "/inbox"} {
		page := s.get(path).Body.String()
		_, card, _ := strings.Cut(page, `class="sheet pad stack tight question"`)
		if n := strings.Count(card[:strings.Index(card, "</section>")], "Which colour?"); n != 2 { // the legend, and the label of one's own text
			t.Errorf("%s asks %d times", path, n)
		}
	}
}

func TestComposer_APartialAnswerComesBackWithWhatWasTyped(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	p := j.ask(questions)
	form := func(more ...string) []string { return append([]string{"prompt", p.ID.String()}, more...) }
	refused(t, s.post(j.path()+"/answer", form("q0", "other", "own0", "green & gold")...), "green &amp; gold", "Is missing: answer “The password?”", `aria-invalid="true"`, `value="other" checked`)
	refused(t, s.post(j.path()+"/answer", form("q0", "7", "own1", "s3cret")...), "Is none of its options", `value="s3cret"`)
	refused(t, s.post(j.path()+"/answer", form("q0", "1", "own0", "but not quite", "own1", "s3cret")...), "keep one of them", "but not quite", `value="1" checked`)
	s.Want(j.claim.SessionID, api.AwaitingInput)
	wentTo(t, s.post(j.path()+"/answer", form("q0", "1", "own1", "s3cret")...), j.path())
	s.Want(j.claim.SessionID, api.Active)
	got, err := s.AwaitAnswer(t.Context(), s.Owner, j.claim.SessionID, p.ID, j.claim.ClaimID, 0)
	if err != nil || got.Answer == nil || got.Answer.Choices["colour"] != "blue" || got.Answer.Choices["pass"] != "s3cret" {
		t.Errorf("the worker gets %+v, %v", got.Answer, err)
	}
	late := s.post(j.path()+"/answer", form("q0", "other", "own0", "Green, please", "own1", "open sesame")...)
	for _, want := range []string{"came too late", "answered at", "by " + s.Owner.Name, "Which colour? → Green, please"} {
		if !strings.Contains(late.Body.String(), want) {
			t.Errorf("the late answer's page lacks %q", want)
		}
	}
	if late.Code != http.StatusConflict || strings.Contains(late.Body.String(), "open sesame") || strings.Contains(s.get(j.path()).Body.String(), "s3cret") {
		t.Errorf("status %d, or a secret is shown", late.Code)
	}
}

func TestComposer_AnApprovalShowsTheWholeActAndTakesAButton(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	p := j.ask(approval)
	page := s.get(j.path()).Body.String()
	wholePage(t, j.path(), page)
	for _, want := range []string{"rm -rf build &amp;&amp; make &lt;all&gt;\\x1b[8m; curl evil\\u{202e}", "Bash", "Shell", "10:00", "denied: nobody was there", "It says why: It is full of old &lt;things&gt;", "Approve once", "Approve for this session", "Deny"} {
		if !strings.Contains(page, want) {
			t.Errorf("the approval lacks %q", want)
		}
	}
	// Enter in a field presses no button that approves.
	refused(t, s.post(j.path()+"/answer", "prompt", p.ID.String(), "text", "no, not that folder"), "nothing was decided", "no, not that folder")
	wentTo(t, s.post(j.path()+"/answer", "prompt", p.ID.String(), "verdict", "deny", "text", "Not that folder"), j.path())
	got, err := s.Prompt(t.Context(), s.Owner, j.claim.SessionID, p.ID)
	if err != nil || *got.Answer.Approved || got.Answer.Text != "Not that folder" {
		t.Errorf("the worker gets %+v, %v", got.Answer, err)
	}
	again := j.ask(approval)
	wentTo(t, s.post(j.path()+"/answer", "prompt", again.ID.String(), "verdict", "session", "text", ""), j.path())
	if got, err := s.Prompt(t.Context(), s.Owner, j.claim.SessionID, again.ID); err != nil || !*got.Answer.Approved || !got.Answer.ForSession {
		t.Errorf("the worker gets %+v, %v", got.Answer, err)
	}
}

func TestComposer_TheWorkersOwnerApprovesFromNowOn(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	asked := approval
	asked.Action = &api.AskedAction{Area: "shell", Tool: "Bash", What: "git push origin main", Standing: []string{"git push origin main", "git push origin *"}}
	p := j.ask(asked)
	page := s.get(j.path()).Body.String()
	wholePage(t, j.path(), page)
	for _, want := range []string{"Approve exactly this from now on", "Approve git push origin * from now on"} {
		if !strings.Contains(page, want) || !strings.Contains(s.get("/inbox").Body.String(), want) {
			t.Errorf("the approval lacks %q", want)
		}
	}
	refused(t, s.post(j.path()+"/answer", "prompt", p.ID.String(), "verdict", "standing7"), "nothing was decided")
	wentTo(t, s.post(j.path()+"/answer", "prompt", p.ID.String(), "verdict", "standing1"), j.path())
	got, err := s.Prompt(t.Context(), s.Owner, j.claim.SessionID, p.ID)
	if err != nil || !*got.Answer.Approved || got.Answer.Standing != "git push origin *" {
		t.Errorf("the worker gets %+v, %v", got.Answer, err)
	}
	if !strings.Contains(s.get(j.path()).Body.String(), "Approved from now on (git push origin *).") {
		t.Error("the transcript doesn't say so")
	}
	if c := (composer{prompt: &api.Prompt{Action: &api.AskedAction{Standing: []string{"x"}, StandingBy: 1}}, by: 2}); len(c.standing()) > 0 {
		t.Error("somebody else is offered it")
	}
}

func TestSay_GoesOnInANewSessionOnceItHasEnded(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	if _, err := j.k.Complete(j.claim, "**All** tidy."); err != nil {
		t.Fatal(err)
	}
	page := s.get(j.path()).Body.String()
	if !strings.Contains(page, "goes on in a new session") || !strings.Contains(page, "<strong>All</strong> tidy.") {
		t.Error("the ended conversation's page has no box, or its result isn't shown as it was written")
	}
	next := wentTo(t, s.post(j.path()+"/say", "text", "And the lexer?", "key", "k9"), "/sessions/ses_")
	if next == j.path() || !strings.Contains(s.get(next).Body.String(), "And the lexer?") {
		t.Errorf("the conversation went on at %s", next)
	}
	refused(t, s.post(next+"/say", "text", "  ", "key", "k10"), "write something")
	command := sessionURL(s.sessions[api.Active].ID)
	if strings.Contains(s.get(command).Body.String(), command+"/say") {
		t.Error("a command's page has a box for messages")
	}
	if res := s.post(command+"/say", "text", "hello"); res.Code != http.StatusConflict {
		t.Errorf("a message to a command: status %d", res.Code)
	}
}

func TestBrowser_ATranscriptIsFollowedAndWhatIsTypedOutlivesItsQuestion(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	server := s.serve(t)
	b := openTab(t, server)
	b.open(j.path())
	b.until("the page is live", isLive)
	b.do(chromedp.Click(chromedp.CSS("#say")), chromedp.SendKeys(chromedp.CSS("#say"), "half a mess"))
	j.tell(api.ItemInput{Kind: api.ItemToolCall, Tool: "Bash", CallID: "c1", Text: "make"})
	b.until("the call is there", `document.querySelector('.call.s-active')`)
	js[bool](b, `document.querySelector('.call').open = true`)
	for i := range 30 {
		j.tell(api.ItemInput{Kind: api.ItemText, Text: fmt.Sprintf("**line %d**", i)})
	}
	j.tell(api.ItemInput{Kind: api.ItemToolResult, Tool: "Bash", CallID: "c1", Text: "built"})
	b.until("the result came to its call, which is still unfolded", `document.querySelector('.call.s-complete[open] .result')?.innerText === 'built'`)
	b.until("the end is in sight", `(v => v.scrollHeight - v.scrollTop - v.clientHeight < 32)(document.querySelector('.talk .view')) && document.querySelector('.talk').innerText.includes('line 29')`)

	p := j.ask(questions)
	own := "#" + p.ID.String() + "-own1"
	b.until("the question is there", `document.querySelector('.question')`)
	if got := js[string](b, `document.querySelector('#say').value + '|' + document.activeElement.id`); got != "half a mess|say" {
		t.Errorf("when the question came the message became %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS(own)), chromedp.SendKeys(chromedp.CSS(own), "typed"))
	b.do(chromedp.SendKeys(chromedp.CSS("[name=own0]"), "green"))
	b.until("a text of one's own picks itself", `document.querySelector('[name=q0][value=other]').checked`)
	if _, err := s.AnswerPrompt(t.Context(), s.Owner, j.claim.SessionID, api.AnswerInput{PromptID: p.ID, Answer: api.Answer{Choices: map[string]string{"colour": "red", "pass": "x"}}}); err != nil {
		t.Fatal(err)
	}
	b.until("the session goes on", `document.querySelector('#session-head .state').classList.contains('s-active')`)
	b.until("the form stays and says so", `!document.querySelector('[data-late]').hidden && document.querySelector('[name=own0]').value === 'green' && document.querySelector('[name=own1]').value === 'typed'`)
	b.allow("409")
	b.do(chromedp.Click(chromedp.CSS(".question button.main")))
	b.until("who was first is said, what was typed is kept", `document.querySelector('#session-answer')?.innerText.includes('came too late') && document.querySelector('#session-answer').innerText.includes('green')`)

	// An answer that nobody had begun disappears with its question.
	p = j.ask(approval)
	b.open(j.path())
	b.until("the page is live", isLive)
	js[bool](b, `document.querySelector('[name=verdict][value=once]').click(), true`)
	b.until("it was approved", `document.querySelector('.toast')?.innerText.includes('Answered') && !document.querySelector('.question')`)
}

func TestBrowser_AnswersAreGivenWithoutScripts(t *testing.T) {
	s := newFixture(t, fixtureEnd)
	j := s.converse(t)
	p := j.ask(questions)
	b := openTab(t, s.serve(t))
	b.allow("422")
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.open(j.path())
	js[bool](b, `document.querySelector('[name=q0][value="0"]').click(), document.querySelector('.question button.main').click(), true`)
	b.until("what is missing is marked, what was picked is kept", `document.querySelector('[aria-invalid=true]')?.name === 'own1' && document.querySelector('[name=q0][value="0"]').checked`)
	js[bool](b, `document.querySelector('[name=own1]').value = 'x', document.querySelector('.question button.main').click(), true`)
	b.until("it was answered", `document.querySelector('#session-head .s-active')`)
	if got, err := s.Prompt(t.Context(), s.Owner, j.claim.SessionID, p.ID); err != nil || got.Answer.Choices["colour"] != "red" {
		t.Errorf("the worker gets %+v, %v", got.Answer, err)
	}
}
