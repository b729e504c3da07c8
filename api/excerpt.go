package api

import (
	"fmt"
	"unicode/utf8"
)

// CutAt is the longest beginning of a text of at most n bytes that cuts no character.
func CutAt(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Excerpt is a text of at most a number of bytes: the text itself, or its head and its tail
// with a line between them that says how much is left out; for a small limit only its head.
func Excerpt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const note = 60 // bytes of the line in between, at most
	head, from := most*3/4, len(text)-most/4+note
	if most < 4*note {
		head = most
	}
	head = len(CutAt(text, head))
	if most < 4*note {
		return text[:head]
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", text[:head], from-head, text[from:])
}
