package workflow

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// front is what the front matter says.
type front struct {
	said     fields
	ignored  []Ignored
	problems []Problem
	lines    map[string]int // of a field in the file

	anchors map[string]ast.Node
}

// fields are supported fields as written, by name: text as it is, numbers in decimal.
type fields map[string]string

type frontError struct {
	code    Code
	line    int
	message string
}

// readFront walks the syntax tree itself. Decoding it into values would expand aliases of
// fields that nothing reads, which a hostile file can make endless.
func readFront(text string) (*front, *frontError) {
	f := &front{said: fields{}, lines: map[string]int{}, anchors: map[string]ast.Node{}}
	if strings.TrimSpace(text) == "" {
		return f, nil
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return f, nil // only comments
	}
	body := file.Docs[0].Body
	ast.Walk(f, body)
	top, ok := f.follow(body).(ast.MapNode)
	if len(file.Docs) > 1 || !ok {
		return nil, &frontError{NotAMap, 2, "the front matter is not a list of fields with values"}
	}
	for sections := top.MapRange(); sections.Next(); {
		f.section(sections.KeyValue())
	}
	return f, nil
}

// Visit notes anchors.
func (f *front) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		f.anchors[a.Name.GetToken().Value] = a.Value
	}
	return f
}

// follow is the node that an anchor, an alias or a tag precedes. It takes one step of each, so
// that aliases can't lead in a circle.
func (f *front) follow(n ast.Node) ast.Node {
	for range 4 {
		switch at := n.(type) {
		case *ast.AnchorNode:
			n = at.Value
		case *ast.AliasNode:
			n = f.anchors[at.Value.GetToken().Value]
		case *ast.TagNode:
			n = at.Value
		default:
			return n
		}
	}
	return n
}

func keyOf(pair *ast.MappingValueNode) (name string, line int) {
	return pair.Key.GetToken().Value, pair.Key.GetToken().Position.Line + 1 // the line of --- comes first
}

// section reads one field of the top level and what it holds.
func (f *front) section(pair *ast.MappingValueNode) {
	name, line := keyOf(pair)
	f.lines[name] = line
	value := f.follow(pair.Value)
	inside, isMap := value.(ast.MapNode)
	switch {
	case isNull(value):
	case !sections[name] && !isMap, !sections[name] && ignoredSections[name] == "":
		f.ignore(name, line)
	case !isMap:
		f.problems = append(f.problems, Problem{Field: name, Message: "it holds no fields; write them below it, indented"})
	default:
		for members := inside.MapRange(); members.Next(); {
			f.member(name, members.KeyValue())
		}
	}
}

func (f *front) member(section string, pair *ast.MappingValueNode) {
	key, line := keyOf(pair)
	name := section + "." + key
	f.lines[name] = line
	known, ok := supported[name]
	value := f.follow(pair.Value)
	switch {
	case !ok:
		f.ignore(name, line)
	case isNull(value): // as if it weren't there
	default:
		text, wrong := scalar(value, known.kind)
		if wrong != "" {
			f.problems = append(f.problems, Problem{Field: name, Message: wrong})
			return
		}
		f.said[name] = text
	}
}

func (f *front) ignore(name string, line int) {
	f.ignored = append(f.ignored, Ignored{Field: name, Reason: whyIgnored(name), Line: line})
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return n == nil || null
}

// scalar is a value as text, or what is wrong with it.
func scalar(n ast.Node, k kind) (text, wrong string) {
	node, ok := n.(ast.ScalarNode)
	if !ok {
		return "", "it is one value, not a list or fields of its own"
	}
	value := node.GetValue()
	if block, ok := n.(*ast.LiteralNode); ok { // its own value is its source
		value = block.Value.GetValue()
	}
	if k != whole {
		if text, ok = value.(string); !ok {
			return "", fmt.Sprintf("it is text, not %v; put it between quotation marks", value)
		}
		if strings.ContainsRune(text, 0) {
			return "", "it holds a NUL"
		}
		return text, ""
	}
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10), ""
	case uint64:
		return strconv.FormatUint(v, 10), ""
	case string: // Symphony takes numbers in quotation marks too
		if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return strconv.FormatInt(n, 10), ""
		}
		return "", fmt.Sprintf("it is a whole number, not %q", v)
	}
	return "", fmt.Sprintf("it is a whole number, not %v", value)
}

// syntaxError puts into words what the parser found.
func syntaxError(err error) *frontError {
	e := &frontError{code: Unparsable, message: err.Error()}
	var said yaml.Error
	if errors.As(err, &said) {
		e.message = said.GetMessage()
		if t := said.GetToken(); t != nil && t.Position != nil {
			e.line = t.Position.Line + 1
		}
	}
	return e
}
