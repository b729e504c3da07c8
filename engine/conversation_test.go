package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine/enginetest"
)

func conversing(in *api.AgentInput) {
	in.Type, in.Run.Command = api.TypeClaudeCode, nil
}

func conversingWorker(in *api.WorkerInput) { in.Types = []api.AgentType{api.TypeClaudeCode} }

func (t talk) patch(change func(*api.SessionPatch)) (api.Session, error) {
	in := api.SessionPatch{UnderClaim: t.k.Under(t.c.ClaimID)}
	change(&in)
	return t.w.PatchSession(context.Background(), t.w.Owner, t.k.ID, t.c.SessionID, in)
}

func (t talk) ask(p api.PromptInput) api.Prompt {
	t.w.Helper()
	s, err := t.patch(func(in *api.SessionPatch) { in.Status, in.Prompt = api.AwaitingInput, &p })
	if err != nil || s.Prompted == nil {
		t.w.Fatalf("ask: %v", err)
	}
	return *s.Prompted
}

func (t talk) answer(p api.Prompt, a api.Answer) (api.Session, error) {
	return t.w.AnswerPrompt(context.Background(), t.w.Owner, t.c.SessionID, api.AnswerInput{PromptID: p.ID, Answer: a})
}

func (t talk) say(text string) api.Posted {
	t.w.Helper()
	out, err := t.w.PostMessage(context.Background(), t.w.Owner, t.c.SessionID, api.MessageInput{Text: text})
	if err != nil {
		t.w.Fatalf("say %q: %v", text, err)
	}
	return out
}

// talk is a claimed session of an agent that converses.
type talk struct {
	w *enginetest.Fixture
	a api.Agent
	k *enginetest.Worker
	c api.Claim
}

func newTalk(t *testing.T) talk {
	w := enginetest.New(t)
	a := w.Agent(conversing)
	k := w.Worker(a, conversingWorker)
	return talk{w, a, k, k.Claim(w.New(a).ID)}
}

func fields(t *testing.T, err error) string {
	t.Helper()
	var names []string
	refused, ok := err.(*api.Error)
	if !ok || refused.Code != api.CodeInvalid {
		t.Fatalf("refused with %v, not as invalid", err)
	}
	for _, f := range refused.Fields {
		names = append(names, f.Field)
	}
	return strings.Join(names, " ")
}

func yes() *bool { b := true; return &b }
func no() *bool  { return new(bool) }

// Several options are taken one a line, each of them one that there is.
func TestPrompt_SeveralOptions(t *testing.T) {
	s := newTalk(t)
	p := s.ask(api.PromptInput{Kind: api.PromptQuestions, Text: "?", Choices: []api.Choice{{
		ID: "q", Text: "Which?", Header: "Colour", Options: []string{"red", "blue", "dark green"}, Several: true, About: []api.OptionAbout{{Description: "Like fire", Preview: "x"}},
	}}})
	if len(p.Choices) != 1 || p.Choices[0].Of(0).Description != "Like fire" || p.Choices[0].Of(2) != (api.OptionAbout{}) {
		t.Errorf("it asks %+v", p.Choices)
	}
	for _, said := range []string{"", " \n", "red\ngreen", "red, blue"} {
		_, err := s.answer(p, api.Answer{Choices: map[string]string{"q": said}})
		if got := fields(t, err); got != "choices.q" {
			t.Errorf("%q: refused for %q", said, got)
		}
	}
	got, err := s.answer(p, api.Answer{Choices: map[string]string{"q": "dark green\nred\n"}})
	if err != nil || got.Status != api.Active {
		t.Errorf("%s, %v", got.Status, err)
	}
}

