package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A support bundle holds nothing that people or agents wrote, wherever it was planted.
func TestSupportBundle_HoldsNothingThatWasPlanted(t *testing.T) {
	const planted = "planted7secret"
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) {
		in.Slug, in.Name, in.Description, in.Prompt, in.Instructions = planted, planted, planted, planted, planted
		in.Run.Command, in.Run.Env = []string{"sh", planted}, []string{strings.ToUpper(planted)}
		in.Schedule = "@every 1m"
	})
	k := w.Worker(a, func(in *api.WorkerInput) { in.Name, in.Labels = planted, []string{planted} })
	s := w.New(a, func(in *api.SessionInput) { in.Title, in.UntrustedContext = planted, planted })
	c := k.Claim(s.ID)
	prints(t, w, k, c, planted)
	must[api.Session](t)(k.Ask(c, planted))
	failed := w.New(w.Agent(func(in *api.AgentInput) { in.Slug = planted + "2" }))
	w.Task(planted)
	must[api.Webhook](t)(w.CreateWebhook(t.Context(), w.Owner, api.WebhookInput{URL: "https://example.org/" + planted, Description: planted, Enabled: true}))
	must[api.Changed](t)(w.CancelSession(t.Context(), w.Owner, failed.ID, api.CancelInput{Reason: planted}))
	w.Colleague(planted, api.Admin)
	w.Jump(3 * day) // the worker is lost, sessions wait, slots were missed
	w.Turn()
	b := must[api.SupportBundle](t)(w.SupportBundle(t.Context(), w.Owner, engine.Looking{Rules: time.Second, Pages: time.Second}))
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if b.Examination.Healthy || b.System.Schema == 0 || b.System.Files.Database == 0 || len(b.System.Retention.Limits) != 5 {
		t.Errorf("the bundle says too little: %s", text)
	}
	for _, word := range []string{planted, "sh\",", w.Path, w.Owner.Name + `"`, "example.org"} {
		if strings.Contains(strings.ToLower(string(text)), strings.ToLower(word)) {
			t.Errorf("the bundle holds %q: %s", word, text)
		}
	}
	if code := codeOf(w.SupportBundle(t.Context(), w.Colleague("Cy", api.Member), engine.Looking{})); code != api.CodeForbidden {
		t.Errorf("a member gets it: %q", code)
	}
}
