package agent

import "fmt"

// longText is how much, in bytes, is kept of each text in a line that is over maxLine, while
// there is room. A session keeps less than that of any text.
const longText = 256 << 10

// tooLongToJudge refuses a request of which a part was left out: neither the policy nor a
// person can approve what they don't see.
const tooLongToJudge = "this request is too long to be judged: ask for less at once"

// cutWords tells people that a line of a program was cut.
func cutWords(program string, cut int64) string {
	return fmt.Sprintf("%s said a line of more than %d MiB; %d bytes of long texts in it were left out.", program, maxLine>>20, cut)
}

// lostWords tells people that a line of a program was skipped.
func lostWords(program string) string {
	return fmt.Sprintf("%s said a line of more than %d MiB that can't be made shorter; it was passed over.", program, maxLine>>20)
}

// cutter shortens a line of JSON that is too long to hold, as it comes: it keeps the beginning
// of each long text in it, with a mark. Given JSON it writes JSON, unless it gets full.
type cutter struct {
	out     []byte
	cut     int64 // bytes that were left out
	text    bool  // inside a text
	escaped bool  // after its backslash
	hex     int   // digits of an escape that are still to come
	limit   int   // how much of the text is kept, in bytes
	written int   // bytes of the text that were kept
	over    bool  // the rest of the text is left out
	dropped int64 // … this much of it so far
}

// write takes the next piece of the line.
func (c *cutter) write(piece []byte) {
	for _, b := range piece {
		if c.full() {
			return
		}
		c.take(b)
	}
}

// full reports whether what is kept is still too long. Then it is not JSON.
func (c *cutter) full() bool { return len(c.out) > maxLine }

// room is how much is kept of a text that begins now. It shrinks as the line fills, so that a
// great many medium-sized texts leave room for the rest of their line.
func (c *cutter) room() int {
	switch {
	case len(c.out) < maxLine/2:
		return longText
	case len(c.out) < maxLine*3/4:
		return 4 << 10
	}
	return 64
}

func (c *cutter) take(b byte) {
	switch {
	case !c.text:
		if b == '"' {
			c.text, c.limit, c.written, c.dropped, c.over = true, c.room(), 0, 0, false
		}
		c.out = append(c.out, b)
		return
	case c.hex > 0:
		c.hex--
	case c.escaped:
		c.escaped = false
		if b == 'u' {
			c.hex = 4
		}
	case b == '"':
		if c.text = false; c.dropped > 0 {
			c.out = fmt.Appendf(c.out, " [%d bytes of this text were left out]", c.dropped)
		}
		c.out = append(c.out, b)
		return
	default:
		c.escaped = b == '\\'
		if c.written >= c.limit && b&0xC0 != 0x80 { // no character and no escape is cut in two
			c.over = true
		}
	}
	if c.over {
		c.dropped++
		c.cut++
		return
	}
	c.written++
	c.out = append(c.out, b)
}
