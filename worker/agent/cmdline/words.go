package cmdline

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// fields are the words that a command may be called with, in each way in which the values of
// its variables can be combined.
func (v *variables) fields(words []*syntax.Word) [][]string {
	var out [][]string
	v.each(words, func(env expand.Environ, words []*syntax.Word) {
		var got []string
		for _, word := range words {
			some, err := expanded(func() ([]string, error) { return expand.Fields(&expand.Config{Env: env}, word) })
			if err != nil {
				some = []string{string(unknown)}
			}
			got = append(got, some...)
		}
		if !slices.ContainsFunc(out, func(have []string) bool { return slices.Equal(have, got) }) {
			out = append(out, got)
		}
	})
	return out
}

// texts are the values that a word may have where it isn't split.
func (v *variables) texts(word *syntax.Word) []string {
	var out []string
	v.each([]*syntax.Word{word}, func(env expand.Environ, words []*syntax.Word) {
		got, err := expanded(func() ([]string, error) {
			text, err := expand.Literal(&expand.Config{Env: env}, words[0])
			return []string{text}, err
		})
		if err != nil {
			got = []string{string(unknown)}
		}
		if !slices.Contains(out, got[0]) {
			out = append(out, got[0])
		}
	})
	return out
}

// expanded guards against what an expansion of odd text might do.
func expanded(f func() ([]string, error)) (out []string, err error) {
	defer func() {
		if recover() != nil {
			out, err = nil, errOdd
		}
	}()
	return f()
}

var errOdd = expand.UnsetParameterError{Message: "the expansion is not understood"}

// each calls f with words in which everything that can't be known has become a rune for it, and
// with each combination of values of what can.
func (v *variables) each(words []*syntax.Word, f func(expand.Environ, []*syntax.Word)) {
	e := &expansion{v: v, env: environ{}}
	made := make([]*syntax.Word, len(words))
	for i, w := range words {
		made[i] = &syntax.Word{Parts: e.parts(w.Parts, false)}
	}
	ways := 1
	for _, name := range e.names {
		values, _ := v.known(name)
		if ways *= len(values); ways > maxValues {
			e = &expansion{v: &variables{opaque: true, printed: v.printed}, env: environ{}}
			for i, w := range words {
				made[i] = &syntax.Word{Parts: e.parts(w.Parts, false)}
			}
			break
		}
	}
	e.combine(0, func() { f(e.env, made) })
}

// expansion prepares words for their expansion.
type expansion struct {
	v     *variables
	env   environ
	names []string // variables with values to combine
	notes int
}

func (e *expansion) combine(i int, f func()) {
	if i == len(e.names) {
		f()
		return
	}
	values, _ := e.v.known(e.names[i])
	for _, value := range values {
		e.env[e.names[i]] = value
		e.combine(i+1, f)
	}
}

// environ is the environment of an expansion; what isn't in it can't be known.
type environ map[string]expand.Variable

func (e environ) Get(name string) expand.Variable {
	if value, ok := e[name]; ok {
		return value
	}
	switch name {
	case "IFS":
		return expand.Variable{}
	case "PWD":
		return expand.Variable{Set: true, Kind: expand.String, Str: "/"}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: string(inherited)}
}

func (e environ) Each(func(string, expand.Variable) bool) {}

func (e *expansion) parts(parts []syntax.WordPart, quoted bool) []syntax.WordPart {
	out := make([]syntax.WordPart, 0, len(parts))
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			switch {
			case quoted:
			case strings.Count(part.Value, "{") > maxBraces:
				part = &syntax.Lit{Value: string(unknown)}
			default:
				part = &syntax.Lit{Value: unglobbed(part.Value)}
			}
			out = append(out, part)
		case *syntax.SglQuoted:
			out = append(out, part)
		case *syntax.DblQuoted:
			out = append(out, &syntax.DblQuoted{Parts: e.parts(part.Parts, true)})
		case *syntax.ParamExp:
			out = append(out, e.param(part))
		case *syntax.CmdSubst:
			out = append(out, e.substituted(part, quoted))
		default:
			out = append(out, &syntax.Lit{Value: string(unknown)})
		}
	}
	return out
}

