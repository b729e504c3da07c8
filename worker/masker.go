package worker

import (
	"bytes"
	"slices"
)

// wrapLeast is how many bytes of a secret a line must end with for it to be held back until
// the next one comes; below that, a line of output is shown at once.
const wrapLeast = 4

// masker replaces secrets in a stream that comes in pieces. It holds back the end of a piece
// as long as that may be the beginning of a secret, so that a secret that is cut in two is
// still found. A secret with terminal codes in it is found too, and so is one that is broken
// into lines, as base64, xxd -p and fold do it. contract 10.10, 10.11
type masker struct {
	secrets [][]byte
	carry   []byte
	lead    []byte // the beginning of a secret, shorter than wrapLeast, that was shown right before carry
}

// write returns what may be shown of the stream so far and hasn't been yet.
func (m *masker) write(piece []byte) []byte {
	if len(m.secrets) == 0 {
		return piece
	}
	buf := append(m.carry, piece...)
	views := viewsOf(m.lead, buf)
	hits := m.hits(views)
	hold, lead := m.begun(views, len(buf))
	if len(buf)-hold > 1<<10+32*len(m.secrets[0]) {
		hold = len(buf) // endless codes or breaks; nobody reads a secret in them
	}
	for again := true; again; { // a secret that reaches into the held part is held whole
		again = false
		for _, h := range hits {
			if h.end > hold && h.start < hold {
				hold, again = h.start, true
			}
		}
	}
	out := cover(buf[:hold], hits)
	if hold > 0 || len(buf) == 0 {
		m.lead = lead
	}
	m.carry = append([]byte(nil), buf[hold:]...)
	return out
}

// rest returns what was held back, once the stream has ended.
func (m *masker) rest() []byte {
	buf, views := m.carry, viewsOf(m.lead, m.carry)
	m.carry, m.lead = nil, nil
	return cover(buf, m.hits(views))
}

// maskString masks a whole text.
func maskString(s string, secrets [][]byte) string {
	m := masker{secrets: secrets}
	return string(cover([]byte(s), m.hits(viewsOf(nil, []byte(s)))))
}

type span struct{ start, end int }

// hits are the secrets in the text of the views, by start, overlapping ones too.
func (m *masker) hits(views []view) []span {
	var hits []span
	for _, v := range views {
		for _, s := range m.secrets {
			for from := 0; ; {
				i := bytes.Index(v.text[from:], s)
				if i < 0 {
					break
				}
				i += from
				hits = append(hits, span{max(0, v.original(i)), v.original(i+len(s)-1) + 1})
				from = i + 1
			}
		}
	}
	slices.SortFunc(hits, func(a, b span) int { return a.start - b.start })
	return hits
}

// begun is where the earliest beginning of a secret starts that reaches the end, size bytes
// from the start. A short one with a line's end in it is shown, and becomes the lead.
func (m *masker) begun(views []view, size int) (hold int, lead []byte) {
	hold = size
	for _, v := range views {
		at := m.holdFrom(v.text)
		if at == len(v.text) {
			continue
		}
		if begun := v.text[at:]; len(begun) < wrapLeast && v.broken > at && !v.open {
			lead = bytes.Clone(begun)
			continue
		}
		hold = min(hold, max(0, v.original(at)))
	}
	if hold == size {
		return hold, lead
	}
	for _, v := range views { // what is held reveals nothing that could be shown
		hold = min(hold, max(0, v.original(m.holdFrom(v.text))))
	}
	return hold, nil
}

// holdFrom is where the earliest beginning of a secret starts that reaches the end of buf.
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
