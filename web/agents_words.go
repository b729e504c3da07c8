package web

import (
	"strings"
	"time"

	"stint/api"

	shellquote "github.com/kballard/go-shellquote"
)

// agentLine is what a list says of an agent under its name.
func agentLine(a api.Agent) string {
	switch {
	case a.ScheduleError != "":
		return "Schedule: " + a.ScheduleError
	case a.Paused && a.PausedReason != "":
		return a.PausedReason
	case a.ScheduleWords != "":
		return a.ScheduleWords
	case a.Description != "":
		return a.Description
	case a.Type != api.TypeCommand:
		return typeWord(a.Type)
	default:
		return commandLine(a.Run.Command)
	}
}

// commandLine is an argument list as a shell would have to be given it.
func commandLine(argv []string) string { return shellquote.Join(argv...) }

func joined(words []string) string { return strings.Join(words, " ") }

func spanOrDash(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return Span(d)
}

func bareRows(p agentPage) []row {
	rows := rowsOf(p.Recent, p.At, longest(p.Recent, p.At))
	for i := range rows {
		rows[i].bare = true
	}
	return rows
}

func pausedTone(a api.Agent) Tone {
	if a.FailuresInRow > 0 {
		return Warn
	}
	return Info
}

func pausedText(a api.Agent) string {
	if a.PausedReason != "" {
		return a.PausedReason
	}
	return "Nothing new starts. What runs goes on, what waits keeps its place."
}

func verdictIcon(v api.Verdict) string {
	icon, _ := verdictLook(v)
	return icon
}

func verdictClass(v api.Verdict) string {
	_, class := verdictLook(v)
	return class
}

// localSlot is a slot in its schedule's zone, with the offset that holds then.
func localSlot(s api.SlotPreview) string {
	t, err := time.Parse(time.RFC3339, s.Local)
	if err != nil {
		return s.Local
	}
	return t.Format("Mon 2 Jan 15:04 -07:00")
}

// readerSlot is the same instant for the reader; "" when his clock shows the same.
func readerSlot(s api.SlotPreview, zone *time.Location) string {
	t, err := time.Parse(time.RFC3339, s.Local)
	if err != nil {
		return ""
	}
	there := s.At.In(zone)
	_, a := t.Zone()
	_, b := there.Zone()
	if a == b {
		return ""
	}
	return there.Format("15:04 MST")
}