func TestPrompt_APartialAnswerIsRefusedAndNamesWhatIsMissing(t *testing.T) {
	s := newTalk(t)
	p := s.ask(api.PromptInput{Kind: api.PromptQuestions, Text: "Two things", Choices: []api.Choice{
		{ID: "q1", Text: "Which?", Options: []string{"red", "blue"}},
		{ID: "q2", Text: "Password?", Secret: true},
	}})
	for want, a := range map[string]api.Answer{
		"choices.q2":                     {Choices: map[string]string{"q1": "red"}},
		"choices.q1":                     {Choices: map[string]string{"q1": "green", "q2": "x"}},
		"choices.q3":                     {Choices: map[string]string{"q1": "red", "q2": "x", "q3": "y"}},
		"choices.q1 choices.q2":          {Text: "whatever"},
		"approved choices.q1 choices.q2": {Approved: yes()},
	} {
		_, err := s.answer(p, a)
		if got := fields(t, err); got != want {
			t.Errorf("%+v: refused for %q, want %q", a, got, want)
		}
	}
	s.w.Want(s.c.SessionID, api.AwaitingInput)
	if _, err := s.answer(p, api.Answer{Choices: map[string]string{"q1": "red", "q2": "hunter2"}}); err != nil {
		t.Fatal(err)
	}
	s.w.Want(s.c.SessionID, api.Active)
	items, _, err := s.w.Items(t.Context(), s.w.Owner, s.c.SessionID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if last := items[len(items)-1]; last.Kind != api.ItemPromptResolved || last.CallID != p.ID.String() || strings.Contains(last.Text, "hunter2") || !strings.Contains(last.Text, "red") {
		t.Errorf("the transcript says %+v", last)
	}
	got, err := s.w.AwaitAnswer(t.Context(), s.w.Owner, s.c.SessionID, p.ID, s.c.ClaimID, 0)
	if err != nil || got.Answer == nil || got.Answer.Choices["q2"] != "hunter2" || got.Resolution != api.PromptAnswered {
		t.Errorf("the worker gets %+v, %v", got, err)
	}
	_, err = s.answer(p, api.Answer{Choices: map[string]string{"q1": "blue", "q2": "x"}})
	if api.CodeOf(err) != api.CodePromptClosed || err.(*api.Error).Holder != s.w.Owner.Name {
		t.Errorf("a second answer: %v", err)
	}
}

func TestPrompt_WhatAWorkerMayNotAsk(t *testing.T) {
	s := newTalk(t)
	for want, p := range map[string]api.PromptInput{
		"prompt.text":                  {Kind: api.PromptText},
		"prompt.kind":                  {Kind: "riddle", Text: "?"},
		"prompt.choices[0].about":      {Kind: api.PromptQuestions, Text: "?", Choices: []api.Choice{{ID: "a", Text: "x", About: []api.OptionAbout{{Preview: "x"}}}}},
		"prompt.choices[0].several":    {Kind: api.PromptQuestions, Text: "?", Choices: []api.Choice{{ID: "a", Text: "x", Several: true}}},
		"prompt.choices[0].options[0]": {Kind: api.PromptQuestions, Text: "?", Choices: []api.Choice{{ID: "a", Text: "x", Several: true, Options: []string{"two\nlines"}}}},
		"prompt.choices":               {Kind: api.PromptQuestions, Text: "?"},
		"prompt.choices[1].id":         {Kind: api.PromptQuestions, Text: "?", Choices: []api.Choice{{ID: "a"}, {ID: "a"}}},
		"prompt.action":                {Text: "?", Action: &api.AskedAction{}},
		"prompt.default":               {Kind: api.PromptApproval, Text: "?", DeadlineSeconds: 5},
		"prompt.deadlineSeconds":       {Text: "?", Default: &api.Answer{Text: "x"}},
		"prompt.default.approved":      {Kind: api.PromptApproval, Text: "?", DeadlineSeconds: 5, Default: &api.Answer{Approved: yes()}},
		"prompt.default.text":          {Text: "?", DeadlineSeconds: 5, Default: &api.Answer{}},
	} {
		_, err := s.patch(func(in *api.SessionPatch) { in.Status, in.Prompt = api.AwaitingInput, &p })
		if got := fields(t, err); got != want {
			t.Errorf("%+v: refused for %q, want %q", p, got, want)
		}
	}
	s.w.Want(s.c.SessionID, api.Active)
}

// A deadline answers exactly when it comes, whether the session runs, is parked, or went stale
// meanwhile.
func TestPrompt_TheDeadlineAnswersWithTheDefault(t *testing.T) {
	for name, meanwhile := range map[string]struct {
		do   func(s talk)
		then api.Status
	}{
		"running": {func(s talk) {}, api.Active},
		"parked": {func(s talk) {
			if _, err := s.k.Release(s.c, func(in *api.ReleaseRequest) { in.Park = true }); err != nil {
				s.w.Fatalf("%v", err)
			}
			s.w.Want(s.c.SessionID, api.Pending)
		}, api.Queued},
		"stale": {func(s talk) {
			if err := s.w.DeleteWorker(context.Background(), s.w.Owner, s.k.ID); err != nil {
				s.w.Fatalf("%v", err)
			}
		}, api.Stale},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTalk(t)
			p := s.ask(api.PromptInput{Kind: api.PromptApproval, Text: "Push?", DeadlineSeconds: 120, Default: &api.Answer{Approved: no(), Text: "nobody was there"}})
			meanwhile.do(s)
			s.w.Advance(119 * time.Second)
			if got, _ := s.w.Prompt(t.Context(), s.w.Owner, s.c.SessionID, p.ID); !got.ClosedAt.IsZero() {
				t.Fatalf("answered before its time: %+v", got)
			}
			s.w.Advance(2 * time.Second)
			got, err := s.w.Prompt(t.Context(), s.w.Owner, s.c.SessionID, p.ID)
			if err != nil || got.Answer == nil || *got.Answer.Approved || got.ClosedBy != "deadline" {
				t.Fatalf("at the deadline: %+v, %v", got, err)
			}
			if late := got.ClosedAt.Sub(got.DeadlineAt.Time); late < 0 || late > time.Second {
				t.Errorf("answered %v after its deadline", late)
			}
			now := s.w.Want(s.c.SessionID, meanwhile.then)
			if now.Prompted != nil {
				t.Error("the prompt is still shown as open")
			}
			if _, err := s.answer(p, api.Answer{Approved: yes()}); api.CodeOf(err) != api.CodePromptClosed {
				t.Errorf("answered after the deadline: %v", err)
			}
		})
	}
}

