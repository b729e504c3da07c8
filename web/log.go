package web

import (
	"html"
	"strings"
)

// Log is what [LogView] draws.
type Log struct {
	Blocks      []LogBlock
	Empty       string // shown when nothing has been printed yet
	EarlierURL  string // "" when the first line is shown
	LaterURL    string // "" when the last line is shown
	DownloadURL string
	Live        bool // more may come, and the view follows it
}

// LogBlock is a run of whole output lines under one anchor. Output that ends without a line
// break leaves its block open: what comes next replaces the block with one that has the same
// anchor, so that progress bars overwrite themselves as they do in a terminal.
type LogBlock struct {
	Anchor string // unique in the page, and stable: links to it stay valid
	Mark   string // beside the first line, such as the time since the start
	Class  string // err for what went to standard error, said for what isn't output
	Lines  []string
}

// html is written by hand, not as a template: within a log every space counts.
func (b LogBlock) html() string {
	var out strings.Builder
	out.WriteString(`<div id="` + html.EscapeString(b.Anchor) + `"`)
	if b.Class != "" {
		out.WriteString(` class="` + html.EscapeString(b.Class) + `"`)
	}
	out.WriteString(">")
	mark := b.Mark
	for _, line := range b.Lines {
		out.WriteString(`<p data-n="` + html.EscapeString(mark) + `"><span>` + line + `</span></p>`)
		mark = ""
	}
	out.WriteString("</div>")
	return out.String()
}
