package web

import (
	"context"
	"net/http"
	"time"

	"stint/api"
	"stint/engine"
)

// inboxPage is what inbox.templ draws.
type inboxPage struct {
	engine.InboxView
	by     api.UserID
	answer answerForm // the refused one
}

func (v *visit) inbox() error { return v.drawInbox(http.StatusOK, answerForm{}) }

func (v *visit) drawInbox(status int, refused answerForm) error {
	view, err := v.web.engine.Inbox(v.r.Context(), v.caller)
	if err != nil {
		return err
	}
	shell := Shell{Talk: true, Title: "Inbox", Place: "inbox", Now: view.At, Stream: streamURL("inbox", view.View)}
	return v.page(status, shell, inbox(inboxPage{view, v.caller.UserID, refused}))
}

// watchInbox draws the inbox again. Forms in which something was typed stay.
func (v *visit) watchInbox() watcher {
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		view, err := v.web.engine.Inbox(ctx, c)
		if err != nil {
			return nil, position{}, err
		}
		return []part{{target: "inbox", draw: inboxList(inboxPage{InboxView: view, by: c.UserID})}}, position{seq: view.Seq}, nil
	}
}

// title says in one line how many things wait.
func (p inboxPage) title() string {
	if len(p.Items) == 0 {
		return "Nothing waits for you"
	}
	return Count(len(p.Items), "thing waits for you", "things wait for you")
}

// inboxID is an item's id in the page. A session that asks again is another item.
func inboxID(i api.InboxItem) string {
	switch {
	case i.Title != "" && i.Agent != nil:
		return "in-" + string(i.Kind) + "-" + i.Agent.ID.String()
	case i.Session != nil && i.Session.Prompted != nil:
		return "in-" + i.Session.Prompted.ID.String()
	case i.Session != nil:
		return "in-" + i.Session.ID.String()
	case i.Agent != nil:
		return "in-" + i.Agent.ID.String()
	case i.Webhook != nil:
		return "in-" + i.Webhook.ID.String()
	case i.Channel != nil:
		return "in-" + i.Channel.ID.String()
	case i.Worker != nil:
		return "in-" + i.Worker.ID.String()
	}
	return "in-" + string(i.Kind)
}

// parkedWords say that no worker holds a session that asks; "" while one waits.
func parkedWords(s *api.Session) string {
	switch s.Status {
	case api.Pending:
		return "Parked: your answer queues it again"
	case api.Stale:
		return "Its worker was lost; your answer lets another go on"
	}
	return ""
}

// inboxText says what is wrong with a session that asks nothing.
func inboxText(i api.InboxItem) (title, text string) {
	s := i.Session
	switch {
	case i.Kind == api.InboxStale && s.WaitingFor != nil:
		return "It lost its worker", s.WaitingFor.Sentence
	case i.Kind == api.InboxStale:
		return "It lost its worker", ""
	case s.Error != nil:
		return s.Error.Code, errorText(s.Error)
	}
	return "It failed", ""
}

// mendedText says more of what is wrong, and to those who may act what mends it.
func mendedText(i api.InboxItem) string {
	if !i.MayAct || i.Mend == "" {
		return i.Detail
	}
	return i.Detail + " To mend it: " + i.Mend + "."
}

func inboxTone(k api.InboxKind) Tone {
	if k == api.InboxFailed {
		return Bad
	}
	return Warn
}

// sinceTime is when an item began to wait; zero when that isn't known.
func sinceTime(i api.InboxItem) time.Time { return i.Since.Time }
