package worker

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"stint/api"
	"stint/worker/proc"

	"github.com/charmbracelet/x/ansi"
)

// texts makes valid text from a stream of bytes that comes in pieces: a character that was cut
// is joined again, invalid UTF-8 becomes U+FFFD. contract 6.2
type texts struct{ carry []byte }

// write returns the text of the stream so far that hasn't been returned yet.
func (t *texts) write(piece []byte) string {
	buf := piece
	if len(t.carry) > 0 {
		buf = append(t.carry, piece...)
	}
	n := proc.WholeRunes(buf)
	out := toText(buf[:n])
	t.carry = append([]byte(nil), buf[n:]...)
	return out
}

// rest returns the part of a cut character that is left at the stream's end.
func (t *texts) rest() string {
	out := toText(t.carry)
	t.carry = nil
	return out
}

// toText replaces invalid bytes, and NULs, which not every store accepts in a text.
func toText(b []byte) string {
	if bytes.IndexByte(b, 0) >= 0 {
		b = bytes.ReplaceAll(b, []byte{0}, []byte("\uFFFD"))
	}
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	out.Grow(len(b) + 16)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		out.WriteRune(r)
		b = b[n:]
	}
	return out.String()
}

// cut splits text into parts of at most most bytes, at ends of lines where there are any in
// the second half, and never within a character.
func cut(text string, most int) []string {
	var out []string
	for len(text) > most {
		n := strings.LastIndexByte(text[:most], '\n') + 1
		if n < most/2 {
			n = len(api.CutAt(text, most))
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return append(out, text)
}

// tail keeps the last bytes of a text that comes in pieces.
type tail struct {
	most int
	text []byte
	cut  bool
}

func (t *tail) add(s string) {
	t.text = append(t.text, s...)
	if len(t.text) > 4*t.most {
		t.trim()
	}
}

func (t *tail) trim() {
	if over := len(t.text) - t.most; over > 0 {
		t.text = append([]byte(nil), t.text[over:]...)
		t.cut = true
	}
}

// String is the end of the text, from the beginning of a line, without terminal codes.
func (t *tail) String() string {
	t.trim()
	text := string(t.text)
	if t.cut {
		if i := strings.IndexByte(text, '\n'); i >= 0 && i < len(text)-1 {
			text = text[i+1:]
		}
		text = strings.ToValidUTF8(text, "")
	}
	return strings.TrimSpace(ansi.Strip(text))
}

// lastLines returns up to n last lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
