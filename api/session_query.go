package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// queryWord is one part of a query: field:value, or a text without a field.
type queryWord struct {
	field, value string
	not          bool   // -field:value
	text         string // as it was written
}

// queryField is a field of the query language: how it is read into a filter, and how a filter
// writes it, "" where it says nothing about it.
type queryField struct {
	name, example string
	read          func(f *SessionFilter, w queryWord, now time.Time) error
	write         func(f *SessionFilter) string
}

var queryFields = []queryField{
	{"status", "status:error,stale", readStatuses(func(w string) []Status {
		if s := Status(strings.ReplaceAll(strings.ToLower(w), "-", "_")); slices.Contains(Statuses, s) {
			return []Status{s}
		}
		return nil
	}, "a status: "+commas(Statuses)), func(f *SessionFilter) string { return commas(f.Statuses) }},
	{"phase", "phase:running", readStatuses(func(w string) []Status { return Phase(w).Statuses() }, "a phase: pending, running, complete, failed"), nil},
	{"agent", "agent:deps", func(f *SessionFilter, w queryWord, _ time.Time) error { return once(&f.Agent, w.value) }, func(f *SessionFilter) string { return f.Agent }},
	{"worker", "worker:desk", func(f *SessionFilter, w queryWord, _ time.Time) error { return once(&f.Worker, w.value) }, func(f *SessionFilter) string { return f.Worker }},
	{"by", "by:scheduler", readTrigger, func(f *SessionFilter) string { return string(f.Trigger) }},
	{"since", "since:7d", readWhen(func(f *SessionFilter) *Time { return &f.Since }), func(f *SessionFilter) string { return f.Since.String() }},
	{"until", "until:2026-11-30", readWhen(func(f *SessionFilter) *Time { return &f.Until }), func(f *SessionFilter) string { return f.Until.String() }},
	{"took", "took:>10m", readRange(func(f *SessionFilter) *Range { return &f.Took }, microsOf), writeRange(func(f *SessionFilter) Range { return f.Took }, 1_000_000, lengthOf)},
	{"cost", "cost:>0.5", readRange(func(f *SessionFilter) *Range { return &f.CostMicros }, dollars), writeRange(func(f *SessionFilter) Range { return f.CostMicros }, 1000, dollarsOf)},
	{"tokens", "tokens:>100k", readRange(func(f *SessionFilter) *Range { return &f.Tokens }, amount), writeRange(func(f *SessionFilter) Range { return f.Tokens }, 1, wholeNumber)},
	{"tries", "tries:>1", readRange(func(f *SessionFilter) *Range { return &f.Tries }, amount), writeRange(func(f *SessionFilter) Range { return f.Tries }, 1, wholeNumber)},
	{"code", "code:TIMEOUT", func(f *SessionFilter, w queryWord, _ time.Time) error {
		return once(&f.Code, strings.ToUpper(w.value))
	}, func(f *SessionFilter) string { return f.Code }},
	{"is", "is:archived", readIs, nil},
	{"id", "id:ID", readIDs, func(f *SessionFilter) string { return commaIDs(f.IDs) }},
	{"thread", "thread:ID", func(f *SessionFilter, w queryWord, _ time.Time) error {
		return f.ThreadID.UnmarshalText([]byte(w.value))
	}, func(f *SessionFilter) string { return f.ThreadID.String() }},
}

// queryIs are what is: can say of a session.
var queryIs = []struct {
	name string
	of   func(*SessionFilter) *bool
}{
	{"archived", func(f *SessionFilter) *bool { return &f.OnlyArchived }},
	{"kept", func(f *SessionFilter) *bool { return &f.Kept }},
	{"marked", func(f *SessionFilter) *bool { return &f.Marked }},
	{"unlanded", func(f *SessionFilter) *bool { return &f.Unlanded }},
}

// QueryFields are the fields of the query language, each with an example.
func QueryFields() []string {
	out := make([]string, len(queryFields))
	for i, f := range queryFields {
		out[i] = f.example
	}
	return out
}

// What a query may have: bytes, texts to find in title or prompt, and ids.
const (
	MaxQuery      = 2000
	MaxQueryTexts = 4
	MaxQueryIDs   = 50
)

// ParseSessionQuery reads a query such as
//
//	status:error agent:deps since:7d cost:>1 "out of memory"
//
// Its parts are all true of a session; a text without a field is part of its title or prompt, or
// its id. A minus before a status is any other. Times without a zone are in now's. An error is
// an [Error] with a field "query" for each part that can't be read.
func ParseSessionQuery(text string, now time.Time) (SessionFilter, error) {
	var f SessionFilter
	var bad Invalid
	if len(text) > MaxQuery {
		bad.Add("query", fmt.Sprintf("must have at most %d bytes", MaxQuery))
		return f, bad.Err()
	}
	for _, w := range queryWords(text) {
		if err := readWord(&f, w, now); err != nil {
			bad.Add("query", strconv.Quote(w.text)+": "+err.Error())
		}
	}
	if len(f.Texts()) > MaxQueryTexts {
		bad.Add("query", fmt.Sprintf("has more than %d texts; put those that belong together in quotes", MaxQueryTexts))
	}
	if len(f.IDs) > MaxQueryIDs {
		bad.Add("query", fmt.Sprintf("names more than %d sessions", MaxQueryIDs))
	}
	return f, bad.Err()
}

