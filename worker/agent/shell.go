package agent

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line is a command line, parsed without running it.
type line struct {
	commands []command
	writes   []string // files that its redirections write
	opaque   bool     // not readable as shell, or commands are made as it runs
}

// command is one simple command of a line.
type command struct {
	text    string
	literal bool     // its program's name is written out
	inner   []string // what it starts in turn: behind sudo, env, xargs …
	words   []string // "" for those that aren't literal
}

// How deep sh -c within sh -c is followed.
const maxShellDepth = 4

// parseShell takes a command line apart.
func parseShell(text string) line {
	var out line
	out.parse(text, 0)
	return out
}

func (l *line) parse(text string, depth int) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || depth > maxShellDepth {
		l.opaque = true
		return
	}
	before := len(l.commands)
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CallExpr:
			l.call(node, depth)
		case *syntax.DeclClause, *syntax.LetClause, *syntax.ArithmCmd, *syntax.TestClause, *syntax.CoprocClause:
			l.commands = append(l.commands, command{text: printed(node), literal: true})
		case *syntax.FuncDecl:
			l.opaque = true // from here on its name may stand for any program
		case *syntax.Redirect:
			l.redirect(node)
		}
		return true
	})
	if len(l.commands) == before {
		l.opaque = true
	}
}

func (l *line) call(call *syntax.CallExpr, depth int) {
	if len(call.Args) == 0 { // only assignments; substitutions in them are walked
		l.commands = append(l.commands, command{text: printed(call), literal: true})
		return
	}
	c := command{text: printed(call)}
	for _, w := range call.Args {
		c.words = append(c.words, literal(w))
	}
	c.literal = c.words[0] != ""
	if !c.literal {
		l.opaque = true
		l.commands = append(l.commands, c)
		return
	}
	if len(call.Assigns) > 0 {
		c.inner = append(c.inner, joined(call.Args))
	}
	words := c.words
	for skip := wrapper(words); skip > 0 && skip < len(words); skip = wrapper(words) {
		words = words[skip:]
	}
	if len(words) < len(c.words) { // options may have values: any tail of it may be the command
		for i := 1; i < len(call.Args); i++ {
			c.inner = append(c.inner, joined(call.Args[i:]))
		}
	}
	name := path.Base(words[0])
	switch {
	case words[0] == "" || name == "eval" || name == "source" || name == ".":
		l.opaque = true
	case slices.Contains(shells, name):
		l.shell(words, depth)
	}
	c.words = words
	l.commands = append(l.commands, c)
}

var shells = []string{"sh", "bash", "dash", "zsh", "ksh"}

// shell follows sh -c TEXT; what a shell reads elsewhere is unknown.
func (l *line) shell(words []string, depth int) {
	if script, ok := shellScript(words); ok {
		l.parse(script, depth+1)
		return
	}
	l.opaque = true
}

// shellScript is the text after sh -c.
func shellScript(words []string) (script string, ok bool) {
	if len(words) == 0 || !slices.Contains(shells, path.Base(words[0])) {
		return "", false
	}
	for i, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			break
		}
		if strings.HasSuffix(w, "c") && i+2 < len(words) && words[i+2] != "" {
			return words[i+2], true
		}
	}
	return "", false
}

// wrapper is the number of words before the command that a wrapper starts, 0 when the first
// word isn't one.
func wrapper(words []string) int {
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

// redirect notes the file that a redirection writes.
func (l *line) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
	default:
		return
	}
	name := literal(r.Word)
	if name == "" {
		l.opaque = true
		return
	}
	if name != "/dev/null" && name != "/dev/stdout" && name != "/dev/stderr" {
		l.writes = append(l.writes, name)
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
			b.WriteString(strings.ReplaceAll(part.Value, `\`, ""))
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

func printed(node syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, node); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

func joined(words []*syntax.Word) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = printed(w)
	}
	return strings.Join(out, " ")
}

// sideEffect reports whether a command commits, pushes or publishes; connects, whether it
// talks to other machines. Both only know the usual programs: they find what rules are about,
// they don't confine. docs/agents.md says so.
func (c command) sideEffect() bool {
	name, verb := c.verb()
	return slices.Contains(effects[name], verb)
}

func (c command) connects() bool {
	name, verb := c.verb()
	if name == "git" {
		return slices.Contains([]string{"clone", "fetch", "pull", "push", "ls-remote", "submodule"}, verb)
	}
	return slices.Contains(connecting, name)
}

var effects = map[string][]string{
	"git": {"commit", "push", "send-email", "request-pull", "merge", "rebase", "am", "tag"}, "gh": {"pr", "release", "issue", "repo", "api", "workflow"},
	"glab": {"mr", "release", "issue", "repo", "api"}, "hg": {"commit", "push"}, "jj": {"commit", "git"},
	"npm": {"publish", "unpublish", "deprecate"}, "pnpm": {"publish"}, "yarn": {"publish", "npm"}, "cargo": {"publish", "yank"}, "twine": {"upload"}, "gem": {"push"},
	"docker": {"push"}, "podman": {"push"}, "helm": {"push"}, "kubectl": {"apply", "create", "delete", "patch"}, "terraform": {"apply", "destroy"},
}

var connecting = []string{"curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "gh", "glab", "aria2c", "http", "https"}

// verb is a command's program and its first word that isn't an option.
func (c command) verb() (name, verb string) {
	if len(c.words) == 0 {
		return "", ""
	}
	name = path.Base(c.words[0])
	for i := 1; i < len(c.words); i++ {
		switch w := c.words[i]; {
		case name == "git" && slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace"}, w):
			i++
		case !strings.HasPrefix(w, "-"):
			return name, w
		}
	}
	return name, ""
}
