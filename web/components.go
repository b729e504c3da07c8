package web

import (
	"time"

	"stint/api"
)

// Tone is how much a [Callout] matters.
type Tone string

// The tones.
const (
	Info Tone = "info"
	Warn Tone = "warn"
	Bad  Tone = "bad"
)

func (t Tone) icon() string {
	switch t {
	case Warn:
		return "triangle-alert"
	case Bad:
		return "circle-alert"
	default:
		return "info"
	}
}

// role makes screen readers announce errors at once, and the rest in turn.
func (t Tone) role() string {
	if t == Bad {
		return "alert"
	}
	return "note"
}

// Tab is one of several views of a thing.
type Tab struct {
	Label   string
	URL     string
	Count   int // 0 = not shown
	Current bool
}

// Confirm is a question before something that can't be undone.
type Confirm struct {
	ID     string // of the dialog in the page
	Title  string // names the object: "Cancel “nightly report”?"
	Text   string // says the effect
	Action string // where the yes is posted
	Do     string // the text of that button
	Keep   string // the text of the button that goes back
	Back   string // where going back leads without scripts
	Risky  bool   // the yes ends or deletes something
}

func confirmClass(risky bool) string {
	if risky {
		return "risk"
	}
	return "main"
}

// Crumb is a step of the way to a page.
type Crumb struct{ Word, URL string }

// tense keeps the script from saying "in 3 sec" about a past moment when the reader's clock is
// behind the server's.
func tense(t, now time.Time) string {
	if t.After(now) {
		return "future"
	}
	return "past"
}

func triggerIcon(by api.Trigger) string {
	switch by {
	case api.ByScheduler:
		return "clock"
	case api.ByWebhook:
		return "webhook"
	case api.ByAgent:
		return "bot"
	default:
		return "user"
	}
}

func actorName(by api.Trigger, name string) string {
	if name != "" {
		return name
	}
	switch by {
	case api.ByScheduler:
		return "Schedule"
	case api.ByWebhook:
		return "Webhook"
	case api.ByAgent:
		return "Agent"
	default:
		return "You"
	}
}

func yesNo(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
