package api

import (
	"fmt"
	"time"
)

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// Time is an instant as the wire shows it: RFC 3339 in UTC with milliseconds.
// The store keeps integer Unix microseconds; see [Micros].
type Time struct{ time.Time }

// At converts the store's Unix microseconds; 0 is "not set" and gives the zero Time.
func At(micros int64) Time {
	if micros == 0 {
		return Time{}
	}
	return Time{time.UnixMicro(micros).UTC()}
}

// Micros converts t to the store's Unix microseconds; the zero time is 0.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// MarshalText writes RFC 3339 with milliseconds; the zero time is empty.
func (t Time) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return []byte{}, nil
	}
	return []byte(t.UTC().Format(timeLayout)), nil
}

// UnmarshalText reads any RFC 3339 time; the empty text is the zero time.
func (t *Time) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		t.Time = time.Time{}
		return nil
	}
	got, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fmt.Errorf("%q is no time: write it as RFC 3339, such as 2026-11-28T09:00:00Z", text)
	}
	t.Time = got.UTC()
	return nil
}

// MarshalJSON is MarshalText in quotes; without it the embedded time's own form, with
// nanoseconds and a zero time of the year 1, would be used.
func (t Time) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(timeLayout)+2)
	b = append(b, '"')
	if !t.IsZero() {
		b = t.UTC().AppendFormat(b, timeLayout)
	}
	return append(b, '"'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote, and null as the zero time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		t.Time = time.Time{}
		return nil
	}
	if len(b) < 2 || b[0] != '"' {
		return fmt.Errorf("%s is no time: write it as RFC 3339 in quotes", b)
	}
	return t.UnmarshalText(b[1 : len(b)-1])
}

// String is the wire's form.
func (t Time) String() string {
	b, _ := t.MarshalText()
	return string(b)
}
