package worker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stint/api"
	"stint/worker/agent"
)

// talks makes an agent that the parrot runs, and the options of a worker that runs it.
func (w *fixture) talks(slug string, edit func(*api.AgentInput)) (api.Agent, Options, string) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "heard")
	self, err := os.Executable()
	w.must(err)
	o := w.options()
	o.adapters = map[api.AgentType]adapter{api.TypeClaudeCode: {parrot{self, file}, self}}
	a := w.agentWith(slug, func(in *api.AgentInput) {
		in.Type, in.Run.Command = api.TypeClaudeCode, nil
		in.Instructions = "Be brief."
		if edit != nil {
			edit(in)
		}
	})
	return a, o, file
}

func kinds(items []api.Item, of ...api.ItemKind) (out []string) {
	for _, it := range items {
		if slices.Contains(of, it.Kind) {
			out = append(out, string(it.Kind)+" "+it.Text)
		}
	}
	return out
}

func (w *fixture) answer(s api.Session, a api.Answer) {
	w.Helper()
	_, err := w.client.AnswerPrompt(w.Context(), s.ID, api.AnswerInput{PromptID: s.Prompted.ID, Answer: a})
	w.must(err)
}

func approve(yes bool) api.Answer { return api.Answer{Approved: &yes} }

func TestConverse_AWholeConversation(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	w.start(o)
	id := w.trigger(a, "!plan see to it\n!say one\n!ask rm -r build\n!cost 1000")
	asked := w.untilStatus(id, api.AwaitingInput)
	if p := asked.Prompted; p.Action == nil || p.Action.What != "rm -r build" || p.Kind != api.PromptApproval {
		t.Errorf("it asks %+v", asked.Prompted)
	}
	for _, text := range []string{"!say two", "!say three"} {
		_, err := w.client.PostMessage(t.Context(), id, api.MessageInput{Text: text})
		w.must(err)
	}
	w.answer(asked, approve(true))
	s := w.untilStatus(id, api.Complete)
	if s.Outcome != outcomeSuccess || s.Result != "three" || s.Plan != "- [ ] see to it" || s.Usage.CostMicros != 1000 || s.AgentSessionID == "" {
		t.Errorf("it ended as %+v", s)
	}
	// A machine that can't deliver the text in time still asks.
	if asks := kinds(w.items(id), api.ItemPrompt); !slices.Equal(asks, []string{"pending_prompt rm -r build"}) {
		t.Errorf("it asked %q", asks)
	}
	got := kinds(w.items(id), api.ItemText, api.ItemPromptResolved)
	want := []string{"text one", "pending_prompt_resolved Approved.", "text approved true ", "text two", "text three"}
	if !slices.Equal(got, want) {
		t.Errorf("the transcript is\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if said := kinds(w.items(id), api.ItemMessage); !slices.Equal(said, []string{"message !say two", "message !say three"}) {
		t.Errorf("people said %q", said)
	}
	th, err := w.client.Thread(t.Context(), s.ThreadID)
	w.must(err)
	if th.LastConsumed != th.LastPosted || th.LastConsumed == 0 {
		t.Errorf("the thread's cursors are %+v", th)
	}
	// What is said afterwards continues the same agent session.
	posted, err := w.client.PostMessage(t.Context(), id, api.MessageInput{Text: "!say four\n!cost 1500"})
	w.must(err)
	next := w.untilStatus(posted.Session.ID, api.Complete)
	if next.AgentSessionID != s.AgentSessionID || next.Usage.CostMicros != 500 || next.Result != "four" {
		t.Errorf("it went on as %+v", next)
	}
}

// A question that nobody answers is parked: the slot is free, no process is left, and the
// answer resumes the agent session.
func TestConverse_ParksAndGoesOnWithTheAnswer(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, file := w.talks("talker", nil)
	o.PromptHold, o.Slots = 300*time.Millisecond, 1
	w.start(o)
	id := w.trigger(a, "!say one\n!ask push\n!say two")
	s := w.until(id, "parked", func(s api.Session) bool { return s.Status == api.Pending && s.Prompted != nil })
	w.untilDrained(a)
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "\nend ") {
		t.Errorf("the program lives on: %q, %v", b, err)
	}
	if s.WaitingFor == nil || s.WaitingFor.Code != "open_prompt" {
		t.Errorf("it waits for %+v", s.WaitingFor)
	}
	other := w.trigger(a, "!say other") // the slot is free
	w.untilStatus(other, api.Complete)
	w.answer(s, api.Answer{Approved: new(bool), Text: "not today"})
	done := w.untilStatus(id, api.Complete)
	if got := kinds(w.items(id), api.ItemText); !slices.Equal(got, []string{"text one", "text one", "text approved false not today", "text two"}) {
		t.Errorf("it said %q", got)
	}
	if done.AgentSessionID != s.AgentSessionID || done.Fence != 2 {
		t.Errorf("it was resumed as %+v", done)
	}
}

