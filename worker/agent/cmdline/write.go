package cmdline

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Written is a command line as it is written: what a permission may be given for.
type Written struct {
	Commands []Command
	Opaque   bool // not readable as shell, or commands are made as it runs
}

// Command is one simple command of a line.
type Command struct {
	Text    string
	Literal bool     // its program's name is written out
	Inner   []string // what it starts in turn: behind sudo, env, xargs …

	words []string // "" for those that aren't literal
}

// Write takes a command line apart. Each command of it needs a permission of its own.
func Write(text string) Written {
	var out Written
	out.parse(text, 0)
	return out
}

func (l *Written) parse(text string, depth int) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || depth > maxDepth {
		l.Opaque = true
		return
	}
	before := len(l.Commands)
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			l.call(node, depth)
		case *syntax.DeclClause, *syntax.LetClause, *syntax.ArithmCmd, *syntax.TestClause, *syntax.CoprocClause:
			l.Commands = append(l.Commands, Command{Text: printedNode(node), Literal: true})
		case *syntax.FuncDecl:
			l.Opaque = true // from here on its name may stand for any program
		case *syntax.Redirect:
			l.redirect(node)
		}
		return true
	})
	if len(l.Commands) == before {
		l.Opaque = true
	}
}

func (l *Written) call(call *syntax.CallExpr, depth int) {
	if len(call.Args) == 0 { // only assignments; substitutions in them are walked
		l.Commands = append(l.Commands, Command{Text: printedNode(call), Literal: true})
		return
	}
	c := Command{Text: printedNode(call)}
	for _, w := range call.Args {
		c.words = append(c.words, literal(w))
	}
	c.Literal = c.words[0] != ""
	if !c.Literal {
		l.Opaque = true
		l.Commands = append(l.Commands, c)
		return
	}
	if len(call.Assigns) > 0 {
		c.Inner = append(c.Inner, joined(call.Args))
	}
	words := c.words
	for skip := wrapping(words); skip > 0 && skip < len(words); skip = wrapping(words) {
		words = words[skip:]
	}
	if len(words) < len(c.words) { // options may have values: any tail of it may be the command
		for i := 1; i < len(call.Args); i++ {
			c.Inner = append(c.Inner, joined(call.Args[i:]))
		}
	}
	name := path.Base(words[0])
	switch {
	case words[0] == "" || name == "eval" || name == "source" || name == ".":
		l.Opaque = true
	case slices.Contains(shells, name):
		l.shell(words, depth)
	}
	c.words = words
	l.Commands = append(l.Commands, c)
}

// shell follows sh -c TEXT; what a shell reads elsewhere is unknown.
func (l *Written) shell(words []string, depth int) {
	if script, ok := shellScript(words); ok {
		l.parse(script, depth+1)
		return
	}
	l.Opaque = true
}

// shellScript is the text after sh -c.
func shellScript(words []string) (script string, ok bool) {
	if len(words) == 0 || !slices.Contains(shells, path.Base(words[0])) {
		return "", false
	}
	for i, w := range words[1:] {
		if !strings.HasPrefix(w, "-") || strings.HasPrefix(w, "--") {
			break // --norc is an option too, and may be followed by others
		}
		if strings.HasSuffix(w, "c") && i+2 < len(words) && words[i+2] != "" {
			return words[i+2], true
		}
	}
	return "", false
}

// Unwrap is the command line that a shell is started for, as in bash -lc '…', or the text itself.
func Unwrap(text string) string {
	line := Write(text)
	if len(line.Commands) == 0 {
		return text
	}
	// The innermost come first; the line's own command is the last.
	last := line.Commands[len(line.Commands)-1]
	// What is set for the shell, or starts it, counts too.
	if inner, ok := shellScript(last.words); ok && len(last.Inner) == 0 && inner == last.words[len(last.words)-1] && last.Text == strings.TrimSpace(text) {
		return inner
	}
	return text
}

// wrapping is the number of words before the command that a wrapper starts, 0 when the first
// word isn't one.
func wrapping(words []string) int {
	name := path.Base(words[0])
	switch name {
	case "sudo", "doas", "env", "nohup", "nice", "ionice", "setsid", "stdbuf", "time", "command", "exec", "builtin", "xargs", "timeout", "watch":
	default:
		return 0
	}
	i := 1
	for i < len(words) && words[i] != "" && (strings.HasPrefix(words[i], "-") || name == "env" && strings.Contains(words[i], "=")) {
		i++
	}
	if name == "timeout" || name == "nice" && i > 1 && i < len(words) && digits(words[i]) {
		i++
	}
	return i
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789.") == "" }

// redirect looks at the file that a redirection writes.
func (l *Written) redirect(r *syntax.Redirect) {
	if writes(r) && literal(r.Word) == "" {
		l.Opaque = true
	}
}

// literal is the value of a word that means the same whenever it runs, "" for others.
func literal(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(part.Value))
		case *syntax.SglQuoted:
			if part.Dollar {
				return ""
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(lit.Value)
			}
		default:
			return ""
		}
	}
	return b.String()
}

// unescaped is a text without the backslashes that keep what follows them from being special.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func joined(words []*syntax.Word) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = printedNode(w)
	}
	return strings.Join(out, " ")
}
