package web

import (
	"context"
	"net/http"
	"time"

	"stint/api"
	"stint/engine"
)

// agentPage is what agent.templ draws.
type agentPage struct {
	engine.AgentPage
	by   engine.Caller
	zone *time.Location
}

func (v *visit) agent() error {
	view, err := v.web.engine.AgentPageOf(v.r.Context(), v.caller, v.path("agent"))
	if err != nil {
		return err
	}
	if v.path("agent") != view.Slug {
		return v.to(agentURL(view.Slug), "")
	}
	shell := Shell{Title: view.Name, Place: "agents", Now: view.At, Stream: streamURL("agent", view.View, "agent", view.Slug)}
	return v.page(http.StatusOK, shell, agent(agentPage{view, v.caller, v.prefs.zone}))
}

func (v *visit) watchAgent(ref string) watcher {
	return func(ctx context.Context, c engine.Caller) ([]part, position, error) {
		view, err := v.web.engine.AgentPageOf(ctx, c, ref)
		if err != nil {
			return nil, position{}, err
		}
		p := agentPage{view, c, v.prefs.zone}
		return []part{
			{target: "agent-head", draw: agentHead(p)},
			{target: "agent-beats", draw: agentBeats(p)},
			{target: "agent-recent", draw: agentRecent(p)},
			{target: "agent-schedule", draw: agentSchedule(p)},
			{target: "agent-aside", draw: agentAside(p)},
		}, position{seq: view.Seq}, nil
	}
}

func (v *visit) askDelete() error {
	a, err := v.web.engine.Agent(v.r.Context(), v.caller, v.path("agent"))
	if err != nil {
		return err
	}
	if err := v.refuse(v.caller.CanDeleteAgents(), "Agents are deleted by owners of this workspace"); err != nil {
		return err
	}
	c := deleteQuestion(a)
	return v.page(http.StatusOK, Shell{Title: c.Title, Place: "agents"}, confirmPage(c))
}

func deleteQuestion(a api.Agent) Confirm {
	return Confirm{
		ID: "ask-delete", Title: "Delete “" + a.Name + "”?",
		Text:   "Its schedule ends and its waiting and running sessions are cancelled. Sessions that have ended stay readable.",
		Action: agentURL(a.Slug) + "/delete", Do: "Delete agent", Keep: "Keep it", Back: agentURL(a.Slug), Risky: true,
	}
}

func (v *visit) actAgent() error {
	ctx, eng, slug := v.r.Context(), v.web.engine, v.path("agent")
	switch v.path("verb") {
	case "pause":
		a, changed, err := eng.PauseAgent(ctx, v.caller, slug, "")
		if err != nil {
			return err
		}
		return v.to(agentURL(a.Slug), said(changed, "Paused: nothing new starts", "It was paused already"))
	case "resume":
		a, changed, err := eng.ResumeAgent(ctx, v.caller, slug)
		if err != nil {
			return err
		}
		return v.to(v.backTo(agentURL(a.Slug)), said(changed, "Resumed", "It wasn't paused"))
	case "skip", "unskip":
		return v.skipAgent(slug, v.path("verb") == "skip")
	default:
		if err := eng.DeleteAgent(ctx, v.caller, slug); err != nil {
			return err
		}
		return v.to("/agents", "Deleted “"+slug+"”")
	}
}

// backTo is the page that the form was on if that was a session's, else the path: whoever
// resumes an agent from a waiting session wants to see it start.
func (v *visit) backTo(path string) string {
	if from := v.back(); len(from) > len("/sessions/") && from[:len("/sessions/")] == "/sessions/" {
		return from
	}
	return path
}

// ledgerSum counts slots per verdict over what the page shows.
type ledgerSum struct {
	due, ran, late, skipped, missed int64
}

// lateAfter is how late a run must be to count as late.
const lateAfter = 60

func sumLedger(entries []api.LedgerEntry) ledgerSum {
	var s ledgerSum
	for _, e := range entries {
		s.due += e.Count
		switch e.Verdict {
		case api.SlotFired:
			s.ran += e.Count
			if e.LateBy > lateAfter {
				s.late += e.Count
			}
		case api.SlotSkipped:
			s.skipped += e.Count
		case api.SlotMissed:
			s.missed += e.Count
		}
	}
	return s
}

// verdictLook is the state whose hue and icon a verdict borrows.
func verdictLook(v api.Verdict) (icon string, class string) {
	switch v {
	case api.SlotFired:
		return "circle-check", "s-complete"
	case api.SlotMissed:
		return "circle-x", "s-error"
	case api.SlotSkipped:
		return "skip-forward", "s-stale"
	case api.SlotPaused:
		return "pause", "s-cancelled"
	default:
		return "list-collapse", "s-queued"
	}
}

func verdictWord(v api.Verdict) string {
	switch v {
	case api.SlotFired:
		return "Ran"
	case api.SlotFolded:
		return "Folded"
	case api.SlotSkipped:
		return "Skipped"
	case api.SlotMissed:
		return "Missed"
	case api.SlotPaused:
		return "Paused"
	default:
		return string(v)
	}
}

// slotRange is the slot, or the run of slots, that an entry is about.
func slotRange(e api.LedgerEntry, zone, own *time.Location, now time.Time) string {
	loc := zone
	if loc == nil {
		loc = own
	}
	first := clockIn(e.FirstSlot.Time, now, loc)
	if e.Count <= 1 {
		return first
	}
	return first + " – " + clockIn(e.LastSlot.Time, now, loc)
}

func zoneOf(name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return time.UTC
	}
	return l
}

func overlapWords(o api.Overlap) string {
	switch o {
	case api.OverlapSkip:
		return "skip the new run"
	case api.OverlapQueueOne:
		return "queue one"
	case api.OverlapAllow:
		return "run both"
	case api.OverlapReplace:
		return "replace the old run"
	default:
		return string(o)
	}
}

func catchUpWords(a api.AgentInput) string {
	if a.CatchUp == api.CatchUpNone {
		return "leave missed runs out"
	}
	if a.CatchUpWindowSeconds > 0 {
		return "run the latest missed one, if younger than " + Span(time.Duration(a.CatchUpWindowSeconds)*time.Second)
	}
	return "run the latest missed one"
}
