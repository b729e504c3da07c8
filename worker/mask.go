package worker

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"sync"

	"stint/api"
)

const maskText = "***"

func longestFirst(secrets [][]byte) [][]byte {
	slices.SortFunc(secrets, func(a, b []byte) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return bytes.Compare(a, b)
	})
	return slices.CompactFunc(secrets, bytes.Equal)
}

// hushed is a set of secrets that can grow.
type hushed struct {
	mu  sync.Mutex
	all [][]byte // never changed, only replaced; guarded by mu
}

func (h *hushed) now() [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

func (h *hushed) add(secrets [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = longestFirst(slices.Concat(h.all, secrets))
}

// told are the answers to secret questions that this process knows, in all forms. An agent
// session may repeat them as long as it can be resumed, which is for its whole thread.
type told struct {
	mu  sync.Mutex
	all map[api.ThreadID][][]byte // never changed, only replaced; guarded by mu
}

func (t *told) add(thread api.ThreadID, secrets [][]byte) {
	if len(secrets) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[api.ThreadID][][]byte{}
	}
	t.all[thread] = longestFirst(slices.Concat(t.all[thread], secrets))
}

func (t *told) in(thread api.ThreadID) [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[thread]
}

// forms are the ways in which a secret is written: as it is, within JSON, HTML and URLs, in
// hex, and in base64 at whatever offset it starts. Base64 characters that neighbouring bytes
// share aren't looked for: at most one at each end.
func forms(v string) [][]byte {
	out := [][]byte{[]byte(v), []byte(hex.EncodeToString([]byte(v)))}
	out = append(out, bytes.ToUpper(out[1]))
	quoted := func(escape bool) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(escape)
		if e.Encode(v) == nil {
			out = append(out, bytes.Trim(bytes.TrimSpace(b.Bytes()), `"`))
		}
	}
	quoted(true)
	quoted(false)
	for _, written := range []string{url.QueryEscape(v), url.PathEscape(v), html.EscapeString(v)} {
		out = append(out, []byte(written), []byte(lowerPercent(written)))
	}
	for before := range 3 { // bytes before it in its group of three
		whole := append(make([]byte, before), v...)
		from, to := (before*8+5)/6, len(whole)*8/6
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			out = append(out, []byte(alphabet.EncodeToString(whole)[from:to]))
		}
	}
	for i := range out {
		out[i] = viewOf(nil, out[i], breaks).text // as it is searched for
	}
	return slices.DeleteFunc(out, func(form []byte) bool { return len(form) < secretLeast })
}

// lowerPercent writes the digits behind percent signs as some programs do.
func lowerPercent(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}
