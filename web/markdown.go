package web

import (
	"errors"
	"html"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// agentMarkdown turns what agents write into HTML. It is made once: its state for a text is in
// the context of one parse.
var agentMarkdown = goldmark.New(goldmark.WithParser(meteredParser()), meteredRenderers())

// agentHTML is everything that an agent's text may become, whatever the renderer produced: no
// attributes but the named ones, only links to the web, no pictures.
var agentHTML = agentPolicy()

func agentPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^heading$`)).OnElements("p")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https")
	p.AllowRelativeURLs(false)
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}

// RenderMarkdown is an agent's text as HTML that is safe in a page. HTML in the text is shown,
// never interpreted; a picture becomes its description. A text that would be expensive, or
// would grow too much, is shown as it was written.
func RenderMarkdown(text string) string {
	text = PlainText(text)
	if body, ok := markdownHTMLOf(text); ok {
		return fitted.Replace(agentHTML.Sanitize(body))
	}
	return "<pre>" + html.EscapeString(text) + "</pre>"
}

func markdownHTMLOf(source string) (string, bool) {
	if costly(source) {
		return "", false
	}
	m, pc := metered()
	root := agentMarkdown.Parser().Parse(text.NewReader([]byte(source)), parser.WithContext(pc))
	if m.over() || tooLarge(root) {
		return "", false
	}
	body := bounded{most: markdownHTML}
	if agentMarkdown.Renderer().Render(&body, []byte(source), root) != nil {
		return "", false
	}
	return body.String(), true
}

// maxBrackets bounds what is parsed as Markdown: the time to match brackets grows with the
// square of their number.
const maxBrackets = 1000

// deep is a line that begins quotes and lists more than thirty levels deep: the
// time to parse them grows with the square of the levels.
var deep = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])){31}`)

// costly reports whether a text isn't parsed at all.
func costly(text string) bool {
	return len(text) > markdownText || strings.Count(text, "[") > maxBrackets || deep.MatchString(text)
}

// errTooLarge ends what would exceed its bound.
var errTooLarge = errors.New("it becomes more than a page should hold")

// bounded is text that refuses to grow beyond a number of bytes.
type bounded struct {
	strings.Builder

	most int
}

// Write appends, or refuses all of p.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errTooLarge
	}
	return b.Builder.Write(p)
}

// sanitizer renders what doesn't belong in a page around the text: headings (the page has its
// own), pictures, and HTML.
type sanitizer struct{}

// RegisterFuncs names the nodes that are rendered here.
func (sanitizer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, err := w.WriteString(`<p class="heading">`)
			return ast.WalkContinue, err
		}
		_, err := w.WriteString("</p>\n")
		return ast.WalkContinue, err
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		segments := n.(*ast.RawHTML).Segments
		for i := range segments.Len() {
			at := segments.At(i)
			if _, err := w.WriteString(html.EscapeString(string(at.Value(source)))); err != nil {
				return ast.WalkStop, err
			}
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block := n.(*ast.HTMLBlock)
		var text strings.Builder
		for i := range block.Lines().Len() {
			at := block.Lines().At(i)
			text.Write(at.Value(source))
		}
		if block.HasClosure() {
			text.Write(block.ClosureLine.Value(source))
		}
		_, err := w.WriteString("<pre><code>" + html.EscapeString(text.String()) + "</code></pre>\n")
		return ast.WalkSkipChildren, err
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		word := "]"
		if entering {
			word = "[picture: "
		}
		_, err := w.WriteString(word)
		return ast.WalkContinue, err
	})
}

// codeHTML is text in which every space counts. The lines of a diff carry classes; their own +
// and - distinguish them without colour too.
func codeHTML(text string) string {
	if !isDiff(text) {
		return html.EscapeString(text)
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		body, end := strings.TrimSuffix(line, "\n"), ""
		if body != line {
			end = "\n"
		}
		if class := diffClass(body); class != "" {
			out.WriteString(`<span class="` + class + `">` + html.EscapeString(body) + "</span>" + end)
			continue
		}
		out.WriteString(html.EscapeString(line))
	}
	return out.String()
}

var diffHead = regexp.MustCompile(`(?m)^(@@ -\d+|diff --git |\*\*\* (Add|Update|Delete) File: )`)

func isDiff(text string) bool { return diffHead.MatchString(text) }

func diffClass(line string) string {
	switch {
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "*** "):
		return "hunk"
	case strings.HasPrefix(line, "+"):
		return "add"
	case strings.HasPrefix(line, "-"):
		return "del"
	}
	return ""
}
