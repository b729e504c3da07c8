package web

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	terminal "github.com/buildkite/terminal-to-html/v3"
	"github.com/charmbracelet/x/ansi"
)

// What a page shows of one text that a process printed. Of a longer one, the beginning and the
// end are shown, and what is left out between them is counted.
const (
	ansiLines = 2000
	ansiBytes = 1 << 20 // of HTML
)

// A screen holds this many rows before it drops the oldest. One line of 64 KiB without a break
// is 410 of them.
const (
	screenLines   = 500
	screenColumns = 160 // the library's own
)

// RenderANSI turns what a process printed into lines of HTML: text escaped, colour and weight
// as classes of stint.css, web links kept. Nothing that the text holds can become a script, an
// image, a style or a link to anything but http and https; invalid bytes become the
// replacement character.
//
// A line break at the end closes the last line and doesn't begin another one. Colour starts
// plain: state doesn't carry over from one call to the next.
func RenderANSI(text string) []string {
	text = strings.TrimSuffix(sanitize(text), "\n")
	if text == "" {
		return nil
	}
	drawn := bothEnds{most: ansiLines, bytes: ansiBytes}
	screen := newScreen()
	screen.ScrollOutFunc = func(line string) { drawn.add(drawnLine(strings.TrimSuffix(line, "\n"))) }
	_, _ = screen.Write([]byte(text)) // it writes to memory and never fails
	for line := range strings.SplitSeq(screen.AsHTMLWithTimestamps(false), "\n") {
		drawn.add(drawnLine(line))
	}
	return drawn.lines()
}

func drawnLine(html string) string {
	html = strings.ReplaceAll(html, `<a href="`, `<a rel="nofollow noopener noreferrer ugc" href="`)
	return strings.ReplaceAll(html, "&nbsp;", "")
}

func newScreen() *terminal.Screen {
	screen, err := terminal.NewScreen(terminal.WithMaxSize(0, screenLines))
	if err != nil {
		panic(fmt.Errorf("make a terminal screen of %d lines: %w", screenLines, err))
	}
	screen.Timestamps = false
	return screen
}

// bothEnds keeps the first and the last of many lines.
type bothEnds struct {
	most, bytes int

	head, tail         []string
	headSize, tailSize int
	dropped            int
}

func (e *bothEnds) add(line string) {
	if e.dropped == 0 && len(e.tail) == 0 && len(e.head) < e.most/2 && e.headSize+len(line) <= e.bytes/2 {
		e.head, e.headSize = append(e.head, line), e.headSize+len(line)
		return
	}
	e.tail, e.tailSize = append(e.tail, line), e.tailSize+len(line)
	for len(e.tail) > e.most/2 || e.tailSize > e.bytes/2 && len(e.tail) > 1 {
		e.tailSize -= len(e.tail[0])
		e.tail = e.tail[1:]
		e.dropped++
	}
}

// lines are the kept lines, with a note on what is missing.
func (e *bothEnds) lines() []string {
	if e.dropped == 0 {
		return append(e.head, e.tail...)
	}
	note := "… " + Count(e.dropped, "line", "lines") + " left out here; the plain text has them"
	return append(append(e.head, note), e.tail...)
}

// RenderANSILines is what a terminal would show of the end of text, line by line,
// without any colour: progress bars have overwritten themselves.
func RenderANSILines(text string) []string {
	screen := newScreen()
	_, _ = screen.Write([]byte(sanitize(text))) // it writes to memory and never fails
	return strings.Split(screen.AsPlainText(), "\n")
}

// PlainText is text without any escape sequence or control character, for downloads and
// one-line excerpts.
func PlainText(text string) string { return ansi.Strip(sanitize(text)) }

// sanitize keeps the terminal sequences that a log needs: text, line ends, colours, moves
// within what was printed and web links. Everything else is removed: images, titles, clipboard
// writes, private sequences, bare controls.
func sanitize(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	out := cleaner{links: linkBytes}
	if strings.Contains(text, "\x1b]8;") && moving.MatchString(text) {
		out.links = 0
	}
	out.Grow(len(text))
	var parser ansi.Parser
	p := &parser
	p.SetParamsSize(maxParams)
	p.SetDataSize(4096) // an address longer than this is cut, which makes it no link
	for text != "" {
		esc := strings.IndexByte(text, '\x1b')
		if esc < 0 {
			out.printable(text)
			break
		}
		out.printable(text[:esc])
		text = text[esc:]
		if overfull(text) {
			// The parser would write past its end. No program means such a sequence.
			_, _, n, _ := ansi.DecodeSequence(text, ansi.NormalState, nil)
			text = text[n:]
			continue
		}
		seq, _, n, state := ansi.DecodeSequence(text, ansi.NormalState, p)
		if state != ansi.NormalState || n == 0 {
			// It has no end: drop only the escape, so that what follows can be read.
			text = text[1:]
			continue
		}
		out.sequence(seq, p)
		text = text[n:]
	}
	return out.String()
}

const maxParams = 32

// overfull reports whether the sequence at the start of text has more parameters
// than the parser has room for.
func overfull(text string) bool {
	if len(text) < 2 || text[1] != '[' && text[1] != 'P' {
		return false
	}
	n := 1
	for _, c := range []byte(text[2:]) {
		if c < '0' || c > '?' {
			break
		}
		if c == ';' || c == ':' {
			n++
		}
		if n == maxParams {
			return true
		}
	}
	return false
}

// cleaner writes what tame keeps. The screen draws an address again at each line and change of
// colour that its link spans, so addresses have a budget.
type cleaner struct {
	strings.Builder

	links   int // bytes of addresses that may still be drawn
	address int // bytes of the open link's address; 0 = none is open
	column  int // of what is written while a link is open
}

