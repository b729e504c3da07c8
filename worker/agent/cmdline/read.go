// Package cmdline reads command lines as a shell would, without running them, for whoever has
// to judge what an agent wants to start. It answers two questions that must not be mixed up.
// [Write] takes a line apart as it is written: only that can carry a permission, so it believes
// nothing that it doesn't see. [Read] finds what a line may amount to, however it is put: that
// is what a refusal is held against, so where it isn't sure it says so.
//
// It knows neither rules nor agents. contract 10.4
package cmdline

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Line is what a command line may run and write.
type Line struct {
	Acts   []Act
	Writes []string // files that its redirections write, with the runes of [Act.Words]
	// Unclear says why the acts may not be all, "" if they are: a line that can't be parsed, a
	// command whose name is made up as it runs, a shell fed with what nobody can read.
	Unclear string

	loose int // how many acts are loose
}

// Act is a command that a line may run.
type Act struct {
	Text string // the command as it is written, with what starts it
	// Words are the program and its arguments without quotes. Three runes stand for what can't
	// be known before it runs: … for any text, ⋯ for the value of a variable that the line
	// doesn't set, ∗ for names of files.
	Words []string
	// Sure is false where it may not be a command at all, such as a value of an option of what
	// starts it.
	Sure bool
	// Loose says that it stands among the arguments of a program of which nothing is known. It is
	// what a pattern names only if that names more than a program: any word may be the name of one.
	Loose bool
}

// The runes of [Act.Words].
const (
	unknown   = '…'
	inherited = '⋯'
	globbed   = '∗'
	wildRunes = "…⋯∗"
)

const (
	maxDepth = 8    // sh -c within sh -c, wrappers within wrappers
	maxActs  = 2000 // more than any line that somebody wrote
)

// The reasons for which a line can't be judged.
const (
	unparsed   = "it can't be read as shell"
	madeUp     = "the name of a command is only known when it runs"
	fedUnknown = "a shell reads commands that can't be seen"
	justMade   = "it runs what it has just made"
	tooDeep    = "it is too deep or too long"
)

// Read finds what a line of bash may run.
func Read(text string) Line {
	r := &reader{out: &Line{}, made: map[string]bool{}, ran: map[string]bool{}}
	r.script(text, source{})
	for name := range r.ran {
		if r.made[name] {
			r.unclear(justMade)
		}
	}
	return *r.out
}

// Quote is the line of a program and its arguments, each word as it is.
func Quote(argv []string) string {
	out := make([]string, len(argv))
	for i, w := range argv {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil { // a NUL: no program can be given one
			q = "''"
		}
		out[i] = q
	}
	return strings.Join(out, " ")
}

// reader reads one script, and those within it, which share all but what is read.
type reader struct {
	out   *Line
	made  map[string]bool // base names of files that the line writes
	ran   map[string]bool // base names of the programs and scripts that it runs
	depth int

	vars    variables
	inputs  map[*syntax.Stmt]source
	lenient bool // it is no more than a guess that the text is shell
	loose   bool // and that it is a command, see [Act.Loose]
}

// source is where a command's standard input comes from; the zero value is elsewhere.
type source struct {
	given bool
	from  *syntax.Stmt // it is what this one prints
	doc   *syntax.Word // it is this here-document or here-string
	text  string       // it is this
	known bool         // text is
}

func (r *reader) unclear(why string) {
	if r.out.Unclear == "" && !r.lenient {
		r.out.Unclear = why
	}
}

// within is a reader for a script in this one.
func (r *reader) within() *reader {
	return &reader{out: r.out, made: r.made, ran: r.ran, depth: r.depth + 1, vars: r.vars, lenient: r.lenient, loose: r.loose}
}

// guess reads a text that is probably shell: if it isn't, nothing follows.
func (r *reader) guess(text string) {
	in := r.within()
	in.lenient = true
	in.script(text, source{})
}

func (r *reader) script(text string, stdin source) {
	if r.depth > maxDepth {
		r.unclear(tooDeep)
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		r.unclear(unparsed)
		return
	}
	r.vars = r.vars.with(file, func(stmt *syntax.Stmt) (string, bool) { return r.printed(stmt, 0) })
	r.inputs = map[*syntax.Stmt]source{}
	r.feed(file, stdin)
	r.feeds(file)
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			for _, redirect := range node.Redirs {
				r.redirect(redirect)
			}
			if call, ok := node.Cmd.(*syntax.CallExpr); ok {
				r.call(call, r.inputs[node])
			}
		case *syntax.TestClause:
			r.conditions(node)
		case *syntax.LetClause:
			r.lets(node)
		case *syntax.DeclClause: // its values may be commands of programs, see call
			r.assigned(node.Args)
		}
		return true
	})
}

