package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// inboxOf is a caller's inbox: kinds and what they name.
func inboxOf(w *enginetest.Fixture, c engine.Caller) string {
	w.Helper()
	view, err := w.Inbox(w.Context(), c)
	if err != nil {
		w.Fatalf("%v", err)
	}
	var out []string
	for _, i := range view.Items {
		switch {
		case i.Title != "":
			out = append(out, fmt.Sprintf("%s:%s", i.Kind, i.Title))
		case i.Session != nil:
			out = append(out, fmt.Sprintf("%s:%s:%v", i.Kind, i.Session.Title, i.MayAct))
		case i.Worker != nil:
			out = append(out, fmt.Sprintf("%s:%s:%s", i.Kind, i.Worker.Name, i.Worker.Notices[0].Code))
		case i.Agent != nil:
			out = append(out, fmt.Sprintf("%s:%s:%v", i.Kind, i.Agent.Slug, i.MayAct))
		default:
			out = append(out, fmt.Sprintf("%s:%v", i.Kind, i.MayAct))
		}
	}
	if n, err := w.NeedsYou(w.Context(), c); err != nil || n != len(out) {
		w.Errorf("%d need a person, the inbox has %d: %v", n, len(out), err)
	}
	return strings.Join(out, " ")
}

func titled(title string) func(*api.SessionInput) {
	return func(in *api.SessionInput) { in.Title = title }
}

// A question stays in the inbox for as long as it can be answered, whatever happens to its
// worker, and is gone in the transaction that closes it.
func TestInbox_AQuestionIsThereUntilItIsClosed(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(conversing)
	k := w.Worker(a, conversingWorker)
	want := func(want string) {
		t.Helper()
		if got := inboxOf(w, w.Owner); got != want {
			t.Errorf("the inbox holds %q, want %q", got, want)
		}
	}
	parks := k.Claim(w.New(a, titled("parks")).ID)
	if _, err := k.Ask(parks, "first?"); err != nil {
		t.Fatal(err)
	}
	want("prompt:parks:true")
	if _, err := k.Release(parks, func(in *api.ReleaseRequest) { in.Park = true }); err != nil {
		t.Fatal(err)
	}
	w.Want(parks.SessionID, api.Pending)
	want("prompt:parks:true")
	lost := k.Claim(w.New(a, titled("lost")).ID)
	if _, err := k.Ask(lost, "second?"); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		w.Advance(time.Minute)
	}
	w.Want(lost.SessionID, api.Stale)
	want("prompt:lost:true prompt:parks:true") // once each, not as stale too
	answer := func(id api.SessionID) {
		t.Helper()
		p := w.Get(id).Prompted
		if _, err := w.AnswerPrompt(t.Context(), w.Owner, id, api.AnswerInput{PromptID: p.ID, Answer: api.Answer{Text: "so"}}); err != nil {
			t.Fatal(err)
		}
	}
	answer(parks.SessionID)
	answer(lost.SessionID)
	k.Beat()
	want("")
	ends := k.Claim(parks.SessionID)
	if _, err := k.Ask(ends, "third?"); err != nil {
		t.Fatal(err)
	}
	want("prompt:parks:true")
	if _, err := w.CancelSession(t.Context(), w.Owner, parks.SessionID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	want("")
}

