package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// variables are what a script may hold in its variables: all values that are assigned anywhere
// in it, as what is assigned when depends on what happens.
type variables struct {
	named map[string]*variable
	// opaque says that any variable may hold anything: something assigns by names or values
	// that aren't written out.
	opaque     bool
	positional []string // "$0", "$1" and so on, nil = unknown
	printed    func(*syntax.Stmt) (string, bool)
}

type variable struct {
	assigned []assigned
	unknown  bool // also values that can't be known
	values   []expand.Variable
	busy     bool // being found: its value is made of itself
	found    bool
}

// assigned are words that a variable gets, all at once if they are a list.
type assigned struct {
	words []*syntax.Word
	list  bool
	in    *variables
}

// maxValues bounds the ways in which the values of variables are combined in one command.
const maxValues = 32

// maxBraces bounds the braces of a word, which multiply.
const maxBraces = 8

// with adds what a script assigns.
func (v variables) with(file *syntax.File, printed func(*syntax.Stmt) (string, bool)) variables {
	out := variables{named: map[string]*variable{}, opaque: v.opaque, positional: v.positional, printed: printed}
	for name, old := range v.named {
		out.named[name] = &variable{assigned: slices.Clone(old.assigned), unknown: old.unknown}
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Assign:
			out.assign(node)
		case *syntax.DeclClause:
			out.declare(node)
		case *syntax.ForClause:
			switch loop := node.Loop.(type) {
			case *syntax.WordIter:
				at := out.at(loop.Name.Value)
				at.unknown = at.unknown || !loop.InPos.IsValid() || node.Select
				for _, item := range loop.Items {
					at.assigned = append(at.assigned, assigned{words: []*syntax.Word{item}, in: &out})
				}
			}
		case *syntax.ParamExp:
			if node.Exp != nil && (node.Exp.Op == syntax.AssignUnset || node.Exp.Op == syntax.AssignUnsetOrNull) && node.Param != nil {
				out.at(node.Param.Value).unknown = true
			}
		case *syntax.CallExpr:
			out.opaque = out.opaque || slices.ContainsFunc(node.Args, assigns) || slices.ContainsFunc(node.Args, is("printf")) && slices.ContainsFunc(node.Args, is("-v"))
		case *syntax.Redirect: // {name}>file
			out.opaque = out.opaque || node.N != nil && strings.HasPrefix(node.N.Value, "{")
		}
		return true
	})
	out.opaque = out.opaque || out.named["IFS"] != nil || out.named["BASH_ENV"] != nil
	return out
}

// assigns reports whether a word is a builtin that may assign variables which it is only told
// of as it runs. As an argument of another command it is taken for one too: of command, say.
func assigns(w *syntax.Word) bool {
	switch literal(w) {
	case "read", "mapfile", "readarray", "getopts", "unset", "eval", "source", ".", "let", "declare", "typeset", "local", "export", "readonly":
		return true
	}
	return false
}

func is(text string) func(*syntax.Word) bool {
	return func(w *syntax.Word) bool { return literal(w) == text }
}

func (v *variables) at(name string) *variable {
	if v.named[name] == nil {
		v.named[name] = &variable{}
	}
	return v.named[name]
}

func (v *variables) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	at := v.at(a.Name.Value)
	switch {
	case a.Append, a.Index != nil:
		at.unknown = true
	case a.Array != nil:
		var words []*syntax.Word
		for _, e := range a.Array.Elems {
			at.unknown = at.unknown || e.Index != nil || e.Value == nil
			words = append(words, e.Value)
		}
		if !at.unknown {
			at.assigned = append(at.assigned, assigned{words: words, list: true, in: v})
		}
	case a.Value == nil:
	default:
		at.assigned = append(at.assigned, assigned{words: []*syntax.Word{a.Value}, in: v})
	}
}

// declare looks at the options of declare and its like: some change what values become.
func (v *variables) declare(d *syntax.DeclClause) {
	v.opaque = v.opaque || d.Variant.Value == "nameref"
	for _, a := range d.Args {
		if a.Name == nil && a.Value != nil && strings.Trim(a.Value.Lit(), "-xrgaA") != "" {
			v.opaque = true
		}
	}
}

// known are the values of a variable, false when it may have others.
func (v *variables) known(name string) ([]expand.Variable, bool) {
	if v.opaque {
		return nil, false
	}
	at := v.named[name]
	if at == nil || at.unknown || at.busy {
		return nil, false
	}
	if !at.found {
		at.busy = true
		at.values = []expand.Variable{{Set: true, Kind: expand.String}} // before it is assigned
		for _, a := range at.assigned {
			at.add(a)
		}
		at.busy, at.found = false, true
	}
	return at.values, !at.unknown && len(at.values) <= maxValues
}

func (at *variable) add(a assigned) {
	var out []expand.Variable
	if a.list {
		for _, list := range a.in.fields(a.words) {
			out = append(out, expand.Variable{Set: true, Kind: expand.Indexed, List: list})
		}
	} else {
		for _, text := range a.in.texts(a.words[0]) {
			out = append(out, expand.Variable{Set: true, Kind: expand.String, Str: text})
		}
	}
	for _, one := range out {
		at.unknown = at.unknown || strings.ContainsAny(one.Str+strings.Join(one.List, ""), wildRunes)
	}
	at.values = append(at.values, out...)
}
