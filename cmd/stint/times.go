package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stint/api"
	"stint/scheduler"
)

// when shows an instant: to people how far away it is and the wall clock, to programs RFC
// 3339.
func (c *cli) when(t api.Time) string {
	if t.IsZero() || !c.tty {
		return t.String()
	}
	return relative(t.Time, c.now()) + " (" + clock(t.Time, c.now()) + ")"
}

// ago shows an instant where there is little room.
func (c *cli) ago(t api.Time) string {
	if t.IsZero() || !c.tty {
		return t.String()
	}
	return relative(t.Time, c.now())
}

// relative says how far t is from now.
func relative(t, now time.Time) string {
	d := t.Sub(now)
	if d > 0 {
		return "in " + span(d)
	}
	if d > -time.Second {
		return "now"
	}
	return span(-d) + " ago"
}

// span puts a length of time into its one or two largest units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < day:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}
	return two(int(d/day), "d", int(d.Hours())%24, "h")
}

func two(n int, unit string, rest int, small string) string {
	if rest == 0 {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%d %s %d %s", n, unit, rest, small)
}

// clock is the wall clock in the reader's zone, with the date unless it is today's.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05 MST")
	}
	return t.Format("2006-01-02 15:04 MST")
}

// seconds is a flag for a length of time that the REST interface takes in whole seconds.
type seconds struct{ n *int64 }

func (s seconds) String() string {
	if s.n == nil || *s.n == 0 {
		return ""
	}
	return (time.Duration(*s.n) * time.Second).String()
}

func (s seconds) Set(text string) error {
	d, err := api.ParseLength(text)
	if err != nil {
		return err
	}
	if d%time.Second != 0 {
		return fmt.Errorf("%q is not in whole seconds", text)
	}
	*s.n = int64(d / time.Second)
	return nil
}

func (s seconds) Type() string { return "duration" }

// length is a flag for a length of time.
type length struct{ d *time.Duration }

func (l length) String() string {
	if l.d == nil || *l.d == 0 {
		return ""
	}
	return l.d.String()
}

func (l length) Set(text string) (err error) {
	*l.d, err = api.ParseLength(text)
	return err
}

func (l length) Type() string { return "duration" }

// machineZone is the tzdata name of this machine's zone, "UTC" where that isn't known.
func (c *cli) machineZone() string {
	var guesses []string
	if tz := strings.TrimPrefix(c.env("TZ"), ":"); tz != "" {
		guesses = append(guesses, afterZoneinfo(tz))
	} else {
		if target, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
			guesses = append(guesses, afterZoneinfo(target))
		}
		if name, err := os.ReadFile("/etc/timezone"); err == nil {
			guesses = append(guesses, strings.TrimSpace(string(name)))
		}
	}
	zones := scheduler.Zones()
	for _, name := range guesses {
		if slices.Contains(zones, name) {
			return name
		}
	}
	return "UTC"
}

// zone is this machine's zone under its tzdata name, which a schedule can use too; the clock's
// own "Local" is no such name.
func (c *cli) zone() *time.Location {
	zone, err := time.LoadLocation(c.machineZone())
	if err != nil {
		return time.UTC
	}
	return zone
}

// afterZoneinfo cuts the folder off a zone file's path.
func afterZoneinfo(path string) string {
	if _, name, ok := strings.Cut(path, "zoneinfo/"); ok {
		return strings.TrimPrefix(name, "posix/")
	}
	return path
}