// A failure waits until it is tried again, made up for by a later run, archived, or a week
// old; of one agent's failures the newest stands for all.
func TestInbox_AFailureIsThereUntilItIsMadeGood(t *testing.T) {
	w := enginetest.New(t)
	a, other := w.Agent(), w.Agent()
	k, ok := w.Worker(a), w.Worker(other)
	fails := func(title string) api.Session {
		t.Helper()
		c := k.Claim(w.New(a, titled(title)).ID)
		if _, err := k.Fail(c, "AGENT_EXIT_NONZERO"); err != nil {
			t.Fatal(err)
		}
		w.Advance(time.Second)
		return w.Get(c.SessionID)
	}
	want := func(want string) {
		t.Helper()
		if got := inboxOf(w, w.Owner); got != want {
			t.Errorf("the inbox holds %q, want %q", got, want)
		}
	}
	fails("one")
	two := fails("two")
	c := ok.Claim(w.New(other).ID)
	if _, err := ok.Complete(c, "fine"); err != nil {
		t.Fatal(err)
	}
	want("failed:two:true") // a good run of another agent changes nothing
	again, err := w.RetrySession(t.Context(), w.Owner, two.ID)
	if err != nil {
		t.Fatal(err)
	}
	want("")
	c = k.Claim(again.ID)
	if _, err := k.Fail(c, "AGENT_EXIT_NONZERO"); err != nil {
		t.Fatal(err)
	}
	want("failed:two:true")
	if _, err := w.ArchiveSession(t.Context(), w.Owner, again.ID); err != nil {
		t.Fatal(err)
	}
	fails("three")
	want("failed:three:true")
	w.Advance(time.Second)
	c = k.Claim(w.New(a).ID)
	if _, err := k.Complete(c, "fine"); err != nil {
		t.Fatal(err)
	}
	want("")
	quiet := ok.Claim(w.New(other, titled("quiet")).ID)
	if _, err := ok.Fail(quiet, "AGENT_EXIT_NONZERO"); err != nil {
		t.Fatal(err)
	}
	for range 12 { // a noisy agent hides no other
		fails("four")
	}
	want("failed:four:true failed:quiet:true")
	w.Clock.Step(8 * 24 * time.Hour)
	want("")
}

func TestInbox_OthersSeeWhatTheyMaySee(t *testing.T) {
	w := enginetest.New(t)
	local := w.Agent()
	k := w.Worker(local)
	c := k.Claim(w.New(local, titled("local")).ID)
	if _, err := k.Ask(c, "mine alone?"); err != nil {
		t.Fatal(err)
	}
	cloud := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
	ck := w.Worker(cloud, func(in *api.WorkerInput) { in.Mode = api.Cloud })
	cc := ck.Claim(w.New(cloud, titled("cloud")).ID)
	if _, err := ck.Ask(cc, "anybody?"); err != nil {
		t.Fatal(err)
	}
	for role, want := range map[api.Role]string{
		api.Viewer: "prompt:cloud:false", api.Member: "prompt:cloud:false", api.Admin: "prompt:cloud:true",
	} {
		who := engine.Caller{WorkspaceID: w.Owner.WorkspaceID, Workspace: w.Owner.Workspace, UserID: w.Owner.UserID + 1, Name: "other", Role: role}
		if got := inboxOf(w, who); got != want {
			t.Errorf("a %s's inbox holds %q, want %q", role, got, want)
		}
	}
	if got := inboxOf(w, w.Owner); got != "prompt:cloud:true prompt:local:true" {
		t.Errorf("the owner's inbox holds %q", got)
	}
}

// What a worker wants looked at is visible to its owner, as long as the worker says so.
func TestInbox_WhatAWorkerWantsLookedAt(t *testing.T) {
	w := enginetest.New(t)
	k := w.Worker(w.Agent())
	beat := func(notices ...api.Notice) error {
		_, err := w.Beat(t.Context(), w.Owner, k.ID, api.Beat{InstanceID: k.Instance, Notices: notices})
		return err
	}
	for want, n := range map[string]api.Notice{
		"notices[0].code": {Code: "gossip", Text: "x"}, "notices[0].text": {Code: api.NoticeSetupInvalid, Text: strings.Repeat("x", 501)},
	} {
		if got := fields(t, beat(n)); got != want {
			t.Errorf("%+v: refused for %q", n, got)
		}
	}
	if err := beat(api.Notice{Code: api.NoticeWorkflowChanged, Text: "Look."}); err != nil {
		t.Fatal(err)
	}
	if got := inboxOf(w, w.Owner); got != "worker_notice:"+k.Name+":workflow_changed" {
		t.Errorf("the inbox holds %q", got)
	}
	first, err := w.Engine.Worker(t.Context(), w.Owner, k.ID)
	if err != nil || len(first.Notices) != 1 || first.NoticesSince.IsZero() {
		t.Fatalf("the worker is %+v, %v", first, err)
	}
	w.Jump(time.Second)
	if err := beat(api.Notice{Code: api.NoticeWorkflowChanged, Text: "Look."}); err != nil {
		t.Fatal(err)
	}
	if again, err := w.Engine.Worker(t.Context(), w.Owner, k.ID); err != nil || again.NoticesSince != first.NoticesSince {
		t.Errorf("since %v, not %v, %v", again.NoticesSince, first.NoticesSince, err)
	}
	if err := beat(); err != nil {
		t.Fatal(err)
	}
	if got := inboxOf(w, w.Owner); got != "" {
		t.Errorf("the inbox still holds %q", got)
	}
}

