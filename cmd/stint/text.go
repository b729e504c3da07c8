package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"stint/api"
)

// plain is [api.SafeLine].
func plain(text string) string { return api.SafeLine(text) }

// tidy is plain for our own text that contains other people's words: our colours stay.
func tidy(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		seq, _, n, _ := ansi.DecodeSequence(text, ansi.NormalState, nil)
		if n == 0 {
			break
		}
		text = text[n:]
		if isColor(seq) {
			b.WriteString(seq)
		} else {
			b.WriteString(plain(seq))
		}
	}
	return b.String()
}

// firstLine is the first line with anything on it, safe to show.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(plain(line)); line != "" {
			return line
		}
	}
	return ""
}

// opening is the first line of a text, with a word on how many there are.
func opening(text string) string {
	n := 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	if n < 2 {
		return firstLine(text)
	}
	return fmt.Sprintf("%s … (%d lines; --json has all)", firstLine(text), n)
}

// keep says how much of an agent's escape sequences reaches the reader.
type keep int

const (
	keepText  keep = iota // none
	keepColor             // only colour and weight: nothing that moves, writes titles or the clipboard
	keepAll               // every byte as it was printed
)

// output writes an agent's output for a reader. Sequences may be cut anywhere
// between two writes.
type output struct {
	w     io.Writer
	keep  keep
	cut   string // the beginning of a sequence whose end has not come yet
	dirty bool   // colour was set and not yet reset
}

// longestCut bounds what is held back for the end of a sequence.
const longestCut = 4096

// write passes on as much of text as the reader wants.
func (o *output) write(text string) error {
	if o.keep == keepAll {
		_, err := io.WriteString(o.w, text)
		return err
	}
	text, o.cut = o.cut+text, ""
	var b strings.Builder
	b.Grow(len(text))
	for len(text) > 0 {
		seq, _, n, state := ansi.DecodeSequence(text, ansi.NormalState, nil)
		if n == 0 {
			break
		}
		if n == len(text) && state != ansi.NormalState {
			if len(seq) <= longestCut {
				o.cut = seq
			}
			break
		}
		text = text[n:]
		switch {
		case isText(seq):
			b.WriteString(strings.Map(forward, seq))
		case o.keep == keepColor && isColor(seq):
			o.dirty = seq != "\x1b[0m" && seq != "\x1b[m"
			b.WriteString(seq)
		}
	}
	_, err := io.WriteString(o.w, b.String())
	return err
}

// forward leaves out what changes the direction of the text after it.
func forward(r rune) rune {
	if unicode.Is(unicode.Bidi_Control, r) {
		return -1
	}
	return r
}

// close leaves the terminal as it was.
func (o *output) close() error {
	o.cut = ""
	if !o.dirty {
		return nil
	}
	o.dirty = false
	_, err := io.WriteString(o.w, "\x1b[0m")
	return err
}

// isText reports whether seq is readable text or moves to the next line or column.
func isText(seq string) bool {
	r, _ := utf8.DecodeRuneInString(seq)
	return r == '\n' || r == '\t' || r == '\r' || r >= ' ' && (r < 0x7f || r >= 0xa0)
}

// isColor reports whether seq is CSI … m with nothing but digits and separators between.
func isColor(seq string) bool {
	body, ok := strings.CutPrefix(seq, "\x1b[")
	if !ok || !strings.HasSuffix(body, "m") {
		return false
	}
	return strings.Trim(body[:len(body)-1], "0123456789;:") == ""
}
