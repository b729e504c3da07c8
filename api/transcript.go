package api

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// talkMarks begin the lines of what isn't an agent's own text. What isn't here gets no line.
var talkMarks = map[ItemKind]string{
	ItemToolCall:       "→ ",
	ItemToolResult:     "✓ ",
	ItemMessage:        "> ",
	ItemPrompt:         "? ",
	ItemPromptResolved: "= ",
	ItemStatus:         "· ",
	ItemLateResult:     "late: ",
}

// Told reports whether an item has text in a transcript: output, or a part of a conversation
// that gets a line.
func (i Item) Told() bool {
	return i.Kind == ItemText || i.Stream == "" && talkMarks[i.Kind] != ""
}

// Transcript is an item as text: what a command printed unchanged, what the agent said as
// whole lines, the rest on one line each; "" for what isn't told.
func (i Item) Transcript() string {
	mark := talkMarks[i.Kind]
	var text string
	switch {
	case !i.Told():
		return ""
	case i.Stream != "" || i.Text == "" && i.Kind == ItemText:
		return i.Text
	case i.Kind == ItemText:
		text = i.Text
	case i.Kind == ItemToolCall:
		text = mark + strings.TrimSpace(SafeLine(i.Tool)+" "+shortLine(i.Text))
	case i.Kind == ItemToolResult && i.Failed:
		text = "✗ " + shortLine(i.Text)
	default:
		text = mark + shortLine(i.Text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// longestLine bounds how much of a tool's input or result a line shows.
const longestLine = 160

// shortLine is text on one line of limited length.
func shortLine(text string) string {
	if len(text) > 4*longestLine {
		text = strings.ToValidUTF8(text[:4*longestLine], "") + "…"
	}
	line := strings.Join(strings.Fields(SafeLine(text)), " ")
	if runes := []rune(line); len(runes) > longestLine {
		return string(runes[:longestLine-1]) + "…"
	}
	return line
}

// SafeLine makes text that people or agents wrote safe to show on one line of a terminal: no
// escape sequences, no control characters, no line breaks, nothing that changes the direction
// of what follows.
func SafeLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0, unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, ansi.Strip(text))
}