// A channel that failures have disabled waits for its person alone.
func TestInbox_ADisabledChannelIsThereUntilItIsEnabled(t *testing.T) {
	w := enginetest.New(t, enginetest.AtOnce)
	in := engine.DefaultChannel()
	in.URL = "ntfy://ntfy.sh/topic"
	ch := must[api.Channel](t)(w.CreateChannel(t.Context(), w.Owner, in))
	a := w.Agent()
	k := w.Worker(a)
	must[api.Finished](t)(k.Fail(k.Claim(w.New(a).ID), "X"))
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	due := must[[]engine.DeliveryAttempt](t)(w.TakeDeliveries(t.Context(), w.Now(), 10, nil))
	if len(due) != 1 {
		t.Fatalf("%d deliveries", len(due))
	}
	if err := w.EndTry(t.Context(), due[0], engine.Sent{StatusCode: 410}); err != nil {
		t.Fatal(err)
	}
	if got := inboxOf(w, w.Owner); !strings.Contains(got, "channel_disabled:true") {
		t.Errorf("the inbox holds %q", got)
	}
	if got := inboxOf(w, w.Colleague("ada", api.Admin)); strings.Contains(got, "channel") {
		t.Errorf("another admin's inbox holds %q", got)
	}
	must[api.Channel](t)(w.EditChannel(t.Context(), w.Owner, ch.ID, func(in *api.ChannelInput) error { in.Enabled = true; return nil }))
	if got := inboxOf(w, w.Owner); strings.Contains(got, "channel") {
		t.Errorf("enabled, the inbox holds %q", got)
	}
}

// A webhook that failures have disabled waits for those who may enable it.
func TestInbox_ADisabledWebhookIsThereUntilItIsEnabled(t *testing.T) {
	w := enginetest.New(t)
	hook, err := w.CreateWebhook(t.Context(), w.Owner, api.WebhookInput{URL: "https://hooks.example/x", Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	w.Agent()
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	due, err := w.TakeDeliveries(t.Context(), w.Now(), 10, nil)
	if err != nil || len(due) == 0 {
		t.Fatalf("%d deliveries, %v", len(due), err)
	}
	if err := w.EndTry(t.Context(), due[0], engine.Sent{StatusCode: 410}); err != nil {
		t.Fatal(err)
	}
	if got := inboxOf(w, w.Owner); got != "webhook_disabled:true" {
		t.Errorf("the inbox holds %q", got)
	}
	if view, err := w.Inbox(t.Context(), w.Owner); err != nil || view.Items[0].Webhook.ID != hook.ID || !strings.Contains(view.Items[0].Webhook.DisabledReason, "410") {
		t.Errorf("it is %+v, %v", view.Items[0].Webhook, err)
	}
	other := engine.Caller{WorkspaceID: w.Owner.WorkspaceID, Workspace: w.Owner.Workspace, UserID: w.Owner.UserID + 1, Name: "other", Role: api.Member}
	if got := inboxOf(w, other); got != "" {
		t.Errorf("a member's inbox holds %q", got)
	}
	enable := func(enabled bool) {
		t.Helper()
		if _, err := w.EditWebhook(t.Context(), w.Owner, hook.ID, func(in *api.WebhookInput) error { in.Enabled = enabled; return nil }); err != nil {
			t.Fatal(err)
		}
		if got := inboxOf(w, w.Owner); got != "" {
			t.Errorf("enabled %v by a person, the inbox holds %q", enabled, got)
		}
	}
	enable(true)
	enable(false) // what a person switched off waits for nobody
}
