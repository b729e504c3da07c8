package api

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// SessionFilter narrows a list of sessions; empty fields don't narrow.
type SessionFilter struct {
	Agent    string   // id or slug
	Statuses []Status // any of these
	Trigger  Trigger
	Query    string // part of title or prompt
	Since    Time   // created at or after
	Archived bool   // archived ones too
	Unlanded bool   // only ended ones with changes that nobody has landed or discarded
	ThreadID ThreadID
	RetryOf  SessionID

	// What only the query language has; see [ParseSessionQuery].

	Words        []string // each of them is part of title or prompt
	IDs          []SessionID
	Worker       string // name or id
	Code         string // of its error
	Until        Time   // created before
	Took         Range  // microseconds from its start to its end, or until now; 0 before it starts
	CostMicros   Range  // millionths of a US dollar
	Tokens       Range  // in and out
	Tries        Range
	OnlyArchived bool
	Kept         bool
	Marked       bool // only complete ones that are no plain success
}

// Range is from the least to the most, both of them in it. The zero Range is everything.
type Range struct {
	Min, Max int64
	Set      bool
}

// Bounds are the least and the most.
func (r Range) Bounds() (least, most int64) {
	if !r.Set {
		return math.MinInt64, math.MaxInt64
	}
	return r.Min, r.Max
}

// Texts are the texts that title or prompt must have, in lower case.
func (f SessionFilter) Texts() []string {
	var out []string
	for _, text := range append(slices.Clone(f.Words), f.Query) {
		if text != "" {
			out = append(out, strings.ToLower(text))
		}
	}
	return out
}

// Narrows reports whether a list may have to look at thousands of sessions to find those of the
// filter: not so when it only names an agent, a conversation or the sessions themselves.
func (f SessionFilter) Narrows() bool {
	return f.Query != "" || len(f.Words) > 0 || f.Trigger != "" || len(f.Statuses) > 0 || !f.Since.IsZero() || f.Worker != "" || f.Code != "" ||
		!f.Until.IsZero() || f.Took.Set || f.CostMicros.Set || f.Tokens.Set || f.Tries.Set || f.OnlyArchived || f.Kept || f.Marked
}

// And is what both filters ask for. Clash names a field that they contradict each other in, in the words of
// the query language, "" for none: with "status", nothing can match.
func (f SessionFilter) And(g SessionFilter) (out SessionFilter, clash string) {
	out = f
	text := func(name string, field *string, other string) {
		if *field != "" && other != "" && *field != other {
			clash = name
		}
		*field = cmp.Or(other, *field)
	}
	text("agent", &out.Agent, g.Agent)
	text("worker", &out.Worker, g.Worker)
	text("by", (*string)(&out.Trigger), string(g.Trigger))
	text("code", &out.Code, g.Code)
	if out.ThreadID != 0 && g.ThreadID != 0 && out.ThreadID != g.ThreadID {
		clash = "thread"
	}
	out.ThreadID, out.RetryOf = cmp.Or(g.ThreadID, f.ThreadID), cmp.Or(g.RetryOf, f.RetryOf)
	if g.Since.After(f.Since.Time) {
		out.Since = g.Since
	}
	if f.Until.IsZero() || (!g.Until.IsZero() && g.Until.Before(f.Until.Time)) {
		out.Until = g.Until
	}
	out.Words, out.IDs = append(slices.Clone(f.Words), g.Words...), append(slices.Clone(f.IDs), g.IDs...)
	if out.Query = f.Query; g.Query != "" && f.Query != "" {
		out.Words = append(out.Words, g.Query)
	} else {
		out.Query = cmp.Or(f.Query, g.Query)
	}
	out.Took, out.CostMicros = f.Took.and(g.Took), f.CostMicros.and(g.CostMicros)
	out.Tokens, out.Tries = f.Tokens.and(g.Tokens), f.Tries.and(g.Tries)
	out.Archived, out.OnlyArchived = f.Archived || g.Archived, f.OnlyArchived || g.OnlyArchived
	out.Unlanded, out.Kept, out.Marked = f.Unlanded || g.Unlanded, f.Kept || g.Kept, f.Marked || g.Marked
	if out.Statuses = append(slices.Clone(f.Statuses), g.Statuses...); len(f.Statuses) > 0 && len(g.Statuses) > 0 {
		out.Statuses = slices.DeleteFunc(slices.Clone(f.Statuses), func(s Status) bool { return !slices.Contains(g.Statuses, s) })
		if len(out.Statuses) == 0 {
			clash = "status"
		}
	}
	return out, clash
}

func (r Range) and(o Range) Range {
	switch {
	case !r.Set:
		return o
	case !o.Set:
		return r
	}
	return Range{Min: max(r.Min, o.Min), Max: min(r.Max, o.Max), Set: true}
}
