package web

import (
	"net/http"

	"stint/api"
)

// trigger finds the address that a page is about, among those that the reader may see.
func (v *visit) trigger() (out api.TriggerURL, err error) {
	var id api.TriggerID
	if id.UnmarshalText([]byte(v.path("trigger"))) != nil {
		return out, noTrigger()
	}
	list, err := v.web.engine.TriggerURLs(v.r.Context(), v.caller, v.path("agent"), settingsList)
	if err != nil {
		return out, err
	}
	for _, t := range list.Items {
		if t.ID == id {
			return t, nil
		}
	}
	return out, noTrigger()
}

func noTrigger() error {
	return api.Refuse(api.CodeNotFound, "There is no such address here; it may be closed already.")
}

func triggerURL(agent string, id api.TriggerID) string {
	return agentURL(agent) + "/triggers/" + id.String() + "/close"
}

// triggerName is what people call an address.
func triggerName(t api.TriggerURL) string {
	if t.Description != "" {
		return t.Description
	}
	return t.ID.String()
}

func (v *visit) askTrigger() error {
	t, err := v.trigger()
	if err != nil {
		return err
	}
	slug := v.path("agent")
	c := Confirm{
		ID: "ask-close", Title: "Close “" + triggerName(t) + "”?",
		Text:   "Whatever calls this address is refused from then on. It can't be opened again; a new one has another address and another secret.",
		Action: triggerURL(slug, t.ID), Do: "Close address", Keep: "Keep it", Back: agentURL(slug), Risky: true,
	}
	return v.page(http.StatusOK, Shell{Title: c.Title, Place: "agents"}, confirmPage(c))
}

func (v *visit) closeTrigger() error {
	var id api.TriggerID
	if id.UnmarshalText([]byte(v.path("trigger"))) != nil {
		return noTrigger()
	}
	if err := v.web.engine.CloseTriggerURL(v.r.Context(), v.caller, v.path("agent"), id); err != nil {
		return err
	}
	return v.to(agentURL(v.path("agent")), "Closed the address")
}