// linkBytes is how many bytes the addresses of one text's links may take in HTML.
const linkBytes = 512 << 10

// moving matches what moves the cursor back into a line. Links in a text that does so could be
// cut into any number of pieces, so they are dropped.
var moving = regexp.MustCompile("(?:\b|\r[^\r\n]|\x1b\\[[0-9;:]*[A-G])")

// again charges one more piece of the open link, or ends it.
func (c *cleaner) again() {
	if c.address == 0 {
		return
	}
	if c.links -= c.address; c.links < 0 {
		c.address = 0
		c.WriteString("\x1b]8;;\x07")
	}
}

// printable writes text without control characters except those that move the cursor back or
// to the next line, or tabulate.
func (c *cleaner) printable(text string) {
	for _, r := range text {
		if c.address > 0 {
			if c.column++; r == '\n' || c.column%screenColumns == 0 {
				c.again()
			}
		}
		switch {
		case r == '\n', r == '\t', r == '\r', r == '\b':
			c.WriteRune(r)
		case r < ' ', r == 0x7f, r >= 0x80 && r < 0xa0:
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			// Marks that reorder text could make a line read as another one.
		default:
			c.WriteRune(r)
		}
	}
}

func (c *cleaner) sequence(seq string, p *ansi.Parser) {
	switch {
	case ansi.HasOscPrefix(seq):
		c.link(string(p.Data()))
	case ansi.HasCsiPrefix(seq):
		cmd := ansi.Cmd(p.Command())
		if cmd.Prefix() != 0 || cmd.Intermediate() != 0 {
			return
		}
		switch cmd.Final() {
		case 'm':
			c.colour(p.Params())
			c.again()
		case 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'K':
			n, _ := p.Param(0, -1)
			c.move(cmd.Final(), n)
		}
	}
}

func (c *cleaner) move(final byte, n int) {
	c.WriteString("\x1b[")
	if n >= 0 {
		c.WriteString(strconv.Itoa(n))
	}
	c.WriteByte(final)
}

// link keeps OSC 8, the hyperlink, when it leads to the web or ends one.
func (c *cleaner) link(data string) {
	parts := strings.SplitN(data, ";", 3)
	if len(parts) != 3 || parts[0] != "8" {
		return
	}
	c.address, c.column = 0, 0
	u, err := url.Parse(parts[2])
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		c.WriteString("\x1b]8;;\x07")
		return
	}
	// A semicolon would end the address for the next parser.
	address := strings.ReplaceAll(u.String(), ";", "%3B")
	c.WriteString("\x1b]8;;" + address + "\x07")
	c.address = len(address)
	c.again()
}

// colour repeats a colour sequence in the 16 colours of the palette. Those were chosen to be
// readable on the log's background; many of the 256 and of the 16 million are not, so they are
// mapped to the nearest of ours.
func (c *cleaner) colour(params ansi.Params) {
	var codes []string
	values := flat(params)
	for i := 0; i < len(values); i++ {
		v := values[i]
		if v != 38 && v != 48 {
			codes = append(codes, strconv.Itoa(v))
			continue
		}
		n, used, ok := extended(values[i+1:])
		i += used
		if ok {
			codes = append(codes, strconv.Itoa(sgrCode(n, v == 48)))
		}
	}
	c.WriteString("\x1b[" + strings.Join(codes, ";") + "m")
}

func flat(params ansi.Params) []int {
	values := make([]int, 0, len(params))
	params.ForEach(0, func(_, param int, _ bool) { values = append(values, param) })
	return values
}

// extended reads what follows 38 or 48 and returns the palette index nearest to that colour
// and how many values it took.
func extended(rest []int) (index, used int, ok bool) {
	switch {
	case len(rest) >= 2 && rest[0] == 5:
		return nearest(rgb256(rest[1])), 2, true
	case len(rest) >= 4 && rest[0] == 2:
		return nearest([3]int{rest[1], rest[2], rest[3]}), 4, true
	}
	return 0, len(rest), false
}

// sgrCode is the code that selects palette colour n.
func sgrCode(n int, background bool) int {
	code := 30 + n
	if n >= 8 {
		code = 90 + n - 8
	}
	if background {
		code += 10
	}
	return code
}

// classic is the palette that programs have in mind when they pick a colour.
var classic = [16][3]int{
	{0, 0, 0},
	{205, 0, 0},
	{0, 205, 0},
	{205, 205, 0},
	{0, 0, 238},
	{205, 0, 205},
	{0, 205, 205},
	{229, 229, 229},
	{127, 127, 127},
	{255, 0, 0},
	{0, 255, 0},
	{255, 255, 0},
	{92, 92, 255},
	{255, 0, 255},
	{0, 255, 255},
	{255, 255, 255},
}

// rgb256 is colour n of the 256: the classic 16, a cube of 6×6×6, 24 greys.
func rgb256(n int) [3]int {
	switch {
	case n >= 0 && n < 16:
		return classic[n]
	case n >= 16 && n < 232:
		n -= 16
		return [3]int{level(n / 36), level(n / 6 % 6), level(n % 6)}
	case n >= 232 && n < 256:
		grey := 8 + 10*(n-232)
		return [3]int{grey, grey, grey}
	}
	return classic[7]
}

func level(n int) int {
	if n == 0 {
		return 0
	}
	return 55 + 40*n
}

func nearest(c [3]int) int {
	best, bestDistance := 7, 1<<30
	for i, p := range classic {
		r, g, b := c[0]-p[0], c[1]-p[1], c[2]-p[2]
		if d := 3*r*r + 6*g*g + b*b; d < bestDistance {
			best, bestDistance = i, d
		}
	}
	return best
}