// WithoutFields is a query without the parts that begin with some fields, or are one such as
// is:unlanded, the rest as it was written.
func WithoutFields(text string, fields ...string) string {
	var out []string
	for _, w := range queryWords(text) {
		if w.field == "" || !slices.Contains(fields, w.field) && !slices.Contains(fields, w.field+":"+w.value) {
			out = append(out, w.text)
		}
	}
	return strings.Join(out, " ")
}

func readWord(f *SessionFilter, w queryWord, now time.Time) error {
	if w.field == "" {
		var id SessionID
		if err := id.UnmarshalText([]byte(w.value)); err == nil && w.value != "" {
			f.IDs = append(f.IDs, id)
			return nil
		}
		f.Words = append(f.Words, w.value)
		return nil
	}
	i := slices.IndexFunc(queryFields, func(q queryField) bool { return q.name == w.field })
	if i < 0 {
		return noField(w)
	}
	if w.value == "" {
		return fmt.Errorf("says nothing after the colon; write it like %s", queryFields[i].example)
	}
	if w.not && w.field != "status" && w.field != "phase" {
		return fmt.Errorf("a minus is possible before status and phase only")
	}
	return queryFields[i].read(f, w, now)
}

// noField refuses a field that there isn't: with the one that was probably meant, or else with
// all.
func noField(w queryWord) error {
	for _, q := range queryFields {
		if strings.HasPrefix(w.field, q.name) || len(w.field) > 1 && strings.HasPrefix(q.name, w.field) || oneSlip(w.field, q.name) {
			return fmt.Errorf("there is no field %s: did you mean %s? A text is put in quotes", w.field, q.example)
		}
	}
	return fmt.Errorf("there is no field %s; write %s, or put the text in quotes", w.field, strings.Join(QueryFields(), ", "))
}

// oneSlip reports whether one letter too many, missing, wrong or swapped with the next makes the
// difference.
func oneSlip(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) < 2 && len(b) < 2 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// queryWords splits a query at its spaces, but not within quotes. A quote that never closes
// reaches to the end.
func queryWords(text string) (out []queryWord) {
	var w queryWord
	var value strings.Builder
	begun, quoted, plain := false, false, true // plain: no quote so far, so a colon ends a field
	start := 0
	end := func(at int) {
		if begun {
			w.value, w.text = value.String(), text[start:at]
			out = append(out, w)
		}
		w, begun, plain = queryWord{}, false, true
		value.Reset()
	}
	for i, r := range text {
		switch {
		case !quoted && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			end(i)
			continue
		case !begun:
			begun, start = true, i
		}
		switch {
		case r == '"':
			quoted, plain = !quoted, false
		case r == ':' && plain && w.field == "" && isField(value.String()):
			w.field, w.not = strings.CutPrefix(strings.ToLower(value.String()), "-")
			value.Reset()
		default:
			value.WriteRune(r)
		}
	}
	end(len(text))
	return slices.DeleteFunc(out, func(w queryWord) bool { return w.field == "" && w.value == "" })
}

// isField reports whether something before a colon is meant as a field: letters, perhaps after
// a minus. So a time or a path with a colon is a text.
func isField(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text != "" && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz") == ""
}

// QueryText is a filter as a query that means the same, but for RetryOf and for archived ones too.
func (f SessionFilter) QueryText() string {
	var out []string
	for _, field := range queryFields {
		if field.write == nil {
			continue
		}
		if value := field.write(&f); value != "" {
			out = append(out, field.name+":"+quoteWord(value))
		}
	}
	for _, is := range queryIs {
		if *is.of(&f) {
			out = append(out, "is:"+is.name)
		}
	}
	for _, text := range append(slices.Clone(f.Words), f.Query) {
		if text != "" {
			out = append(out, quoteText(text))
		}
	}
	return strings.Join(out, " ")
}

// quoteText writes a text so that it is read as one, whatever is in it but quotes.
func quoteText(text string) string {
	before, _, colon := strings.Cut(text, ":")
	if colon && isField(before) {
		return `"` + strings.ReplaceAll(text, `"`, "") + `"`
	}
	return quoteWord(text)
}

func quoteWord(text string) string {
	if strings.ContainsAny(text, " \t\r\n") {
		return `"` + strings.ReplaceAll(text, `"`, "") + `"`
	}
	return strings.ReplaceAll(text, `"`, "")
}
