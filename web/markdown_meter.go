package web

import (
	"bytes"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// What one text may cost as Markdown. Costs are counted, not timed: the same text is always
// drawn the same way, however busy the machine is.
const (
	markdownText  = 64 << 10  // bytes that are read as Markdown at all
	markdownSteps = 100 << 20 // of about a nanosecond each, for what costs more than its length
	markdownCells = 10_000    // of tables, including those that a short row leaves empty
	markdownPipes = 300       // written \| in the code of cells: the time grows with their square
	markdownNodes = 60_000
	markdownHTML  = 1 << 20 // bytes
)

// meter counts what a text costs while it is parsed. Once the limit is passed, the parsers
// find nothing any more, so that they end soon, and what was parsed is dropped.
type meter struct {
	steps, cells, pipes int

	parent ast.Node // the block whose inline parts are parsed
	before []byte   // its delimiters: what can only open, or 0
}

var meterKey = parser.NewContextKey()

// metered is the parser's context with a fresh meter in it.
func metered() (*meter, parser.Context) {
	m, pc := &meter{}, parser.NewContext()
	pc.Set(meterKey, m)
	return m, pc
}

func meterOf(pc parser.Context) *meter { return pc.Get(meterKey).(*meter) }

func (m *meter) over() bool {
	return m.steps > markdownSteps || m.cells > markdownCells || m.pipes > markdownPipes
}

// meteredParser is goldmark's, each part of it counting.
func meteredParser() parser.Parser {
	blocks := parser.DefaultBlockParsers()
	for i := range blocks {
		blocks[i].Value = meteredBlock{blocks[i].Value.(parser.BlockParser)}
	}
	inlines := append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewLinkifyParser(extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})), addresses),
	)
	for i := range inlines {
		inlines[i].Value = meteredInlineOf(inlines[i])
	}
	return parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(inlines...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(), util.Prioritized(meteredTables{}, 200))...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// meteredRenderers draw what meteredParser finds beyond plain Markdown.
func meteredRenderers() goldmark.Option {
	return goldmark.WithRendererOptions(renderer.WithNodeRenderers(
		util.Prioritized(sanitizer{}, 1),
		util.Prioritized(extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
	))
}

// What it costs to ask whether a block begins at a place, and whether an open one continues at
// a line. All open ones are asked at each line: deep nesting costs the product, in memory too.
const (
	openStep     = 100
	continueStep = 400
)

type meteredBlock struct{ parser.BlockParser }

// Open counts and passes on.
func (b meteredBlock) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	m := meterOf(pc)
	m.steps += openStep
	if m.over() {
		return nil, parser.NoChildren
	}
	return b.BlockParser.Open(parent, reader, pc)
}

// Continue counts and passes on.
func (b meteredBlock) Continue(node ast.Node, reader text.Reader, pc parser.Context) parser.State {
	m := meterOf(pc)
	m.steps += continueStep
	if m.over() {
		return parser.Close
	}
	return b.BlockParser.Continue(node, reader, pc)
}

// addresses is the priority of the parser that looks for addresses in plain text.
const addresses = 999

type meteredInline struct {
	parser.InlineParser

	ahead func(line []byte) int // what it costs to look for something and not find it
}

// meteredLink also passes on what only the parser of links needs.
type meteredLink struct {
	meteredInline

	closer parser.CloseBlocker
}

func meteredInlineOf(p util.PrioritizedValue) parser.InlineParser {
	in := meteredInline{InlineParser: p.Value.(parser.InlineParser), ahead: func([]byte) int { return 1 }}
	if p.Priority == addresses {
		in.ahead = addressCost
	}
	if c, ok := p.Value.(parser.CloseBlocker); ok {
		return meteredLink{in, c}
	}
	return in
}

// CloseBlock passes on.
func (l meteredLink) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	l.closer.CloseBlock(parent, block, pc)
}

// Parse counts and passes on.
func (p meteredInline) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	m := meterOf(pc)
	if m.over() {
		return nil
	}
	if m.parent != parent {
		m.parent, m.before = parent, m.before[:0]
	}
	line, at := block.PeekLine()
	m.steps += p.ahead(line)
	node := p.InlineParser.Parse(parent, block, pc)
	switch n := node.(type) {
	case *parser.Delimiter:
		m.steps += m.delimiter(n)
	case *ast.Text: // a run of backticks that nothing closes: the whole block was searched
		m.steps += 2 * restOf(parent, at)
	case nil:
		switch {
		case line[0] == '<' && len(line) > 1 && isLetter(line[1]):
			m.steps += 50 * tagLength(parent, block, at)
		case line[0] == ']':
			m.steps += 5 * restOf(parent, at)
		}
	}
	return node
}

