package api

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

func TestTime_IsTheWiresOwnFormInJSON(t *testing.T) {
	at := time.Date(2026, 11, 28, 9, 0, 0, 123_456_789, time.FixedZone("", 3600))
	for _, c := range []struct {
		in   Time
		want string
	}{
		{Time{at}, `"2026-11-28T08:00:00.123Z"`},
		{Time{}, `""`},
	} {
		got, err := json.Marshal(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("Marshal(%v) = %s, %v; want %s", c.in.Time, got, err, c.want)
		}
		var back Time
		if err := json.Unmarshal(got, &back); err != nil || back.String() != c.in.String() {
			t.Errorf("%s is read back as %v, %v", got, back, err)
		}
	}
	var got Time
	if err := json.Unmarshal([]byte("null"), &got); err != nil || !got.IsZero() {
		t.Errorf("null is read as %v, %v", got, err)
	}
	for _, bad := range []string{`"tomorrow"`, `12`, `{}`, `"2026-13-01T00:00:00Z"`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s was read as a time", bad)
		}
	}
}