func TestConverse_StopEndsAfterTheTurnAndClosesTheQuestion(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	w.start(o)
	id := w.trigger(a, "!ask push\n!say after")
	asked := w.untilStatus(id, api.AwaitingInput)
	_, err := w.client.PostMessage(t.Context(), id, api.MessageInput{Text: "!say never"})
	w.must(err)
	_, err = w.client.StopSession(t.Context(), id)
	w.must(err)
	s := w.untilStatus(id, api.Complete)
	if s.Outcome != outcomeStopped || s.Result != "after" {
		t.Errorf("it ended as %q with %q", s.Outcome, s.Result)
	}
	p, err := w.client.AwaitAnswer(t.Context(), id, asked.Prompted.ID, api.ClaimID{}, 0)
	w.must(err)
	if p.Resolution != api.PromptCancelled {
		t.Errorf("the question is %+v", p)
	}
	if all, err := w.client.Sessions(t.Context(), api.SessionFilter{}, api.Page{}); err != nil || len(all.Items) != 1 {
		t.Errorf("it went on: %d sessions, %v", len(all.Items), err)
	}
}

// Each way to end early: its code, nothing left running, the slot free.
func TestConverse_EarlyEnds(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", func(in *api.AgentInput) {
		in.MaxConcurrent, in.SessionSpendLimitMicros = 10, 5_000_000
	})
	o.FolderShared = true
	w.start(o)
	for prompt, want := range map[string]string{
		"!say x\n!hang":        CodeStalled,
		"!say x\n!die":         agent.CodeCrashed,
		"!deny git push":       agent.CodePolicy,
		"!cost 6000000\n!hang": agent.CodeSpendLimit,
	} {
		t.Run(want, func(t *testing.T) {
			stall := 0 // only what should count as hung may hang, however slow the machine
			if want == CodeStalled {
				stall = 2
			}
			_, err := w.client.EditAgent(t.Context(), a.Slug, map[string]any{"stallTimeoutSeconds": stall})
			w.must(err)
			s := w.until(w.trigger(a, prompt), "ended", func(s api.Session) bool { return s.Status.Terminal() })
			if s.Error == nil || s.Error.Code != want {
				t.Fatalf("ended as %s, %+v", s.Status, s.Error)
			}
			if want == agent.CodeCrashed && (!strings.Contains(s.Error.Message, "a bad end") || !strings.Contains(s.Error.Message, "exit code was 3")) {
				t.Errorf("it says %q", s.Error.Message)
			}
			acts, err := w.client.Activities(t.Context(), s.ID, api.Page{})
			w.must(err)
			if told := slices.ContainsFunc(acts.Items, func(a api.Activity) bool { return a.Type == api.ActivityPolicyDecision }); told != (want == agent.CodePolicy) {
				t.Errorf("its activities are %+v", acts.Items)
			}
		})
	}
	s := w.until(w.trigger(a, "!limit"), "released", func(s api.Session) bool { return s.Status == api.Pending })
	if until := time.Until(s.NotBefore.Time); until < 50*time.Minute || until > time.Hour {
		t.Errorf("it goes on in %v", until)
	}
	if s.Releases != 0 {
		t.Errorf("a wait for a named end counts as given back %d times", s.Releases)
	}
	w.untilDrained(a)
}

