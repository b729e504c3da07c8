package worker

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

const (
	maskText    = "***"
	secretLeast = 6 // bytes; shorter values would blot out ordinary words
)

// looksSecret reports whether a variable of that name is taken to hold a secret.
func looksSecret(name string) bool {
	name = strings.ToUpper(name)
	for _, part := range []string{"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "APIKEY"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	for _, word := range strings.Split(name, "_") {
		switch word {
		case "KEY", "AUTH", "COOKIE", "DSN", "PAT", "PASS":
			return true
		}
	}
	return false
}

// passwordIn is the password of a URL such as postgres://user:password@host/, "" where there is none.
func passwordIn(value string) string {
	if !strings.Contains(value, "://") {
		return ""
	}
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// secretsOf picks the values that must not appear in any output: those of the
// variables whose names say so, and extra ones. The longest come first.
func secretsOf(env []string, extra ...string) [][]byte {
	var out [][]byte
	add := func(v string) {
		if v = strings.TrimSpace(v); len(v) >= secretLeast {
			out = append(out, []byte(v))
		}
	}
	for _, v := range extra {
		add(v)
	}
	for _, assignment := range env {
		name, value, ok := strings.Cut(assignment, "=")
		if ok && looksSecret(name) {
			add(value)
		}
		if ok {
			add(passwordIn(value))
		}
	}
	slices.SortFunc(out, func(a, b []byte) int { return len(b) - len(a) })
	return slices.CompactFunc(out, bytes.Equal)
}

// masker replaces secrets in a stream that comes in pieces. It holds back the
// end of a piece as long as that may be the beginning of a secret, so that a
// cut within one hides nothing. contract 10.10
type masker struct {
	secrets [][]byte
	carry   []byte
}

// write returns what may be shown of the stream so far and hasn't been yet.
func (m *masker) write(piece []byte) []byte {
	if len(m.secrets) == 0 {
		return piece
	}
	buf := append(m.carry, piece...)
	hits := m.find(buf)
	hold := m.holdFrom(buf)
	for again := true; again; { // a secret that reaches into what is held is held whole
		again = false
		for _, h := range hits {
			if h.end > hold && h.start < hold {
				hold, again = h.start, true
			}
		}
	}
	out := cover(buf[:hold], hits)
	m.carry = append([]byte(nil), buf[hold:]...)
	return out
}

// rest returns what was held back when the stream has ended.
func (m *masker) rest() []byte {
	buf := m.carry
	m.carry = nil
	return cover(buf, m.find(buf))
}

// maskString masks a whole text.
func maskString(s string, secrets [][]byte) string {
	m := masker{secrets: secrets}
	return string(cover([]byte(s), m.find([]byte(s))))
}

type span struct{ start, end int }

// find returns every occurrence of every secret, overlapping ones too, by start.
func (m *masker) find(buf []byte) []span {
	var hits []span
	for _, s := range m.secrets {
		for from := 0; ; {
			i := bytes.Index(buf[from:], s)
			if i < 0 {
				break
			}
			hits = append(hits, span{from + i, from + i + len(s)})
			from += i + 1
		}
	}
	slices.SortFunc(hits, func(a, b span) int { return a.start - b.start })
	return hits
}

// holdFrom is where the first beginning of a secret starts that reaches the end of buf.
func (m *masker) holdFrom(buf []byte) int {
	hold := len(buf)
	for _, s := range m.secrets {
		for i := max(0, len(buf)-len(s)+1); i < hold; i++ {
			if bytes.HasPrefix(s, buf[i:]) {
				hold = i
				break
			}
		}
	}
	return hold
}

// cover replaces each run of overlapping spans that begins in buf.
func cover(buf []byte, hits []span) []byte {
	if len(hits) == 0 {
		return buf
	}
	out := make([]byte, 0, len(buf))
	at := 0
	for i := 0; i < len(hits) && hits[i].start < len(buf); {
		run := hits[i]
		for i++; i < len(hits) && hits[i].start < run.end; i++ {
			run.end = max(run.end, hits[i].end)
		}
		out = append(out, buf[at:run.start]...)
		out = append(out, maskText...)
		at = min(run.end, len(buf))
	}
	return append(out, buf[at:]...)
}
