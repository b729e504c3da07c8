package api

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible spells out every character of a text that a screen wouldn't show, or
// would show as something else: escape sequences, zero widths, turned directions,
// odd spaces. Line ends and tabs stay. What a person is asked to approve is shown
// so: nothing may hide in it.
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
