package api

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Labels is a set of words, kept sorted and without repeats. The store keeps
// it as one text, its words joined by commas.
type Labels []string

// Normal returns the set sorted, trimmed and without repeats or empty words.
func (l Labels) Normal() Labels {
	out := make(Labels, 0, len(l))
	for _, w := range l {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Has reports whether every word of want is in l.
func (l Labels) Has(want Labels) bool {
	for _, w := range want {
		if !slices.Contains(l, w) {
			return false
		}
	}
	return true
}

// MarshalJSON writes an empty set as [].
func (l Labels) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal([]string(l), jsontext.AllowInvalidUTF8(true)) // what is stored may hold broken text
}

// Value is the set's text in the store.
func (l Labels) Value() (driver.Value, error) { return strings.Join(l, ","), nil }

// Scan reads the set's text from the store.
func (l *Labels) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("labels are text in the store, not %T", src)
	}
	*l = nil
	if text != "" {
		*l = strings.Split(text, ",")
	}
	return nil
}

// Value is the run block's JSON in the store; an empty block is the empty text.
func (r Run) Value() (driver.Value, error) {
	b, err := json.Marshal(r)
	if string(b) == "{}" {
		return "", err
	}
	return string(b), err
}

// Scan reads the run block from the store.
func (r *Run) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("a run block is text in the store, not %T", src)
	}
	*r = Run{}
	if text == "" {
		return nil
	}
	if json.Unmarshal([]byte(text), r) != nil {
		// An agent whose block can't be read counts as having none, which its sessions then
		// say; an error would break every list that the agent is in.
		*r = Run{}
	}
	return nil
}