func TestPrompt_AwaitAnswerIsHeldUntilSomebodyAnswers(t *testing.T) {
	s := newTalk(t)
	p := s.ask(api.PromptInput{Text: "Which?"})
	told := make(chan api.Prompt, 1)
	go func() {
		got, _ := s.w.AwaitAnswer(context.Background(), s.w.Owner, s.c.SessionID, p.ID, api.ClaimID{}, time.Minute)
		told <- got
	}()
	if _, err := s.answer(p, api.Answer{Text: "this one"}); err != nil {
		t.Fatal(err)
	}
	if got := <-told; got.Answer == nil || got.Answer.Text != "this one" {
		t.Errorf("got %+v", got)
	}
}

// Messages queue while the agent is busy, in order, none lost or doubled; the cursor moves
// only with a finished turn, so a crash leaves them to the next claim.
func TestMessages_QueueAndSurviveACrash(t *testing.T) {
	s := newTalk(t)
	early := s.say("a").Message.ID
	var last api.MessageID
	for _, text := range []string{"b", "b"} {
		last = s.say(text).Message.ID
	}
	said := func(c api.Claim) (out []string) {
		for _, m := range c.Conversation.Messages {
			out = append(out, m.Text)
		}
		return out
	}
	in := api.MessageInput{Text: "once", ClientID: "c1"}
	first, err := s.w.PostMessage(t.Context(), s.w.Owner, s.c.SessionID, in)
	again, err2 := s.w.PostMessage(t.Context(), s.w.Owner, s.c.SessionID, in)
	if err != nil || err2 != nil || first.Message.ID != again.Message.ID {
		t.Fatalf("a repeated message: %+v, %v; %+v, %v", first.Message, err, again.Message, err2)
	}
	if _, err := s.patch(func(in *api.SessionPatch) { in.LastConsumed = last }); fields(t, err) != "lastConsumed" {
		t.Errorf("a cursor without a finished turn: %v", err)
	}
	s.w.Advance(20 * time.Minute) // the worker is gone, and with it the claim
	s.w.Want(s.c.SessionID, api.Stale)
	k := s.w.Worker(s.a, conversingWorker)
	s.c, s.k = k.Claim(s.c.SessionID), k
	if got := said(s.c); fmt.Sprint(got) != "[a b b once]" {
		t.Fatalf("the next claim gets %v", got)
	}
	if _, err := s.patch(func(in *api.SessionPatch) { in.TurnEnded, in.LastConsumed = true, last }); err != nil {
		t.Fatal(err)
	}
	left, err := s.w.Messages(t.Context(), s.w.Owner, s.c.SessionID, last)
	if err != nil || len(left.Items) != 1 || left.Items[0].Text != "once" || left.LastConsumed != last {
		t.Errorf("after a turn: %+v, %v", left, err)
	}
	if _, err := s.patch(func(in *api.SessionPatch) { in.TurnEnded, in.LastConsumed = true, early }); err != nil {
		t.Fatal(err)
	}
	th, err := s.w.Thread(t.Context(), s.w.Owner, s.c.Session.ThreadID)
	if err != nil || th.LastConsumed != last || th.LastPosted != first.Message.ID || th.State != api.ThreadActive {
		t.Errorf("the thread is %+v, %v", th, err)
	}
}

