package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// sentTo takes everything that is due, as delivered, and returns the bodies per address.
func sentTo(t *testing.T, w *enginetest.Fixture) map[string][]string {
	t.Helper()
	if err := w.ExpandWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for {
		due, err := w.TakeDeliveries(t.Context(), w.Now(), 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(due) == 0 {
			return out
		}
		for _, d := range due {
			out[d.URL] = append(out[d.URL], d.Body)
			if err := w.EndTry(t.Context(), d, engine.Sent{StatusCode: 204}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func tellOf(bodies []string, id api.SessionID) bool {
	return slices.ContainsFunc(bodies, func(b string) bool { return strings.Contains(b, id.String()) })
}

func webhookOf(t *testing.T, w *enginetest.Fixture, c engine.Caller, url string, types ...string) api.Webhook {
	t.Helper()
	hook, err := w.CreateWebhook(t.Context(), c, api.WebhookInput{URL: url, Types: types, Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

func deliveriesOf(t *testing.T, w *enginetest.Fixture, c engine.Caller, id api.WebhookID) (out []api.Delivery) {
	t.Helper()
	for page := (api.Page{Limit: 3}); ; {
		list, err := w.Deliveries(t.Context(), c, id, page)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, list.Items...)
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return out
		}
	}
}

// Somebody who changes where messages go, or what signs them, is the one who reads them: from
// then on they contain what that person may see, whoever created the webhook.
func TestWebhook_TellsWhatWhoChangedItMayKnow(t *testing.T) {
	for name, take := range map[string]func(w *enginetest.Fixture, ben engine.Caller, id api.WebhookID) error{
		"address": func(w *enginetest.Fixture, ben engine.Caller, id api.WebhookID) error {
			_, err := w.EditWebhook(t.Context(), ben, id, func(in *api.WebhookInput) error { in.URL = "https://ben.example/x"; return nil })
			return err
		},
		"secret": func(w *enginetest.Fixture, ben engine.Caller, id api.WebhookID) error {
			_, err := w.RotateWebhook(t.Context(), ben, id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := withOwner(t)
			_, ben := joined(t, w, api.Admin, "ben")
			hook := webhookOf(t, w, w.Owner, "https://ann.example/x")
			a, cloud := w.Agent(), w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
			told := w.New(a)
			if !tellOf(sentTo(t, w)["https://ann.example/x"], told.ID) {
				t.Fatal("the creator doesn't receive her own session")
			}
			for range 4 {
				w.New(a)
			}
			waits, open := w.New(a), w.New(cloud)
			if err := w.ExpandWebhooks(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := take(w, ben, hook.ID); err != nil {
				t.Fatal(err)
			}
			later := w.New(a)
			now := sentTo(t, w)
			sent := slices.Concat(now["https://ann.example/x"], now["https://ben.example/x"])
			for _, hidden := range []api.Session{waits, later} {
				if tellOf(sent, hidden.ID) {
					t.Errorf("%s is sent", hidden.ID)
				}
			}
			if !tellOf(sent, open.ID) {
				t.Error("what both may see is no longer sent")
			}
			for _, d := range deliveriesOf(t, w, ben, hook.ID) {
				if tellOf([]string{d.Body}, told.ID) || tellOf([]string{d.Body}, waits.ID) {
					t.Errorf("the log shows that user %s", d.Body)
				}
			}
			of := func(id api.SessionID) api.Delivery {
				all := deliveriesOf(t, w, w.Owner, hook.ID)
				i := slices.IndexFunc(all, func(d api.Delivery) bool { return tellOf([]string{d.Body}, id) })
				if i < 0 {
					t.Fatalf("the log doesn't show her own session %s", id)
				}
				return all[i]
			}
			if d := of(waits.ID); d.State != api.DeliveryFailed || !strings.Contains(d.Problem, "another user") {
				t.Errorf("what waited is %+v", d)
			}
			_, err := w.Redeliver(t.Context(), ben, hook.ID, of(told.ID).ID)
			refusedWith(t, err, api.CodeNotFound)
			_, err = w.Redeliver(t.Context(), w.Owner, hook.ID, of(told.ID).ID)
			refusedWith(t, err, api.CodeConflict)
		})
	}
}

// After any other change a webhook still sends what its creator may see.
func TestWebhook_OtherEditsTakeNothingOver(t *testing.T) {
	w, _ := withOwner(t)
	_, ben := joined(t, w, api.Admin, "ben")
	hook := webhookOf(t, w, w.Owner, "https://ann.example/x")
	for _, enabled := range []bool{false, true} {
		if _, err := w.EditWebhook(t.Context(), ben, hook.ID, func(in *api.WebhookInput) error { in.Enabled = enabled; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.New(w.Agent()); !tellOf(sentTo(t, w)[hook.URL], s.ID) {
		t.Error("its creator doesn't receive her own session")
	}
}

// The webhooks of somebody who leaves, or may no longer have any, end with that; somebody who
// enables one again receives what they themselves may see.
func TestWebhook_EndsWithTheRightToHaveIt(t *testing.T) {
	for name, lose := range map[string]func(w *enginetest.Fixture, user api.UserID) error{
		"no longer a member": func(w *enginetest.Fixture, user api.UserID) error {
			_, err := w.RemoveMember(t.Context(), w.Owner, user)
			return err
		},
		"no longer an admin": func(w *enginetest.Fixture, user api.UserID) error {
			_, err := w.SetRole(t.Context(), w.Owner, user, api.Member)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := withOwner(t)
			who, ben := joined(t, w, api.Admin, "ben")
			mine, theirs := webhookOf(t, w, w.Owner, "https://ann.example/x"), webhookOf(t, w, ben, "https://ben.example/x")
			cloud := w.Agent(func(in *api.AgentInput) { in.Mode = api.Cloud })
			before := w.New(cloud)
			if err := w.ExpandWebhooks(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := lose(w, who.UserID); err != nil {
				t.Fatal(err)
			}
			after := w.New(cloud)
			sent := sentTo(t, w)
			if len(sent[theirs.URL]) != 0 || !tellOf(sent[mine.URL], before.ID) || !tellOf(sent[mine.URL], after.ID) {
				t.Errorf("sent to that user %v", sent[theirs.URL])
			}
			got, err := w.Webhook(t.Context(), w.Owner, theirs.ID)
			if err != nil || got.Enabled || !strings.Contains(got.DisabledReason, name) {
				t.Fatalf("it is %+v (%v)", got, err)
			}
			for _, d := range deliveriesOf(t, w, w.Owner, theirs.ID) {
				if d.State != api.DeliveryFailed || !strings.Contains(d.Problem, name) {
					t.Errorf("what waited is %+v", d)
				}
			}
			if _, err := w.EditWebhook(t.Context(), w.Owner, theirs.ID, func(in *api.WebhookInput) error { in.Enabled = true; return nil }); err != nil {
				t.Fatal(err)
			}
			if s := w.New(w.Agent()); !tellOf(sentTo(t, w)[theirs.URL], s.ID) {
				t.Error("the user who enabled it again doesn't receive her own session")
			}
		})
	}
}

// Messages about an agent name nobody else's local session.
func TestTold_NoIDOfOthersLocalSessions(t *testing.T) {
	w, _ := withOwner(t)
	ctx := t.Context()
	_, eve := joined(t, w, api.Viewer, "eve")
	_, ben := joined(t, w, api.Admin, "ben")
	hook := webhookOf(t, w, ben, "https://ben.example/x")
	a := w.Agent(func(in *api.AgentInput) { in.Schedule = "* * * * *" })
	w.Advance(time.Minute)
	local := w.All(a.ID)[0]
	names := func(c engine.Caller) (ledger, events int) {
		t.Helper()
		list, err := w.Ledger(ctx, c, a.Slug, api.Page{})
		if err != nil || len(list.Items) == 0 {
			t.Fatalf("the ledger: %v (%v)", list, err)
		}
		for _, r := range list.Items {
			if r.SessionID == local.ID {
				ledger++
			}
		}
		all, err := w.Events(ctx, c, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if c.CanManageWebhooks() {
			audit, err := w.Audit(ctx, c, api.AuditFilter{}, api.Page{Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range audit.Items {
				all = append(all, entry.Event)
			}
		}
		decided := 0
		for _, ev := range all {
			if ev.Type != "slot_decided" {
				continue
			}
			decided++
			if ev.Data["session"] == local.ID.String() {
				events++
			}
		}
		if decided == 0 {
			t.Fatal("no slot is sent")
		}
		return ledger, events
	}
	for name, c := range map[string]engine.Caller{"viewer": eve, "admin": ben} {
		if ledger, events := names(c); ledger != 0 || events != 0 {
			t.Errorf("%s: %d rows of the ledger and %d events name it", name, ledger, events)
		}
	}
	if ledger, events := names(w.Owner); ledger != 1 || events != 2 {
		t.Errorf("to its owner %d rows of the ledger and %d events name it", ledger, events)
	}
	sent := sentTo(t, w)[hook.URL]
	if tellOf(sent, local.ID) || !slices.ContainsFunc(sent, func(b string) bool { return strings.Contains(b, "slot_decided") }) {
		t.Errorf("the webhook sent %v", sent)
	}
}

// A message that its receiver never accepts is given up alone while others come through; when
// none does, the webhook is disabled, and the log says what happened to each, including what
// had only just happened.
func TestWebhook_OneRefusedMessageDisablesNothing(t *testing.T) {
	w := enginetest.New(t)
	ctx := t.Context()
	hook := webhookOf(t, w, w.Owner, "https://ann.example/x", "agent.session_created")
	a := w.Agent()
	poison := w.New(a)
	day := func(takes bool) {
		t.Helper()
		for range 10 {
			w.New(a)
			if err := w.ExpandWebhooks(ctx); err != nil {
				t.Fatal(err)
			}
			due, err := w.TakeDeliveries(ctx, w.Now(), 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !takes {
				w.New(a) // nothing has made a delivery of it yet
			}
			for _, d := range due {
				sent := engine.Sent{StatusCode: 200}
				if !takes || tellOf([]string{d.Body}, poison.ID) {
					sent.StatusCode = 400
				}
				if err := w.EndTry(ctx, d, sent); err != nil {
					t.Fatal(err)
				}
			}
			w.Clock.Step(8*time.Hour + time.Second)
		}
	}
	day(true)
	if got, err := w.Engine.Webhook(ctx, w.Owner, hook.ID); err != nil || !got.Enabled {
		t.Fatalf("it is %+v (%v)", got, err)
	}
	all := deliveriesOf(t, w, w.Owner, hook.ID)
	if d := all[len(all)-1]; d.State != api.DeliveryFailed || d.StatusCode != 400 {
		t.Errorf("the message that is never taken is %+v", d)
	}
	day(false)
	got, err := w.Engine.Webhook(ctx, w.Owner, hook.ID)
	if err != nil || got.Enabled || got.DisabledReason == "" {
		t.Fatalf("it is %+v (%v)", got, err)
	}
	dropped := 0
	for _, d := range deliveriesOf(t, w, w.Owner, hook.ID) {
		if d.State == api.DeliveryWaiting {
			t.Errorf("after the webhook was disabled there waits %+v", d)
		}
		if d.State == api.DeliveryFailed && d.Tries == 0 {
			if dropped++; !strings.Contains(d.Problem, "not sent: the webhook was disabled") {
				t.Errorf("the log says %q", d.Problem)
			}
		}
	}
	if dropped == 0 {
		t.Error("the log tells nothing of what had just happened")
	}
}

// A session that only its work folder kept waiting is announced when the folder is free,
// whoever's session was in it.
func TestWebhook_TellsThatAFolderIsFree(t *testing.T) {
	w := enginetest.New(t)
	in := func(folder string) func(*api.WorkerInput) {
		return func(in *api.WorkerInput) { in.FolderKey = folder }
	}
	first, second, elsewhere := w.Agent(), w.Agent(), w.Agent()
	holder := w.Worker(first, in("here"))
	w.Worker(second, in("here/below"))
	w.Worker(elsewhere, in("there"))
	hook := webhookOf(t, w, w.Owner, "https://wake.test/", "agent.session_queued")
	c := holder.Claim(w.New(first).ID)
	waits, other := w.New(second), w.New(elsewhere)
	sentTo(t, w)
	must[api.Finished](t)(holder.Complete(c, "done"))
	told := sentTo(t, w)[hook.URL]
	if !tellOf(told, waits.ID) || !strings.Contains(strings.Join(told, ""), `"reason":"folder_busy"`) || tellOf(told, other.ID) {
		t.Errorf("sent %s", told)
	}
}
