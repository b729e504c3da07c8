package api

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExcerpt_FitsAndStaysText(t *testing.T) {
	for _, word := range []string{"x", "ż", "…", "🙂"} {
		for most := range 700 {
			for _, n := range []int{0, most / len(word), most/len(word) + 1, 3 * most, 900} {
				text := strings.Repeat(word, n)
				got := Excerpt(text, most)
				switch {
				case len(got) > most || !utf8.ValidString(got):
					t.Fatalf("%d of %q, at most %d bytes: %d bytes %q", n, word, most, len(got), got)
				case len(text) <= most && got != text:
					t.Fatalf("%q fits into %d and became %q", text, most, got)
				case len(text) > most && most >= 240 && !strings.Contains(got, "bytes left out"):
					t.Fatalf("%q doesn't say that something is left out", got)
				}
			}
		}
	}
}