// The worker is killed with -9 in mid-turn: its next process resumes the agent session under
// the same claim; nothing of the first program survives.
func TestConverse_AKilledWorkerResumesUnderTheSameClaim(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, file := w.talks("talker", func(in *api.AgentInput) { in.LeaseSeconds = 60 })
	self, err := os.Executable()
	w.must(err)
	first := w.spawn(func(c *childConfig) { c.Parrot = file })
	id := w.trigger(a, "!say one\n!hang")
	running := w.until(id, "begun", func(s api.Session) bool { return s.AgentSessionID != "" })
	w.eventually("it said one", func() bool { return len(kinds(w.items(id), api.ItemText)) > 0 })
	first.signal(syscall.SIGKILL)
	first.wait()
	// The second process's program is asked the same, and the person has it end.
	o.adapters = map[api.AgentType]adapter{api.TypeClaudeCode: {parrot{self, file}, self}}
	w.start(o)
	w.eventually("it is resumed", func() bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.Count(string(b), "start ") == 2
	})
	now, err := w.client.CancelSession(t.Context(), id, api.CancelInput{})
	w.must(err)
	if s := now.Session; s.Fence != running.Fence || s.AgentSessionID != running.AgentSessionID || s.Lapses != 0 {
		t.Errorf("resumed as %+v", s)
	}
	w.untilDrained(a)
	b, err := os.ReadFile(file)
	w.must(err)
	if !strings.Contains(string(b), "start 1 ") || strings.Contains(string(b), "start 2 ") {
		t.Errorf("it ran as\n%s", b)
	}
}

// The answer to a secret question is masked in what is said later, also in a later session of
// the thread that continues the same agent session.
func TestConverse_ASecretAnswerIsMaskedLater(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	w.start(o)
	const pin, beside = "open sesame", "or hocus pocus"
	id := w.trigger(a, "!secret PIN?\n!say "+pin+", "+beside)
	w.answer(w.untilStatus(id, api.AwaitingInput), api.Answer{Choices: map[string]string{"q1": pin}, Text: beside})
	w.untilStatus(id, api.Complete)
	if got := kinds(w.items(id), api.ItemText); !slices.Equal(got, []string{"text it has 11 bytes", "text ***, ***"}) {
		t.Errorf("it said %q", got)
	}
	posted, err := w.client.PostMessage(t.Context(), id, api.MessageInput{Text: "!say once more " + pin})
	w.must(err)
	w.untilStatus(posted.Session.ID, api.Complete)
	if got := kinds(w.items(posted.Session.ID), api.ItemText); !slices.Equal(got, []string{"text once more ***"}) {
		t.Errorf("the next session said %q", got)
	}
	other := w.trigger(a, "!say "+pin) // knows nothing of it
	w.untilStatus(other, api.Complete)
	if got := kinds(w.items(other), api.ItemText); !slices.Equal(got, []string{"text " + pin}) {
		t.Errorf("another thread said %q", got)
	}
}

// The next process of a worker that was killed before the turn had ended masks it from the
// first word on.
func TestConverse_ASecretAnswerIsMaskedByTheNextLife(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, file := w.talks("talker", func(in *api.AgentInput) { in.LeaseSeconds = 60 })
	self, err := os.Executable()
	w.must(err)
	const pin = "open sesame"
	first := w.spawn(func(c *childConfig) { c.Parrot = file })
	id := w.trigger(a, "!say "+pin+"\n!secret PIN?\n!hang")
	w.answer(w.untilStatus(id, api.AwaitingInput), api.Answer{Choices: map[string]string{"q1": pin}})
	said := func(texts ...string) {
		w.Helper()
		w.eventually("it said "+strings.Join(texts, ", "), func() bool { return slices.Equal(kinds(w.items(id), api.ItemText), texts) })
	}
	said("text "+pin, "text it has 11 bytes") // it wasn't known to be secret when it was said
	first.signal(syscall.SIGKILL)
	first.wait()
	o.adapters = map[api.AgentType]adapter{api.TypeClaudeCode: {parrot{self, file}, self}}
	w.start(o)
	said("text "+pin, "text it has 11 bytes", "text ***", "text it has 11 bytes")
}

