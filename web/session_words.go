package web

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"stint/api"
)

func stopQuestion(s api.Session) Confirm {
	text := "A running command is interrupted, then asked to end. The session ends as complete, marked as stopped early."
	if !s.Status.Running() {
		text = "It isn't running yet, so stopping cancels it."
	}
	return Confirm{
		ID: "ask-stop", Title: "Stop “" + titleOf(s) + "”?", Text: text, Action: sessionURL(s.ID) + "/stop",
		Do: "Stop it", Keep: "Let it run", Back: sessionURL(s.ID),
	}
}

func cancelQuestion(s api.Session) Confirm {
	text := "It is taken out of the queue and will never run."
	if s.Status.Running() {
		text = "The session ends at once as cancelled. Its worker ends the processes: interrupted first, killed if they don't go. What they wrote stays."
	}
	return Confirm{
		ID: "ask-cancel", Title: "Cancel “" + titleOf(s) + "”?", Text: text, Action: sessionURL(s.ID) + "/cancel",
		Do: "Cancel session", Keep: "Keep it", Back: sessionURL(s.ID), Risky: true,
	}
}

// entry is one line of the timeline.
type entry struct {
	at     time.Time
	icon   string
	class  string
	title  string
	detail string
}

func eventText(ev api.Event, key string) string {
	s, _ := ev.Data[key].(string)
	return s
}

// eventLook says how an event is shown. In words, {who} is who did it.
type eventLook struct {
	icon   string
	status api.Status // for the hue; "" = none
	words  string
}

var eventLooks = map[string]eventLook{
	"session_created":        {"plus", "", "Made by {who}"},
	"session_queued":         {"circle-dashed", api.Queued, "Queued"},
	"session_claimed":        {"circle-play", api.Active, "Claimed by {who}"},
	"session_released":       {"corner-down-left", api.Queued, "Given back by {who}"},
	"session_stale":          {"unplug", api.Stale, "Lost its worker"},
	"session_complete":       {"circle-check", api.Complete, "Complete"},
	"session_error":          {"circle-x", api.Failed, "Ended in error"},
	"session_cancelled":      {"circle-slash", api.Cancelled, "Cancelled by {who}"},
	"session_archived":       {"archive", "", "Archived by {who}"},
	"session_kept":           {"pin", "", "Kept by {who}"},
	"session_let_go":         {"pin-off", "", "Let go by {who}"},
	"stop_requested":         {"circle-stop", "", "Asked to stop by {who}"},
	"session_awaiting_input": {"message-circle-question-mark", api.AwaitingInput, "Asked a question"},
	"session_resumed":        {"circle-play", api.Active, "Goes on"},
	"prompt_closed":          {"message-circle-question-mark", "", "The question was closed"},
	"claim_drained":          {"check", "", "The worker's processes are gone"},
	"lease_extended":         {"timer", "", "Lease extended by {who}"},
	"late_result":            {"history", "", "A late result was kept"},
	"message_posted":         {"message-square", "", "{who} wrote a message"},
	"changes_recorded":       {"file-diff", "", "Its changes were recorded"},
	"landing_requested":      {"git-branch", "", "{who} asked what to do with its changes"},
	"landing_done":           {"git-merge", "", "Done with its changes"},
	"landing_refused":        {"circle-alert", "", "Not done with its changes"},
	"landing_withdrawn":      {"corner-down-left", "", "{who} took a request back"},
}

// timelineOf merges events and activities, newest first.
func (p sessionPage) timeline() []entry {
	var out []entry
	activities := p.Activities
	for _, ev := range p.Events {
		look, ok := eventLooks[ev.Type]
		if !ok {
			continue
		}
		for len(activities) > 0 && activities[0].At.After(ev.At.Time) {
			out = append(out, activityEntry(activities[0]))
			activities = activities[1:]
		}
		words := cmp.Or(landedWords(ev), look.words)
		e := entry{at: ev.At.Time, icon: look.icon, title: strings.ReplaceAll(words, "{who}", p.who(ev.Actor)), detail: eventDetail(ev)}
		if look.status != "" {
			e.class = statusClass(look.status)
		}
		out = append(out, e)
	}
	for _, a := range activities {
		out = append(out, activityEntry(a))
	}
	return out
}

func activityEntry(a api.Activity) entry {
	e := entry{at: a.At.Time, icon: "message-square", title: firstLine(a.Text, 200)}
	if e.title == "" {
		e.title = strings.ReplaceAll(string(a.Type), "_", " ")
	}
	if a.Type == api.ActivityPolicyDecision {
		e.icon = "shield"
	}
	return e
}

