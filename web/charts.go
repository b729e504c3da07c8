package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"stint/api"
)

// Stretch is a length of time that a session spent in one status.
type Stretch struct {
	Status api.Status
	Took   time.Duration
}

// Ribbon is what [PhaseRibbon] draws.
type Ribbon struct {
	Label string
	parts []ribbonPart
}

type ribbonPart struct {
	Status   api.Status
	from, to float64 // 0 to 1
}

// NewRibbon lays stretches out by their real length; one too short to be seen gets the
// smallest visible width. whole is the length that fills the ribbon: give several rows the
// same one and they can be compared; 0 fills each.
func NewRibbon(stretches []Stretch, whole time.Duration) Ribbon {
	const least = 0.02
	var sum time.Duration
	var words []string
	shown := stretches[:0:0]
	for _, s := range stretches {
		if s.Took <= 0 {
			continue
		}
		sum += s.Took
		shown = append(shown, s)
		words = append(words, fmt.Sprintf("%s %s", strings.ToLower(StatusWord(s.Status)), Span(s.Took)))
	}
	r := Ribbon{Label: strings.Join(words, ", ")}
	if sum == 0 {
		r.Label = "no time spent yet"
		return r
	}
	whole = max(whole, sum)
	widths, total := make([]float64, len(shown)), 0.0
	for i, s := range shown {
		widths[i] = max(least, float64(s.Took)/float64(whole))
		total += widths[i]
	}
	at, scale := 0.0, 1/max(1, total)
	for i, s := range shown {
		to := at + widths[i]*scale
		r.parts = append(r.parts, ribbonPart{Status: s.Status, from: at, to: to})
		at = to
	}
	return r
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 2, 64) + "%" }

// Lease is what [LeaseRing] draws.
type Lease struct {
	Ends   time.Time
	Length time.Duration // of the whole lease
	Now    time.Time
	Small  bool // ring only
}

func (l Lease) left() time.Duration { return max(0, l.Ends.Sub(l.Now)) }

func (l Lease) share() float64 {
	if l.Length <= 0 {
		return 0
	}
	return min(1, float64(l.left())/float64(l.Length))
}

func (l Lease) low() bool { return l.share() < 0.2 }

func (l Lease) dash() string { return strconv.FormatFloat(l.share()*100, 'f', 1, 64) + " 100" }

// Beat is one run in a [HeartbeatBar].
type Beat struct {
	Status  api.Status
	URL     string
	Title   string
	Started time.Time
	Took    time.Duration
	Stopped bool // a person ended it before its work was done

	Mark string // why it is no plain success though complete, in a word or two; "" = it is, or isn't complete
}

// word says how the run ended, or how it stands.
func (b Beat) word() string {
	if b.Stopped {
		return "Stopped"
	}
	if b.Mark != "" {
		return capitalised(b.Mark)
	}
	return StatusWord(b.Status)
}

// look is the status by which the run is drawn: one that was stopped, or is no plain success,
// is drawn like a cancelled one.
func (b Beat) look() api.Status {
	if b.Stopped || b.Mark != "" {
		return api.Cancelled
	}
	return b.Status
}

// beatCount is how many runs the bar shows.
const beatCount = 30

type beatMark struct{ class, x, y, w, h, title string }

// drawBeats gives each run its shape: complete is low, error is high with a notch, cancelled
// is hollow, waiting is broken, running is full and breathes.
func drawBeats(beats []Beat) []beatMark {
	if len(beats) > beatCount {
		beats = beats[len(beats)-beatCount:]
	}
	var marks []beatMark
	at := func(i int) int { return i * 7 }
	for i := range beatCount - len(beats) {
		marks = append(marks, beatMark{class: "none", x: strconv.Itoa(at(i)), y: "22", w: "5", h: "2"})
	}
	for i, b := range beats {
		m := beatMark{class: statusClass(b.look()), x: strconv.Itoa(at(beatCount - len(beats) + i)), y: "0", w: "5", h: "24", title: beatTitle(b)}
		switch b.look() {
		case api.Complete:
			m.y, m.h = "10", "14"
		case api.Failed:
			m.h = "17"
			notch := m
			notch.y, notch.h, notch.title = "20", "4", ""
			marks = append(marks, notch)
		case api.Cancelled, api.Stale, api.Queued, api.Pending:
			m.x, m.y, m.w, m.h = m.x+".5", "10.5", "4", "13"
		}
		marks = append(marks, m)
	}
	return marks
}

func beatTitle(b Beat) string {
	title := b.word()
	if b.Title != "" {
		title = b.Title + ": " + title
	}
	if b.Took > 0 {
		title += ", " + Span(b.Took)
	}
	return title
}

func beatsLabel(beats []Beat) string {
	if len(beats) == 0 {
		return "No runs yet"
	}
	if len(beats) > beatCount {
		beats = beats[len(beats)-beatCount:]
	}
	sums, stopped, marked := map[api.Status]int{}, 0, map[string]int{}
	for _, b := range beats {
		switch {
		case b.Stopped:
			stopped++
		case b.Mark != "":
			marked[b.Mark]++
		default:
			sums[b.Status]++
		}
	}
	var parts []string
	for _, s := range api.Statuses {
		if sums[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", sums[s], strings.ToLower(StatusWord(s))))
		}
	}
	if stopped > 0 {
		parts = append(parts, fmt.Sprintf("%d stopped", stopped))
	}
	for _, outcome := range api.MarkedOutcomes {
		if word := api.MarkWord(outcome); marked[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", marked[word], word))
		}
	}
	return "Last " + Count(len(beats), "run", "runs") + ": " + strings.Join(parts, ", ")
}