// feeds notes what each command of a script reads.
func (r *reader) feeds(file syntax.Node) {
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.BinaryCmd:
			if node.Op == syntax.Pipe || node.Op == syntax.PipeAll {
				r.feed(node.Y, source{given: true, from: node.X})
			}
		case *syntax.Stmt:
			for _, redirect := range node.Redirs {
				switch redirect.Op {
				case syntax.Hdoc, syntax.DashHdoc:
					r.feed(node, source{given: true, doc: redirect.Hdoc})
				case syntax.WordHdoc:
					r.feed(node, source{given: true, doc: redirect.Word})
				case syntax.RdrIn, syntax.DplIn, syntax.RdrInOut:
					r.feed(node, source{given: true})
				}
			}
		}
		return true
	})
}

// feed gives a command and all within it a standard input.
func (r *reader) feed(node syntax.Node, in source) {
	if !in.given {
		return
	}
	syntax.Walk(node, func(node syntax.Node) bool {
		if stmt, ok := node.(*syntax.Stmt); ok {
			r.inputs[stmt] = in
		}
		return true
	})
}

// input is the text that a source gives, false when it can't be known.
func (r *reader) input(in source, depth int) (string, bool) {
	switch {
	case in.known:
		return in.text, true
	case depth > maxDepth:
		return "", false
	case in.doc != nil:
		texts := r.vars.texts(in.doc)
		if len(texts) != 1 || strings.ContainsAny(texts[0], wildRunes) {
			return "", false
		}
		return texts[0], true
	case in.from != nil:
		return r.printed(in.from, depth+1)
	}
	return "", false
}

// printed is what a command prints, false for those whose output isn't written out.
func (r *reader) printed(stmt *syntax.Stmt, depth int) (string, bool) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe {
			return r.printed(cmd.Y, depth)
		}
	case *syntax.CallExpr:
		all := r.vars.fields(cmd.Args)
		if len(all) != 1 || len(all[0]) == 0 || strings.ContainsAny(strings.Join(all[0], ""), wildRunes) {
			return "", false
		}
		words := all[0]
		switch path.Base(words[0]) {
		case "echo":
			return echoed(words[1:])
		case "printf":
			return formatted(words[1:])
		case "cat":
			if len(words) == 1 || len(words) == 2 && words[1] == "-" {
				in, ok := r.inputs[stmt]
				if !ok {
					in = own(stmt)
				}
				return r.input(in, depth)
			}
		}
	}
	return "", false
}

// own is the here-document of a command, read without the rest of its script.
func own(stmt *syntax.Stmt) source {
	for _, redirect := range slices.Backward(stmt.Redirs) {
		switch redirect.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			return source{given: true, doc: redirect.Hdoc}
		case syntax.WordHdoc:
			return source{given: true, doc: redirect.Word}
		}
	}
	return source{}
}

// call reads a simple command.
func (r *reader) call(call *syntax.CallExpr, stdin source) {
	r.assigned(call.Assigns)
	if len(call.Args) == 0 {
		return
	}
	for _, words := range r.vars.fields(call.Args) {
		if len(words) > 0 {
			r.run(start{words: words, text: printedNode(call), stdin: stdin, sure: true, set: call.Assigns})
		}
	}
}

// assigned reads the values of variables that programs start as commands, such as GIT_EDITOR.
func (r *reader) assigned(assigns []*syntax.Assign) {
	for _, a := range assigns {
		if a.Value == nil {
			continue
		}
		for _, text := range r.vars.texts(a.Value) {
			r.expanded(text)
			if a.Name != nil {
				text = a.Name.Value + "=" + text
			}
			r.exported(text)
		}
	}
}

func startsCommands(name string) bool {
	if slices.Contains(commandVariables, name) {
		return true
	}
	return strings.HasSuffix(name, "EDITOR") || strings.HasSuffix(name, "PAGER") || strings.HasSuffix(name, "ASKPASS")
}

// redirect notes the file that a redirection writes.
func (r *reader) redirect(redirect *syntax.Redirect) {
	if !writes(redirect) {
		return
	}
	for _, words := range r.vars.fields([]*syntax.Word{redirect.Word}) {
		for _, name := range words {
			if !slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"}, name) {
				r.out.Writes = append(r.out.Writes, name)
				r.make(name)
			}
		}
	}
}

// writes reports whether a redirection writes what its word names, if that is a file.
func writes(redirect *syntax.Redirect) bool {
	switch redirect.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.AppClob, syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob, syntax.RdrInOut:
		return true
	case syntax.DplOut: // >&2 or >&file
		return strings.Trim(redirect.Word.Lit(), "0123456789-") != "" || redirect.Word.Lit() == ""
	}
	return false
}

func printedNode(node syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, node); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}