func (p sessionPage) who(actor string) string {
	if name := p.Names[actor]; name != "" {
		if name == "You" {
			return "you"
		}
		return name
	}
	switch actor {
	case "scheduler":
		return "the schedule"
	case "system", "":
		return "the coordinator"
	default:
		return actor
	}
}

// reasons are the words for the codes in events.
var reasons = map[string]string{
	"lease":               "Its lease ran out without a renewal",
	"lapse":               "Its lease ran out without a renewal",
	"offline":             "The worker went offline",
	"deleted":             "The worker was deleted",
	"retry":               "Tried again",
	"stop":                "Because it was asked to stop",
	"withdrawn":           "The question was withdrawn",
	"answered":            "It was answered",
	"predecessor_failed":  "The session it waited for failed",
	api.OutcomeStopped:    "Stopped before its work was done",
	api.OutcomeUnfinished: "Ended while something of it still ran",
	api.OutcomeRefused:    "Ended well, but acts were refused",
	api.OutcomeToolless:   "Ended well, but tools did not start",
	api.OutcomeUnmet:      "Ended without what was expected of it",
}

func eventDetail(ev api.Event) string {
	text := func(key string) string { return eventText(ev, key) }
	var parts []string
	if ev.Type == api.EventChangesRecorded {
		parts = append(parts, recordedWords(ev))
	}
	for _, key := range []string{"reason", "code", "resolution", "outcome"} {
		s := text(key)
		if s == "" || s == api.OutcomeSuccess {
			continue
		}
		s = cmp.Or(reasons[s], capitalised(landCodes[s]), s)
		parts = append(parts, s)
	}
	if n, ok := ev.Data["fence"].(float64); ok && ev.Type == "session_claimed" {
		parts = append(parts, fmt.Sprintf("fence %d", int64(n)))
	}
	if until := text("until"); until != "" {
		parts = append(parts, "until "+until)
	}
	return strings.Join(parts, ", ")
}

// advice says what can be done about an error, by its code.
var advice = map[string]string{
	"AGENT_EXECUTABLE_NOT_FOUND": "Check the command on the agent's page.",
	"WORK_FOLDER_NOT_FOUND":      "Make the folder on the worker's machine, or change it on the agent's page.",
	"WORK_FOLDER_NOT_A_DIR":      "The work folder names a file; change it on the agent's page.",
	"WORK_FOLDER_NOT_READABLE":   "Let the worker's user read the work folder.",
	"AGENT_EXIT_NONZERO":         "The last lines of the output usually say why.",
	"CHECK_FAILED":               "The command succeeded, but its check failed.",
	"TURN_TIMEOUT":               "It ran longer than the agent's limit; raise the limit or make the work smaller.",
	"STALLED":                    "It printed nothing for longer than the agent allows.",
	"SPEND_LIMIT":                "It reached the agent's spending limit; raise the limit on the agent's page, or let it go on tomorrow.",
	"USAGE_LIMIT":                "The model's provider lets this account do no more for now.",
	"AGENT_NOT_SIGNED_IN":        "Sign the agent's program in on the worker's machine.",
	"AGENT_CRASHED":              "The agent's program ended in the middle; the transcript's end usually says why.",
	"THREAD_POST_FAILED":         "The coordinator refuses what the worker reports: upgrade both to the same version.",
	"THREAD_ITEM_TOO_LARGE":      "The coordinator refuses what the worker reports: upgrade both to the same version.",
	"POLICY_BLOCKED":             "The worker's owner hasn't accepted what this agent would execute: “stint worker trust”.",
	"released_repeatedly":        "Workers took it and gave it back again and again; the message says why the last one did.",
	"lease_lapsed_repeatedly":    "Its worker was lost again and again; look at the workers' page and the machine.",
	"never_claimed":              "No worker took it in time; look at the workers' page.",
}

// elapsed counts from the first claim, or from the creation while it waits.
func (p sessionPage) elapsed() (word string, d time.Duration) {
	s := p.Session
	if ran := ranFor(s, p.At); ran > 0 {
		return "ran", ran
	}
	end := p.At
	if !s.EndedAt.IsZero() {
		end = s.EndedAt.Time
	}
	return "waited", end.Sub(s.CreatedAt.Time)
}

// legend sums the time per status for the words under the large ribbon.
func (p sessionPage) legend() []Stretch {
	sums := map[api.Status]time.Duration{}
	for _, s := range p.Session.Stretches {
		sums[s.Status] += stretchEnd(s, p.Session, p.At).Sub(s.From)
	}
	var out []Stretch
	for _, status := range api.Statuses {
		if d := sums[status]; d >= 50*time.Millisecond {
			out = append(out, Stretch{Status: status, Took: d})
		}
	}
	return out
}

