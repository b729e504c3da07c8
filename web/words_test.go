package web

import (
	"net/url"
	"testing"
	"time"

	"stint/api"
	"stint/engine"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:            "0s",
		0:                       "0s",
		400 * time.Millisecond:  "400ms",
		70 * time.Microsecond:   "<1ms",
		time.Second:             "1.0s",
		9990 * time.Millisecond: "9.9s",
		42 * time.Second:        "42s",
		3*time.Minute + 12*time.Second + 900*time.Millisecond: "3m 12s",
		time.Hour:                    "1h",
		2*time.Hour + 5*time.Minute:  "2h 5m",
		100*time.Hour + 10*time.Hour: "4d 14h",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Minute:                  "0:00",
		1500 * time.Millisecond:       "0:02",
		15 * time.Minute:              "15:00",
		time.Hour + 62*time.Second:    "1:01:02",
		4*time.Minute + 7*time.Second: "4:07",
	} {
		if got := Clock(d); got != want {
			t.Errorf("Clock(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-3 * time.Second:  "now",
		-30 * time.Second: "30 sec ago",
		-56 * time.Second: "1 min ago",
		-3 * time.Minute:  "3 min ago",
		-56 * time.Minute: "1 hr ago",
		-5 * time.Hour:    "5 hr ago",
		-22 * time.Hour:   "yesterday",
		-3 * day:          "3 days ago",
		-8 * day:          "last wk",
		-15 * day:         "2 wk ago",
		-33 * day:         "last mo",
		-155 * day:        "5 mo ago",
		-800 * day:        "2 yr ago",
		4 * time.Minute:   "in 4 min",
		25 * time.Hour:    "tomorrow",
	} {
		if got := Ago(now.Add(d), now); got != want {
			t.Errorf("Ago(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for in, want := range map[string]string{
		"  one\ntwo":           "one",
		"\x1b[1mbold\x1b[0m\n": "bold",
		"abcdefghijkl":         "abcdefghi…",
		"żółćżółćżó":           "żółćżółćżó",
		"":                     "",
	} {
		if got := firstLine(in, 10); got != want {
			t.Errorf("firstLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFillAgent_SaysInWordsWhatACommandLineLacks(t *testing.T) {
	for typed, want := range map[string]string{
		`sh -c 'make`: `can't be read as a command line: a ' has no other ' that ends what it begins`,
		`sh -c "make`: `can't be read as a command line: a " has no other " that ends what it begins`,
		`make \`:      `can't be read as a command line: nothing comes after the \ at its end`,
	} {
		in := api.AgentInput{Type: api.TypeCommand}
		if bad := fillAgent(&in, url.Values{"command": {typed}, "check": {typed}}); bad["run.command"] != want || bad["run.check"] != want {
			t.Errorf("%s is refused with %q", typed, bad)
		}
	}
}

func TestHome_TellsOfTheDaysRunsThatMayNotHaveDoneTheirWork(t *testing.T) {
	p := homePage{HomeView: engine.HomeView{Today: map[api.Status]int64{api.Complete: 3, api.Failed: 2}, TodayMarked: 1}}
	if got, want := p.today(), "5 sessions, 2 in error, 1 to look at"; got != want {
		t.Errorf("the day is shown as %q, want %q", got, want)
	}
}
