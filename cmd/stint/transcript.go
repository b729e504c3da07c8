package main

import (
	"strings"

	"stint/api"
)

// talkMarks begin the lines of what isn't an agent's own text. What isn't here gets no line.
var talkMarks = map[api.ItemKind]string{
	api.ItemToolCall:       "→ ",
	api.ItemToolResult:     "✓ ",
	api.ItemMessage:        "> ",
	api.ItemPrompt:         "? ",
	api.ItemPromptResolved: "= ",
	api.ItemStatus:         "· ",
	api.ItemLateResult:     "late: ",
}

// spoken is an item of a conversation as lines of text: what the agent said unchanged, the
// rest on one line each. The output of a command stays unchanged, and so does everything for
// those who want every byte or JSON.
func (p *printer) spoken(item api.Item) api.Item {
	if item.Stream != "" || p.out.keep == keepAll || p.c.flags.json {
		return item
	}
	mark := talkMarks[item.Kind]
	switch item.Kind {
	case api.ItemToolCall:
		item.Text = mark + strings.TrimSpace(plain(item.Tool)+" "+oneLine(item.Text))
	case api.ItemToolResult:
		if item.Failed {
			mark = "✗ "
		}
		item.Text = mark + oneLine(item.Text)
	case api.ItemText:
		if item.Text == "" {
			return item
		}
	default:
		item.Text = mark + oneLine(item.Text)
	}
	if !strings.HasSuffix(item.Text, "\n") {
		item.Text += "\n"
	}
	item.Kind = api.ItemText // from here on it is text
	return item
}

// longestLine bounds how much of a tool's input or result a line shows.
const longestLine = 160

// oneLine is text on one line of limited length.
func oneLine(text string) string {
	if len(text) > 4*longestLine {
		text = strings.ToValidUTF8(text[:4*longestLine], "") + "…"
	}
	line := strings.Join(strings.Fields(plain(text)), " ")
	if runes := []rune(line); len(runes) > longestLine {
		return string(runes[:longestLine-1]) + "…"
	}
	return line
}