// remaining estimates how long it will still run; "" when there is nothing to base that on.
func (p sessionPage) remaining() string {
	if p.Session.Status != api.Active || p.Expected == 0 {
		return ""
	}
	ran := ranFor(p.Session, p.At)
	if ran >= p.Expected {
		return "usually " + Span(p.Expected)
	}
	return "about " + Span(p.Expected-ran) + " left"
}

func tabsOf(p sessionPage) []Tab {
	known := p.tabs()
	tabs := make([]Tab, 0, len(known))
	for i, v := range known {
		t := Tab{Label: v.word, URL: sessionURL(p.Session.ID), Current: v.key == p.view}
		if i > 0 {
			t.URL += "?view=" + v.key
		}
		if v.key == "changes" {
			t.Count = int(p.Changes.FileCount)
		}
		tabs = append(tabs, t)
	}
	return tabs
}

func elapsedOf(p sessionPage) string {
	word, d := p.elapsed()
	if word == "waited" {
		return "waited " + Span(d)
	}
	return Span(d)
}

// waitTone is how much a gate matters: some open by themselves.
func waitTone(code string) Tone {
	switch code {
	case "no_worker", "worker_offline", "worker_labels", "worker_type", "worker_owner", "worker_mode", "worker_stopped":
		return Warn
	default:
		return Info
	}
}

// errorText says what went wrong and, in a line of its own, what can be done.
func errorText(e *api.Failure) string {
	text := strings.TrimSpace(PlainText(e.Message))
	tip := advice[e.Code]
	if e.Code == "AGENT_EXIT_NONZERO" && strings.Contains(text, "\n") {
		tip = "" // the lines that it speaks of are there
	}
	return strings.TrimSpace(text + "\n" + tip)
}

func usageWords(u api.Usage) string {
	var parts []string
	if u.Turns > 0 {
		parts = append(parts, Count(int(u.Turns), "turn", "turns"))
	}
	if n := u.InputTokens + u.OutputTokens; n > 0 {
		parts = append(parts, Count(int(u.InputTokens), "token", "tokens")+fmt.Sprintf(" in, %d out", u.OutputTokens))
	}
	if u.CostMicros > 0 {
		parts = append(parts, api.Dollars(u.CostMicros))
	}
	return strings.Join(parts, ", ")
}

// planStep is one line of the plan that an agent reported.
type planStep struct {
	text string
	box  bool // it is a step with a box
	done bool
}

// planSteps is how many lines of a plan a page shows.
const planSteps = 500

// planOf reads a plan line by line: "- [x] done", "- [ ] open", or any text.
func planOf(plan string) []planStep {
	var out []planStep
	for line := range strings.Lines(PlainText(plan)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(out) == planSteps {
			return append(out, planStep{text: "… and more: the JSON view has all of it"})
		}
		rest := strings.TrimSpace(strings.TrimLeft(line, "-*+ "))
		switch {
		case strings.HasPrefix(rest, "[x]"), strings.HasPrefix(rest, "[X]"):
			out = append(out, planStep{strings.TrimSpace(rest[3:]), true, true})
		case strings.HasPrefix(rest, "[ ]"):
			out = append(out, planStep{strings.TrimSpace(rest[3:]), true, false})
		default:
			out = append(out, planStep{text: line})
		}
	}
	return out
}

func stepIcon(done bool) string {
	if done {
		return "check"
	}
	return "circle-dashed"
}

// maySay reports whether the reader may write to the agent.
func (p sessionPage) maySay() bool { return p.conversed() && p.MayAnswer && !p.AgentGone }

// sayWords say what happens to a message.
func (p sessionPage) sayWords() string {
	if p.Session.Status.Terminal() {
		return "The session has ended: the conversation goes on in a new session."
	}
	return "The agent takes it in between its turns; it interrupts nothing."
}

// decisions are what the agent's rules decided, newest first.
func (p sessionPage) decisions() []api.Activity {
	var out []api.Activity
	for _, a := range p.Activities {
		if a.Type == api.ActivityPolicyDecision && len(out) < 20 {
			out = append(out, a)
		}
	}
	return out
}

// spendLimit says what the session may cost; "" when there is no limit.
func (p sessionPage) spendLimit() string {
	if p.Agent.SessionSpendLimitMicros == 0 {
		return ""
	}
	return "of " + api.Dollars(p.Agent.SessionSpendLimitMicros) + " that one session may cost"
}

// markTitle heads the reason why a complete session is no plain success.
func markTitle(s api.Session) string {
	switch {
	case s.Outcome == api.OutcomeRefused:
		return Count(int(s.Refused), "act was refused", "acts were refused")
	case s.Outcome == api.OutcomeToolless:
		return "It ran without its tools"
	case s.Outcome == api.OutcomeUnmet:
		return "Not what was expected"
	}
	return "It may not be done"
}
