package engine

import (
	"strings"
)

// listed are words as people read them.
func listed[T ~string](words []T) string {
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = string(w)
	}
	return strings.Join(text, ", ")
}

// mended puts U+FFFD into a program's texts for what no text may hold: invalid bytes and NUL.
// A worker must not lose its report because of a byte that something printed. contract 6.2
func mended(texts ...*string) {
	for _, t := range texts {
		*t = strings.ReplaceAll(strings.ToValidUTF8(*t, "\uFFFD"), "\x00", "\uFFFD")
	}
}
