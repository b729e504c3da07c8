package web

import (
	"bytes"
	"html"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// agentMarkdown turns what agents write into HTML. It is made once: it holds no state.
var agentMarkdown = goldmark.New(
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)), extension.Strikethrough,
		extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})),
	),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(tamed{}, 1))),
)

// agentHTML is all that an agent's text may become, whatever the renderer made
// of it: no attributes but those named, links to the web alone, no pictures.
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

// RenderMarkdown is an agent's text as HTML that is safe to stand in a page.
// HTML in the text is shown, never taken; a picture becomes its description.
// A text that would cost much to parse is shown as it was written.
func RenderMarkdown(text string) string {
	text = PlainText(text)
	var body bytes.Buffer
	if costly(text) || agentMarkdown.Convert([]byte(text), &body) != nil {
		return "<pre>" + html.EscapeString(text) + "</pre>"
	}
	return fitted.Replace(agentHTML.Sanitize(body.String()))
}

// maxBrackets bounds what is parsed as Markdown: the time to match brackets grows
// with the square of their number.
const maxBrackets = 1000

// deep is a line that begins quotes and lists more than thirty levels deep: the
// time to parse them grows with the square of the levels.
var deep = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])){31}`)

func costly(text string) bool {
	return strings.Count(text, "[") > maxBrackets || deep.MatchString(text)
}

// tamed renders what mustn't be in somebody else's page: headings (the page has
// its own), pictures, and HTML.
type tamed struct{}

// RegisterFuncs names the nodes that are rendered here.
func (tamed) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
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

// codeHTML is text in which every space counts. The lines of a diff carry
// classes; their own + and - tell them apart without colour too.
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