// What is said to a session that completes before it could take it in becomes a session of its
// own; so does what is said afterwards.
func TestMessages_GoOnInTheSameThread(t *testing.T) {
	s := newTalk(t)
	if _, err := s.patch(func(in *api.SessionPatch) { id := "agent-session"; in.AgentSessionID = &id }); err != nil {
		t.Fatal(err)
	}
	s.say("one more thing")
	if _, err := s.k.Complete(s.c, "done"); err != nil {
		t.Fatal(err)
	}
	all := s.w.All(s.a.ID)
	if len(all) != 2 {
		t.Fatalf("%d sessions", len(all))
	}
	next := all[0]
	if next.ID == s.c.SessionID {
		next = all[1]
	}
	if next.Prompt != "one more thing" || next.ThreadID != s.c.Session.ThreadID || next.AgentSessionID != "agent-session" || next.Status != api.Queued {
		t.Errorf("it goes on as %+v", next)
	}
	c := s.k.Claim(next.ID)
	if len(c.Conversation.Messages) != 0 {
		t.Errorf("it is returned again: %+v", c.Conversation.Messages)
	}
	if _, err := s.k.Complete(c, "done"); err != nil {
		t.Fatal(err)
	}
	later := s.say("and another")
	if later.Message != nil || later.Session.ID == next.ID || later.Session.Prompt != "and another" || later.Session.ThreadID != next.ThreadID {
		t.Errorf("said to an ended conversation: %+v", later)
	}
	if len(s.w.All(s.a.ID)) != 3 {
		t.Errorf("%d sessions", len(s.w.All(s.a.ID)))
	}
	cmd := s.w.Agent()
	run := s.w.New(cmd)
	if _, err := s.w.PostMessage(t.Context(), s.w.Owner, run.ID, api.MessageInput{Text: "hello"}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("said to a command: %v", err)
	}
}

