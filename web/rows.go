package web

import (
	"fmt"
	"strings"
	"time"

	"stint/api"
	"stint/engine"
)

// row is a session as a list shows it.
type row struct {
	engine.SessionView
	now   time.Time
	whole time.Duration // length that fills the ribbon; 0 = its own
	bare  bool          // within one agent's page: its name isn't repeated
}

func rowsOf(views []engine.SessionView, now time.Time, whole time.Duration) []row {
	out := make([]row, 0, len(views))
	for _, v := range views {
		out = append(out, row{SessionView: v, now: now, whole: whole})
	}
	return out
}

func sessionURL(id api.SessionID) string { return "/sessions/" + id.String() }

func agentURL(slug string) string { return "/agents/" + slug }

const titleShown = 300 // characters

// titleOf names a session; one without a title is a run of its agent.
func titleOf(s api.Session) string {
	if title := firstLine(s.Title, titleShown); title != "" {
		return title
	}
	return "Run of " + s.AgentSlug
}

// note is the one thing worth knowing beside the status.
func (r row) note() string {
	switch {
	case r.WaitingFor != nil:
		return r.WaitingFor.Sentence
	case r.Prompted != nil:
		return firstLine(r.Prompted.Text, 160)
	case r.Status == api.Active:
		return lastLineOf(r.LastLine, 160)
	case r.Error != nil && r.Error.Message != "":
		return firstLine(r.Error.Message, 160)
	case r.Error != nil:
		return r.Error.Code
	case r.Stopped():
		return "Stopped before its end"
	case r.Mark() != "":
		return firstLine(r.Mark(), 160)
	}
	return ""
}

// noteIsOutput reports whether the note is what the process printed.
func (r row) noteIsOutput() bool {
	return r.Status == api.Active && r.WaitingFor == nil && r.Prompted == nil
}

// lastLineOf is the last line of output that says something.
func lastLineOf(text string, n int) string {
	lines := RenderANSILines(text[max(0, len(text)-excerptBytes):])
	for i := len(lines) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(lines[i]); s != "" {
			return firstLine(s, n)
		}
	}
	return ""
}

// when is the instant shown in the list's last column.
func (r row) when() time.Time {
	switch {
	case !r.EndedAt.IsZero():
		return r.EndedAt.Time
	case r.Status.Running():
		return r.StartedAt.Time
	default:
		return r.CreatedAt.Time
	}
}

// took is how long the work itself lasted, or has lasted so far.
func (r row) took() time.Duration { return ranFor(r.SessionView, r.now) }

// ranFor sums the time in which a worker held the session.
func ranFor(v engine.SessionView, now time.Time) time.Duration {
	var sum time.Duration
	for _, s := range v.Stretches {
		if s.Status.Running() {
			sum += stretchEnd(s, v, now).Sub(s.From)
		}
	}
	return sum
}

func stretchEnd(s engine.Stretch, v engine.SessionView, now time.Time) time.Time {
	switch {
	case !s.To.IsZero():
		return s.To
	case !v.EndedAt.IsZero():
		return v.EndedAt.Time
	default:
		return now
	}
}

func (r row) ribbon() Ribbon { return ribbonOf(r.SessionView, r.now, r.whole) }

func ribbonOf(v engine.SessionView, now time.Time, whole time.Duration) Ribbon {
	stretches := make([]Stretch, 0, len(v.Stretches))
	for _, s := range v.Stretches {
		stretches = append(stretches, Stretch{Status: s.Status, Took: stretchEnd(s, v, now).Sub(s.From)})
	}
	return NewRibbon(stretches, whole)
}

// since is the moment from which a running session's time counts, so that the page's script
// can keep counting.
func (r row) since() time.Time { return r.now.Add(-r.took()) }

func beatsOf(runs []engine.RunView, now time.Time) []Beat {
	out := make([]Beat, 0, len(runs))
	for _, run := range runs {
		b := Beat{Status: run.Status, URL: sessionURL(run.ID), Title: run.Title, Started: run.CreatedAt, Stopped: run.Stopped, Mark: run.Mark}
		if b.Title == "" {
			b.Title = run.ID.String()
		}
		if !run.StartedAt.IsZero() {
			b.Started = run.StartedAt
			end := run.EndedAt
			if end.IsZero() {
				end = now
			}
			b.Took = end.Sub(run.StartedAt)
		}
		out = append(out, b)
	}
	return out
}

// success is the share of finished runs that were complete, in words; "" when
// none has finished.
func success(runs []engine.RunView) string {
	var done, good int64
	for _, r := range runs {
		switch {
		case r.Good():
			done, good = done+1, good+1
		case r.Status == api.Failed:
			done++
		}
	}
	return perCent(good, done)
}

// perCent is a share in whole per cent, never more than it is; "" of nothing.
func perCent(part, of int64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", part*100/of)
}
