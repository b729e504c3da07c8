package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// webhooksPage is what webhooks.templ draws of all of them.
type webhooksPage struct {
	tabs  []Tab
	list  []api.Webhook
	made  *api.Webhook // just created: with its secret, this once
	now   time.Time
	url   Input
	note  Input
	types Input
}

func (v *visit) webhooks() error { return v.drawWebhooks(http.StatusOK, nil, nil) }

func (v *visit) drawWebhooks(status int, made *api.Webhook, bad map[string]string) error {
	form := v.r.PostForm
	p := webhooksPage{
		tabs: v.settingsTabs("Webhooks"), made: made, now: v.web.engine.Now(),
		url:   Input{ID: "url", Label: "Address", Hint: "https, such as https://example.org/hook", Value: form.Get("url"), Error: sentence(bad["url"])},
		note:  Input{ID: "description", Label: "What it is for", Value: form.Get("description"), Error: sentence(bad["description"])},
		types: Input{ID: "types", Label: "Types of messages", Hint: "Separated by commas, such as agent.session_error. Empty means all.", Value: form.Get("types"), Error: sentence(unknownType(bad["types"]))},
	}
	if made != nil {
		p.url.Value, p.note.Value, p.types.Value = "", "", ""
	}
	list, err := v.web.engine.Webhooks(v.r.Context(), v.caller, settingsList)
	if err != nil {
		return err
	}
	p.list = list.Items
	return v.page(status, Shell{Title: "Webhooks", Place: "settings", Now: p.now}, webhooks(p))
}

func (v *visit) createWebhook() error {
	form := v.r.PostForm
	in := engine.DefaultWebhook()
	in.URL, in.Description = strings.TrimSpace(form.Get("url")), form.Get("description")
	for _, t := range strings.Split(form.Get("types"), ",") {
		if t = strings.TrimSpace(t); t != "" {
			in.Types = append(in.Types, t)
		}
	}
	w, err := v.web.engine.CreateWebhook(v.r.Context(), v.caller, in)
	if bad, ok := fieldErrors(err); ok {
		return v.drawWebhooks(http.StatusUnprocessableEntity, nil, bad)
	}
	if err != nil {
		return err
	}
	return v.drawWebhooks(http.StatusOK, &w, nil)
}

// unknownType says which type doesn't exist; the sixty that do are on the help page, to which
// the form links.
func unknownType(fault string) string {
	name, _, listed := strings.Cut(fault, "; they are ")
	if !listed {
		return fault
	}
	return name + "; the help page below lists them"
}

// webhookPage is what webhooks.templ draws of one.
type webhookPage struct {
	api.Webhook
	tabs       []Tab
	deliveries []api.Delivery
	now        time.Time
}

func (v *visit) webhookID() (id api.WebhookID, err error) {
	if id.UnmarshalText([]byte(v.path("webhook"))) != nil {
		return 0, api.Refuse(api.CodeNotFound, "There is no such webhook here.")
	}
	return id, nil
}

func (v *visit) webhook() error {
	id, err := v.webhookID()
	if err != nil {
		return err
	}
	w, err := v.web.engine.Webhook(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	return v.drawWebhook(w)
}

func (v *visit) drawWebhook(w api.Webhook) error {
	p := webhookPage{Webhook: w, tabs: v.settingsTabs("Webhooks"), now: v.web.engine.Now()}
	list, err := v.web.engine.Deliveries(v.r.Context(), v.caller, w.ID, api.Page{})
	if err != nil {
		return err
	}
	p.deliveries = list.Items
	return v.page(http.StatusOK, Shell{Title: "Webhook", Place: "settings", Now: p.now}, webhook(p))
}

func (v *visit) actWebhook() error {
	id, err := v.webhookID()
	if err != nil {
		return err
	}
	ctx, eng, here := v.r.Context(), v.web.engine, webhookURL(id)
	switch v.path("verb") {
	case "test":
		if _, err := eng.TestWebhook(ctx, v.caller, id); err != nil {
			return err
		}
		return v.to(here, "A test is on its way")
	case "rotate":
		w, err := eng.RotateWebhook(ctx, v.caller, id)
		if err != nil {
			return err
		}
		return v.drawWebhook(w)
	case "delete":
		if err := eng.DeleteWebhook(ctx, v.caller, id); err != nil {
			return err
		}
		return v.to("/settings/webhooks", "Deleted the webhook")
	}
	enable := v.path("verb") == "enable"
	_, err = eng.EditWebhook(ctx, v.caller, id, func(in *api.WebhookInput) error {
		in.Enabled = enable
		return nil
	})
	if err != nil {
		return err
	}
	if enable {
		return v.to(here, "Enabled: it tells of what happens from now on")
	}
	return v.to(here, "Disabled")
}

func (v *visit) askDeleteWebhook() error {
	id, err := v.webhookID()
	if err != nil {
		return err
	}
	w, err := v.web.engine.Webhook(v.r.Context(), v.caller, id)
	if err != nil {
		return err
	}
	c := Confirm{
		ID: "ask-delete", Title: "Delete the webhook?", Text: "Nothing more is sent to " + w.URL + ", what waits included. Its log goes with it.",
		Action: webhookURL(id) + "/delete", Do: "Delete", Keep: "Keep", Back: webhookURL(id), Risky: true,
	}
	return v.page(http.StatusOK, Shell{Title: c.Title, Place: "settings"}, confirmPage(c))
}

func (v *visit) redeliver() error {
	id, err := v.webhookID()
	if err != nil {
		return err
	}
	var delivery api.DeliveryID
	if delivery.UnmarshalText([]byte(v.path("delivery"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such delivery here.")
	}
	if _, err := v.web.engine.Redeliver(v.r.Context(), v.caller, id, delivery); err != nil {
		return err
	}
	return v.to(webhookURL(id), "The message is sent once more")
}

func webhookURL(id api.WebhookID) string { return "/settings/webhooks/" + id.String() }

func webhookState(w api.Webhook) string {
	switch {
	case w.Enabled:
		return "Enabled"
	case w.DisabledReason != "":
		return "Disabled: " + w.DisabledReason
	default:
		return "Disabled"
	}
}

func typesWords(types []string) string {
	if len(types) == 0 {
		return "everything"
	}
	return strings.Join(types, ", ")
}

// deliveryWords say what happened to a message.
func deliveryWords(d api.Delivery) string {
	parts := []string{string(d.State)}
	if d.Tries > 1 {
		parts = append(parts, strconv.FormatInt(d.Tries, 10)+" tries")
	}
	if d.StatusCode != 0 {
		parts = append(parts, "answered "+strconv.FormatInt(d.StatusCode, 10))
	}
	if d.Problem != "" {
		parts = append(parts, d.Problem)
	}
	return strings.Join(parts, " · ")
}