func TestThread_WhatAPersonMaySet(t *testing.T) {
	s := newTalk(t)
	id := s.c.Session.ThreadID
	set := func(state string) (api.ThreadChanged, error) {
		return s.w.PatchThread(t.Context(), s.w.Owner, id, api.ThreadPatch{State: state})
	}
	for state, code := range map[string]api.Code{
		"active": api.CodeStateNotYours, "failed": api.CodeStateNotYours, "done": api.CodeInvalid, "pending": api.CodeConflict,
	} {
		if _, err := set(state); api.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", state, err, code)
		}
	}
	if got, err := set("completed"); err != nil || !got.Changed {
		t.Fatalf("completed: %+v, %v", got, err)
	}
	if now := s.w.Get(s.c.SessionID); now.StopRequestedAt.IsZero() {
		t.Error("nobody was asked to stop")
	}
	if _, err := s.k.Fail(s.c, "AGENT_CRASHED"); err != nil {
		t.Fatal(err)
	}
	if _, err := set("completed"); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("a failed one set to completed: %v", err)
	}
	got, err := set("pending")
	if err != nil || !got.Changed || got.Thread.State != api.ThreadPending || got.Thread.SessionID == s.c.SessionID {
		t.Errorf("handed over again: %+v, %v", got, err)
	}
	if got, err := set("pending"); err != nil || got.Changed {
		t.Errorf("handed over twice: %+v, %v", got, err)
	}
}

// Totals count once, whatever is repeated or late; a limit is named in the answer to the
// report that reaches it and keeps new sessions unclaimed until the agent's next day.
func TestSpend_LimitsHoldPerSessionAndPerDay(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(conversing, func(in *api.AgentInput) {
		in.SessionSpendLimitMicros, in.DailySpendLimitMicros, in.TimeZone = 9_000_000, 12_000_000, "America/New_York"
	})
	k := w.Worker(a, conversingWorker)
	s := talk{w, a, k, k.Claim(w.New(a).ID)}
	report := func(micros int64) api.Session {
		t.Helper()
		got, err := s.patch(func(in *api.SessionPatch) { in.Usage = &api.Usage{CostMicros: micros} })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, n := range []int64{6_000_000, 6_000_000, 8_000_000, 7_000_000, 8_000_000} {
		if got := report(n); got.SpendExceeded != "" {
			t.Errorf("at %d: %s", n, got.SpendExceeded)
		}
	}
	if now, _ := w.Engine.Agent(t.Context(), w.Owner, a.Slug); now.SpentTodayMicros != 8_000_000 {
		t.Errorf("the agent has spent %d", now.SpentTodayMicros)
	}
	if got := report(9_000_000); !strings.Contains(got.SpendExceeded, "$9.00") {
		t.Errorf("over the session's limit: %q", got.SpendExceeded)
	}
	if _, err := k.Complete(s.c, ""); err != nil {
		t.Fatal(err)
	}
	s.c = k.Claim(w.New(a).ID)
	if got := report(4_000_000); !strings.Contains(got.SpendExceeded, "a day") {
		t.Errorf("over the day's limit: %q", got.SpendExceeded)
	}
	if _, err := k.Fail(s.c, "SPEND_LIMIT"); err != nil {
		t.Fatal(err)
	}
	next := w.New(a)
	if next.WaitingFor == nil || next.WaitingFor.Code != "spend_limit" || next.WaitingFor.Until.IsZero() {
		t.Fatalf("waits for %+v", next.WaitingFor)
	}
	if _, err := k.Try(next.ID); api.CodeOf(err) != api.CodeNotReady {
		t.Errorf("claimed over the limit: %v", err)
	}
	w.Jump(next.WaitingFor.Until.Sub(w.Now()) - time.Second)
	w.Turn()
	k = w.Worker(a, conversingWorker)
	if _, err := k.Try(next.ID); api.CodeOf(err) != api.CodeNotReady {
		t.Errorf("claimed before the day turned: %v", err)
	}
	w.Advance(time.Second)
	k.Beat()
	k.Claim(next.ID)
}
