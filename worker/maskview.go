package worker

import (
	"bytes"
	"slices"
)

// view is a text as it is searched for secrets: without line breaks, perhaps without terminal
// codes, and behind a lead that isn't part of it.
type view struct {
	text   []byte
	cuts   []cutOut // by from; none where nothing was left out
	broken int      // how much of text comes before the last line break
	open   bool     // it ends within a terminal code
}

// cutOut says how much further back a byte stands in the original than in the view, from one
// byte on.
type cutOut struct{ from, gone int }

// original is where a byte of the view stands in the text, less than 0 for one of the lead.
func (v view) original(i int) int {
	n, found := slices.BinarySearchFunc(v.cuts, i, func(c cutOut, i int) int { return c.from - i })
	if !found {
		n--
	}
	if n < 0 {
		return i
	}
	return i + v.cuts[n].gone
}

const (
	escape    = 0x1b
	breaks    = "\r\n"
	andEscape = breaks + "\x1b"
)

// viewsOf are all views of a text. What looks like a code may have a secret behind it,
// which only the view with the codes shows.
func viewsOf(lead, buf []byte) []view {
	out := []view{viewOf(lead, buf, breaks)}
	if bytes.IndexByte(buf, escape) >= 0 {
		out = append(out, viewOf(lead, buf, andEscape))
	}
	return out
}

// viewOf leaves out what begins with one of some characters: breaks, and codes if the escape
// character is among them.
func viewOf(lead, buf []byte, without string) view {
	if len(lead) == 0 && !bytes.ContainsAny(buf, without) {
		return view{text: buf}
	}
	v := view{text: append(make([]byte, 0, len(lead)+len(buf)), lead...), broken: len(lead)}
	v.cuts = append(v.cuts, cutOut{0, -len(lead)})
	for i := 0; i < len(buf); {
		n := bytes.IndexAny(buf[i:], without)
		if n < 0 {
			n = len(buf) - i
		}
		v.text, i = append(v.text, buf[i:i+n]...), i+n
		if i == len(buf) {
			break
		}
		n = 1
		if buf[i] == escape {
			n, v.open = codeLength(buf[i:])
		} else {
			v.broken = len(v.text)
		}
		if n == 0 { // no code
			v.text, i = append(v.text, buf[i]), i+1
			continue
		}
		i += n
		v.leftOut(i)
	}
	return v
}

// leftOut notes the place of the byte of the text that comes next.
func (v *view) leftOut(at int) {
	c := cutOut{len(v.text), at - len(v.text)}
	if n := len(v.cuts); n > 0 && v.cuts[n-1].from == c.from {
		v.cuts = v.cuts[:n-1]
	}
	v.cuts = append(v.cuts, c)
}

const longestCode = 256 // bytes; anything longer is text

// codeLength is the length of the terminal code whose escape character b begins with, 0 when
// it is none. One that is cut at b's end reaches there, and is open.
func codeLength(b []byte) (n int, open bool) {
	if len(b) == 1 {
		return 1, true
	}
	b = b[:min(len(b), longestCode)]
	cut := 0
	if len(b) < longestCode {
		cut = len(b)
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] >= 0x40 && b[i] <= 0x7e:
				return i + 1, false
			case b[i] < 0x20 || b[i] > 0x3f:
				return 0, false
			}
		}
		return cut, cut > 0
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 || b[i] == '\\' && b[i-1] == escape {
				return i + 1, false
			}
		}
		return cut, cut > 0
	}
	for i := 1; i < len(b); i++ {
		switch {
		case b[i] >= 0x30 && b[i] <= 0x7e:
			return i + 1, false
		case b[i] < 0x20 || b[i] > 0x2f:
			return 0, false
		}
	}
	return cut, cut > 0
}
