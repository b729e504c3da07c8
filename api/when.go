package api

import (
	"fmt"
	"strings"
	"time"
)

// ParseTime reads a point in time as people write it: RFC 3339, a date, a date with hour and
// minute, "yesterday", "today", "now", or a length of time such as 2h, 7d or 90s. A length
// lies before now if past, else after it.
func ParseTime(text string, now time.Time, past bool) (time.Time, error) {
	text = strings.TrimSpace(text)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch text {
	case "now":
		return now, nil
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	case "tomorrow":
		return midnight.AddDate(0, 0, 1), nil
	}
	if d, err := ParseLength(text); err == nil {
		if past {
			d = -d
		}
		return now.Add(d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	day := "tomorrow"
	if past {
		day = "yesterday"
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2026-11-28T09:00:00Z, 2026-11-28, %s or a length such as 2h", text, day)
}

// ParseLength reads a length of time: Go's units and d for days, or plain seconds.
func ParseLength(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is no length of time: write 90s, 15m, 2h or 7d", text)
	if text == "" {
		return 0, bad
	}
	if strings.Trim(text, "0123456789") == "" {
		text += "s"
	}
	days, isDays := strings.CutSuffix(text, "d")
	if isDays {
		text = days + "h"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, bad
	}
	if isDays {
		if d > 24*365*100*time.Hour {
			return 0, bad
		}
		d *= 24
	}
	return d, nil
}
