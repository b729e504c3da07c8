package web

import (
	"errors"
	"strings"
	"time"

	"stint/api"

	shellquote "github.com/kballard/go-shellquote"
)

// agentLine is what a list shows of an agent under its name.
func agentLine(a api.Agent) string {
	switch {
	case a.ScheduleError != "":
		return "Schedule: " + a.ScheduleError
	case a.Paused && a.PausedReason != "" && a.ScheduleWords != "":
		return a.PausedReason + " · " + a.ScheduleWords
	case a.Paused && a.PausedReason != "":
		return a.PausedReason
	case a.ScheduleWords != "":
		return a.ScheduleWords
	case a.Description != "":
		return a.Description
	case a.Type != api.TypeCommand:
		return a.ProgramWord()
	default:
		return commandLine(a.Run.Command)
	}
}

// commandLine is an argument list in the form that a shell needs.
func commandLine(argv []string) string { return shellquote.Join(argv...) }

// SplitCommand splits a command line as a shell does; no shell reads it. The error is half a
// sentence for the person who typed it.
func SplitCommand(text string) ([]string, error) {
	argv, err := shellquote.Split(text)
	for its, says := range map[error]string{
		shellquote.UnterminatedSingleQuoteError: "a ' has no other ' that ends what it begins",
		shellquote.UnterminatedDoubleQuoteError: "a \" has no other \" that ends what it begins",
		shellquote.UnterminatedEscapeError:      "nothing comes after the \\ at its end",
	} {
		if errors.Is(err, its) {
			return nil, errors.New(says)
		}
	}
	return argv, err
}

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

// readerSlot is the same instant for the reader; "" when their clock shows the same.
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