// delimiter is what it costs to find the partner of a * or _ or ~: the steps back through
// those before it, which are kept as the parser keeps them. What only opens is found by what
// only closes; whether anything else finds a partner depends on more, so the worst case, none,
// is assumed.
func (m *meter) delimiter(d *parser.Delimiter) int {
	const step = 16
	if !d.CanClose {
		opens := byte(0)
		if d.CanOpen {
			opens = d.Char
		}
		m.before = append(m.before, opens)
		return step
	}
	if !d.CanOpen && d.Char != '~' {
		if at := bytes.LastIndexByte(m.before, d.Char); at >= 0 {
			cost := step * (len(m.before) - at)
			m.before = m.before[:at]
			return cost
		}
	}
	m.before = append(m.before, 0)
	return step * len(m.before)
}

// addressCost is what it costs to check whether a word is an address. Web addresses are
// matched by a regular expression with a long bounded repeat.
func addressCost(line []byte) int {
	word := line
	if c := line[0]; c == ' ' || c == '*' || c == '_' || c == '~' || c == '(' {
		word = line[1:]
	}
	n := 0
	for n < len(word) && word[n] > ' ' && word[n] < 0x7f && word[n] != '<' && word[n] != '>' {
		n++
	}
	if bytes.HasPrefix(word, []byte("http")) || bytes.HasPrefix(word, []byte("www.")) {
		return 3*n + 100*min(n, 300)
	}
	return 3*n + 20
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// tagLength is how far something that began as a tag may have been read: to the next tag's
// begin or end, or to the end of the block where quotes may hide those.
func tagLength(parent ast.Node, block text.Reader, at text.Segment) int {
	rest := restOf(parent, at)
	source := block.Source()[at.Start:min(at.Start+rest, len(block.Source()))]
	n := bytes.IndexAny(source[min(1, len(source)):], "<>")
	if n < 0 {
		return rest
	}
	if bytes.ContainsAny(source[:n+1], "\"'") {
		return rest
	}
	return n + 1
}

// restOf is how much of a block's text comes after a place in it.
func restOf(parent ast.Node, at text.Segment) int {
	if parent.Type() != ast.TypeBlock {
		return at.Len()
	}
	lines := parent.Lines()
	if lines == nil || lines.Len() == 0 {
		return at.Len()
	}
	return max(at.Len(), lines.At(lines.Len()-1).Stop-at.Start)
}

// meteredTables makes tables of paragraphs unless they have too many cells: a
// row of one letter costs as many as the table has columns.
type meteredTables struct{}

// Transform counts what the table would have, and passes on.
func (meteredTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	m, lines := meterOf(pc), node.Lines()
	columns := 0
	for i := range lines.Len() {
		at := lines.At(i)
		line := at.Value(reader.Source())
		if columns == 0 && i > 0 && delimiterRow(line) {
			columns = bytes.Count(line, []byte("|")) + 1
			m.cells += columns
		}
		if columns > 0 {
			m.cells += columns
			m.pipes += bytes.Count(line, []byte(`\|`))
		}
		if m.over() {
			return
		}
	}
	extension.NewTableParagraphTransformer().Transform(node, reader, pc)
}

// delimiterRow reports whether a line may be the one between a table's head and its rows.
func delimiterRow(line []byte) bool {
	return bytes.IndexByte(line, '-') >= 0 && len(bytes.Trim(line, "|-: \t\r\n\f\v")) == 0
}

// tooLarge reports whether drawing a parsed text would make more of it than a page should
// hold: an address that is written once may be used a thousand times.
func tooLarge(root ast.Node) bool {
	nodes, size := 0, 0
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		nodes++
		switch n := n.(type) {
		case *ast.Link:
			size += len(n.Destination) + len(n.Title)
		case *ast.Image:
			size += len(n.Destination) + len(n.Title)
		case *east.TableCell:
			size += len("<td></td>\n")
		}
		if nodes > markdownNodes || size > markdownHTML/3 {
			return ast.WalkStop, errTooLarge
		}
		return ast.WalkContinue, nil
	})
	return err != nil
}