// param is a parameter as it is where its values are known.
func (e *expansion) param(p *syntax.ParamExp) syntax.WordPart {
	hidden := unknown
	if p.Param == nil || p.Excl || p.Length || p.Width || p.IsSet || p.Names != 0 || p.Flags != nil || p.NestedParam != nil {
		return &syntax.Lit{Value: string(hidden)}
	}
	name := p.Param.Value
	simple := p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil
	if len(name) == 1 && strings.Contains("@*0123456789", name) {
		if e.v.positional == nil || !simple {
			return &syntax.Lit{Value: string(hidden)}
		}
		value := expand.Variable{Set: true, Kind: expand.Indexed, List: e.v.positional[1:]}
		if i := strings.Index("0123456789", name); i >= 0 {
			value = expand.Variable{Set: true, Kind: expand.String}
			if i < len(e.v.positional) {
				value.Str = e.v.positional[i]
			}
		}
		e.env[name] = value
		return p
	}
	if _, known := e.v.known(name); !known {
		if simple && !e.v.opaque && e.v.named[name] == nil && len(name) > 1 && syntax.ValidName(name) {
			hidden = inherited
		}
		return &syntax.Lit{Value: string(hidden)}
	}
	if !readable(p) {
		return &syntax.Lit{Value: string(hidden)}
	}
	if !slices.Contains(e.names, name) {
		e.names = append(e.names, name)
	}
	return p
}

// readable reports whether an expansion depends on nothing but the value of its parameter.
func readable(p *syntax.ParamExp) bool {
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
		return false
	}
	fine := true
	syntax.Walk(p, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.ParamExp:
			fine = fine && node == p
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
			fine = false
		}
		return true
	})
	return fine
}

// substituted is what a command prints, where that is written out.
func (e *expansion) substituted(c *syntax.CmdSubst, quoted bool) syntax.WordPart {
	if e.v.printed == nil || len(c.Stmts) != 1 || c.ReplyVar {
		return &syntax.Lit{Value: string(unknown)}
	}
	text, known := e.v.printed(c.Stmts[0])
	if !known {
		return &syntax.Lit{Value: string(unknown)}
	}
	text = strings.TrimRight(text, "\n")
	if quoted {
		return &syntax.SglQuoted{Value: text}
	}
	e.notes++
	name := "stint" + strings.Repeat("_", e.notes) // split like any value
	e.env[name] = expand.Variable{Set: true, Kind: expand.String, Str: text}
	return &syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: name}}
}

// unglobbed puts the rune for names of files in the place of each pattern for them.
func unglobbed(lit string) string {
	if !strings.ContainsAny(lit, "*?[") {
		return lit
	}
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		switch c := lit[i]; {
		case c == '\\' && i+1 < len(lit):
			b.WriteByte(c)
			i++
			b.WriteByte(lit[i])
		case c == '[':
			if end := strings.IndexByte(lit[i+1:], ']'); end > 0 {
				i += end + 1
				b.WriteRune(globbed)
			} else {
				b.WriteByte(c)
			}
		case c == '*', c == '?':
			b.WriteRune(globbed)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// echoed is what echo prints.
func echoed(words []string) (string, bool) {
	end := "\n"
	for len(words) > 0 && len(words[0]) > 1 && strings.Trim(words[0][1:], "neE") == "" && words[0][0] == '-' {
		if strings.Contains(words[0], "e") {
			return "", false
		}
		if strings.Contains(words[0], "n") {
			end = ""
		}
		words = words[1:]
	}
	text := strings.Join(words, " ") + end
	return text, !strings.Contains(text, `\`) // some shells read those, some don't
}

// formatted is what printf prints.
func formatted(words []string) (string, bool) {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.Contains(strings.Join(words, ""), `\0`) {
		return "", false
	}
	format, args := words[0], words[1:]
	var b strings.Builder
	for range 1000 {
		got, err := expanded(func() ([]string, error) {
			text, n, err := expand.Format(nil, format, args)
			if n == 0 {
				args = nil
			} else {
				args = args[min(n, len(args)):]
			}
			return []string{text}, err
		})
		if err != nil {
			return "", false
		}
		b.WriteString(got[0])
		if len(args) == 0 {
			return b.String(), true
		}
	}
	return "", false
}

// base is the name of a program without its folder, "" when it can't be known.
func base(word string) string {
	word = strings.TrimPrefix(word, "=") // zsh
	if rest, ok := strings.CutPrefix(word, string(inherited)+"/"); ok {
		word = "/" + rest // a folder that the line doesn't choose
	}
	name := path.Base(word)
	if strings.ContainsAny(word, string(unknown)+string(inherited)) || strings.ContainsRune(name, globbed) || word == "" {
		return ""
	}
	return name
}
