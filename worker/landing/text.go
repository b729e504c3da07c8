package landing

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"stint/api"
)

// longest bounds the bytes of what is shown of a path.
const longest = 4000

// Quoted is a path as people read it: as it is or, where it isn't UTF-8 or holds characters that
// control more than they show, as git quotes it.
func Quoted(path string) string {
	if utf8.ValidString(path) && api.Unbroken(path) && len(path) <= longest {
		return path
	}
	var out strings.Builder
	out.WriteByte('"')
	for i := 0; i < len(path) && out.Len() < longest; i++ {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case strings.IndexByte("\a\b\t\n\v\f\r", c) >= 0:
			out.WriteByte('\\')
			out.WriteByte("abtnvfr"[strings.IndexByte("\a\b\t\n\v\f\r", c)])
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&out, `\%03o`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// valid makes UTF-8 without NUL of a text.
func valid(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// mostWords bounds what is told of what a program printed.
const mostWords = 2 << 10

// credential is what stands before the host in an address.
var credential = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s'"@]*@`)

// words makes what a program printed fit to be shown: without the place's paths, credentials in
// addresses and control characters.
func (p Place) words(text string, more ...string) string {
	text = credential.ReplaceAllString(valid(text), "$1")
	for _, path := range append(more, p.Path, p.Repository, p.Scratch, lastValue(p.Env, "HOME")) {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path && len(real) > 1 {
			text = strings.ReplaceAll(text, real, "…")
		}
		if len(path) > 1 {
			text = strings.ReplaceAll(text, path, "…")
		}
	}
	text = strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, text)
	return api.CutAt(strings.TrimSpace(text), mostWords)
}

func lastValue(env []string, name string) (value string) {
	for _, assignment := range env {
		if v, ok := strings.CutPrefix(assignment, name+"="); ok {
			value = v
		}
	}
	return value
}