// A worker that shuts down gives the session back; its next process continues it.
func TestConverse_AShutdownGivesBackAndTheNextLifeGoesOn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	first := w.start(o)
	id := w.trigger(a, "!say one\n!ask on?\n!say two")
	s := w.untilStatus(id, api.AwaitingInput)
	began := time.Now()
	first.end()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the shutdown took %v", took)
	}
	w.untilStatus(id, api.Queued)
	if p, err := w.client.AwaitAnswer(t.Context(), id, s.Prompted.ID, api.ClaimID{}, 0); err != nil || p.Resolution != api.PromptCancelled {
		t.Errorf("the question is %+v, %v", p, err)
	}
	w.start(o)
	again := w.untilStatus(id, api.AwaitingInput)
	w.answer(again, approve(true))
	if done := w.untilStatus(id, api.Complete); done.AgentSessionID != s.AgentSessionID || done.Lapses != 0 {
		t.Errorf("it went on as %+v", done)
	}
}

func TestConverse_TheOwnersOwnLimit(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("talker", nil)
	w.owns(o, "talker", "[spend]\nsession_tokens = 100\n")
	w.start(o)
	s := w.until(w.trigger(a, "!cost 99\n!cost 100\n!hang"), "failed", func(s api.Session) bool { return s.Status == api.Failed })
	if s.Error.Code != agent.CodeSpendLimit || !strings.Contains(s.Error.Message, "100 tokens") || s.Usage.OutputTokens != 100 {
		t.Errorf("it ended as %+v, %+v", s.Error, s.Usage)
	}
}

// Questions have short names for people, whatever the program calls them, and a name that is
// too long is cut; the program gets its own names back.
func TestAsk_QuestionsByShortNames(t *testing.T) {
	long := strings.Repeat("Why? ", 2000)
	q := agent.Question{Kind: agent.AskQuestions, Text: "Two", Choices: []agent.Choice{
		{ID: long, Text: long, Options: []string{"hunter22", long}}, {ID: "Second?", Text: "Second?"},
	}}
	in := promptOf(q, [][]byte{[]byte("hunter22")})
	if in.Choices[0].ID != "q1" || in.Choices[1].ID != "q2" || len(in.Choices[0].Text) > 4096 || in.Choices[0].Options[0] != "***" || len(in.Choices[0].Options[1]) > 4096 {
		t.Errorf("people are asked %.300v", in)
	}
	got := toAnswer(api.Answer{Choices: map[string]string{"q1": "a", "q2": "b"}}, q)
	if got.Choices[long] != "a" || got.Choices["Second?"] != "b" {
		t.Errorf("the program hears %.300v", got)
	}
}

func TestPace_WhatCounts(t *testing.T) {
	at := time.Unix(0, 0)
	p := newTurnClock(func() time.Time { return at }, func() time.Duration { return at.Sub(time.Unix(0, 0)) })
	step := func(d time.Duration, want error) {
		t.Helper()
		at = at.Add(d)
		if got := p.over(100*time.Second, 10*time.Second); !errors.Is(got, want) {
			t.Errorf("at %v: %v, want %v", at.Unix(), got, want)
		}
	}
	step(9*time.Second, nil)
	p.live()
	step(9*time.Second, nil) // each sign of life counts
	ask := p.hold()
	step(10*time.Minute, nil) // nobody is hurried while they think
	ask()
	step(9*time.Second, nil)
	step(time.Second, errStalled) // counted from the answer
	p.live()
	p.tool("a", true)
	step(60*time.Second, nil) // a tool may be quiet
	p.tool("a", false)
	p.live()
	step(9*time.Second, nil)
	p.live()
	step(5*time.Second, errTimeout) // 102 s in all, without the waiting
	p.begin()
	step(0, nil)
}
