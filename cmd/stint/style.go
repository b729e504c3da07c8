package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"stint/api"
)

// styles colours words for one stream; the zero value leaves them as they are.
type styles struct{ on bool }

func (s styles) sgr(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s styles) quiet(text string) string { return s.sgr("2", text) }
func (s styles) good(text string) string  { return s.sgr("32", text) }
func (s styles) bad(text string) string   { return s.sgr("31", text) }

// look is what distinguishes a status even without colour: glyph, then word, then colour.
type look struct{ glyph, sgr string }

var looks = map[api.Status]look{
	api.Pending:       {"◌", "35"},
	api.Queued:        {"○", "2"},
	api.Active:        {"●", "34"},
	api.AwaitingInput: {"?", "33;1"},
	api.Complete:      {"✓", "32"},
	api.Failed:        {"✗", "31"},
	api.Stale:         {"!", "33"},
	api.Cancelled:     {"⊘", "2"},
}

// status is the status as people see it on a terminal.
func (s styles) status(st api.Status) string {
	l := looks[st]
	return s.sgr(l.sgr, l.glyph+" "+string(st))
}

// worker is a worker's state as people see it on a terminal.
func (s styles) worker(st api.WorkerState) string {
	switch st {
	case api.Online:
		return s.good("● online")
	case api.WorkerStale:
		return s.sgr("33", "! stale")
	default:
		return s.quiet("○ " + string(st))
	}
}

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// wantsColor decides whether a stream is coloured: the flag, then NO_COLOR and
// CLICOLOR_FORCE, then what the stream is.
func wantsColor(flag string, tty bool, env func(string) string) bool {
	switch {
	case flag == colorAlways:
		return true
	case flag == colorNever, env("NO_COLOR") != "":
		return false
	case env("CLICOLOR_FORCE") != "" && env("CLICOLOR_FORCE") != "0":
		return true
	case env("TERM") == "dumb":
		return false
	}
	return tty
}

// isTerminal reports whether a stream is a person's terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is a terminal's width in columns, 80 where that isn't known.
func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
			return cols
		}
	}
	return 80
}
