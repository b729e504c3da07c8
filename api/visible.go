package api

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible spells out every character of a text that a screen wouldn't show, or would show as
// something else: escape sequences, zero widths, changes of direction, odd spaces. Line ends
// and tabs stay. What a person is asked to approve is shown this way: nothing may hide in it.
func Visible(text string) string {
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case r == '\n', r == '\t', r == ' ':
			out.WriteRune(r)
		case r < 0x20, r == 0x7f:
			fmt.Fprintf(&out, `\x%02x`, r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Z, r), unicode.Is(unicode.Co, r):
			fmt.Fprintf(&out, `\u{%x}`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// Unbroken reports whether a text stays on its line, on a page and on a terminal: nothing in
// it ends the line, moves the cursor, or changes the direction of what follows. Paths and
// commands are such texts.
func Unbroken(text string) bool {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") || breaks(r) {
			return false
		}
	}
	return true
}

func breaks(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// OneLine reports whether a text can be in a line among others: it is [Unbroken], and nothing
// in it is invisible, so that two that look the same are the same. Names and titles are such
// texts.
func OneLine(text string) bool {
	return Unbroken(text) && Line(text) == text
}

// Line turns a text into one that [OneLine] accepts: terminal sequences and invisible
// characters are left out, line ends and tabs become spaces.
func Line(text string) string {
	if plain(text) {
		return text
	}
	runes := []rune(strings.ToValidUTF8(sequence.ReplaceAllString(text, ""), "\uFFFD"))
	var out strings.Builder
	last := rune(0) // of what is kept
	for i, r := range runes {
		next := rune(0)
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		switch {
		case r == '\n', r == '\r', r == '\t', r == '\u2028', r == '\u2029':
			r = ' '
		case breaks(r), unseenAlways(r), joins(r) && !(shapes(last) && shapes(next)), unicode.Is(unicode.Variation_Selector, r) && !varies(last):
			continue
		}
		out.WriteRune(r)
		last = r
	}
	return out.String()
}

// plain says that a text is printable ASCII, as most are.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

var sequence = regexp.MustCompile(`\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~])`)

// unseenAlways are characters that never show, whatever stands beside them.
func unseenAlways(r rune) bool {
	return !joins(r) && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point)
}

// joins reports whether r shapes the letters, or the pictures, on either side of it.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// shapes reports whether a character can look different beside a joiner. In scripts whose
// letters aren't joined it can't.
func shapes(r rune) bool {
	if r < 0x80 || unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Georgian, unicode.Hebrew, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) {
		return false
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.So, unicode.Sk)
}

// varies reports whether a variation selector behind a character changes its look.
func varies(r rune) bool {
	return r == '#' || r == '*' || r >= '0' && r <= '9' || r > 0x7f && unicode.In(r, unicode.L, unicode.S, unicode.P) && !unicode.Is(unicode.Latin, r)
}

// BareURL is a URL in the form that may be shown: without the name and password that it may
// hold. One that can't be read loses everything before its last @.
func BareURL(text string) string {
	u, err := url.Parse(text)
	if err == nil && u.Host != "" {
		if u.User == nil {
			return text
		}
		u.User = nil
		return u.String()
	}
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	if scheme, _, found := strings.Cut(text[:at], "://"); found {
		return scheme + "://…" + text[at:]
	}
	return "…" + text[at:]
}
