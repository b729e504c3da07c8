package workflow

import (
	"regexp"
	"strings"
)

// Variables are what a template may name. All are what people wrote or could have
// written: they are put in as text, once, and mean nothing.
type Variables struct {
	ID          string // issue.id: the task's id; empty without a task, as the others of issue
	Identifier  string // issue.identifier: T-42
	Title       string // issue.title
	Description string // issue.description
	State       string // issue.state
	Labels      string // issue.labels: joined by commas
	Prompt      string // issue.prompt: what the session was asked
	Attempt     string // attempt: empty on the first run, then the retry's number
}

// value is a variable's by its name in templates.
func (v Variables) value(name string) (text string, known bool) {
	switch name {
	case "issue.id":
		return v.ID, true
	case "issue.identifier":
		return v.Identifier, true
	case "issue.title":
		return v.Title, true
	case "issue.description":
		return v.Description, true
	case "issue.state":
		return v.State, true
	case "issue.labels":
		return v.Labels, true
	case "issue.prompt":
		return v.Prompt, true
	case "attempt":
		return v.Attempt, true
	}
	return "", false
}

// Render puts the variables into the template. What they hold is not looked at again,
// so a variable whose text looks like a template stays as it is. `{% if NAME %}`,
// with or without `{% else %}`, keeps its text when the variable isn't empty. Every
// variable and tag that is none of these is left as written.
func (w Workflow) Render(v Variables) string {
	var b strings.Builder
	render(&b, lex(w.Template), v, nil)
	return strings.TrimSpace(b.String())
}

// Unknown lists the variables and tags of the template that are left as written, as
// they are written, each once.
func (w Workflow) Unknown() []string {
	var unknown []string
	seen := map[string]bool{}
	render(&strings.Builder{}, lex(w.Template), Variables{}, func(text string) {
		if !seen[text] {
			seen[text] = true
			unknown = append(unknown, text)
		}
	})
	return unknown
}

// piece is a part of a template: plain text, or a tag.
type piece struct {
	text string // as written
	name string // of a variable, or the condition's
	tag  tag
}

type tag int

const (
	plain tag = iota
	variable
	opens    // if NAME
	opensAny // the beginning of another block that endif ends
	orElse
	orElseIf
	closes
	other
)

var (
	tags      = regexp.MustCompile(`\{\{[ \t]*([A-Za-z_][A-Za-z0-9_.]*)[ \t]*\}\}|\{\{[^{}\n]*\}\}|\{%-?[ \t]*([^%\n]*?)[ \t]*-?%\}`)
	condition = regexp.MustCompile(`^if[ \t]+([A-Za-z_][A-Za-z0-9_.]*)$`)
)

func lex(template string) []piece {
	var pieces []piece
	end := 0
	for _, at := range tags.FindAllStringSubmatchIndex(template, -1) {
		if at[0] > end {
			pieces = append(pieces, piece{text: template[end:at[0]]})
		}
		end = at[1]
		p := piece{text: template[at[0]:at[1]], tag: other}
		switch {
		case at[2] >= 0:
			p.tag, p.name = variable, template[at[2]:at[3]]
		case at[4] >= 0:
			p.tag, p.name = classify(template[at[4]:at[5]])
		}
		pieces = append(pieces, p)
	}
	return append(pieces, piece{text: template[end:]})
}

func classify(words string) (tag, string) {
	if m := condition.FindStringSubmatch(words); m != nil {
		return opens, m[1]
	}
	first, _, _ := strings.Cut(words, " ")
	switch first {
	case "if":
		return opensAny, ""
	case "else":
		return orElse, ""
	case "elsif":
		return orElseIf, ""
	case "endif":
		return closes, ""
	}
	return other, ""
}

// render writes pieces; unknown, if any, is told of everything left as written, in
// both branches of each condition.
func render(b *strings.Builder, pieces []piece, v Variables, unknown func(string)) {
	for len(pieces) > 0 {
		p := pieces[0]
		pieces = pieces[1:]
		text, known := v.value(p.name)
		switch {
		case p.tag == plain:
			b.WriteString(p.text)
			continue
		case p.tag == variable && known:
			b.WriteString(text)
			continue
		case p.tag == opens && known:
			if yes, no, rest, ok := block(pieces); ok {
				switch {
				case unknown != nil:
					render(b, yes, v, unknown)
					render(b, no, v, unknown)
				case text != "":
					render(b, yes, v, nil)
				default:
					render(b, no, v, nil)
				}
				pieces = rest
				continue
			}
		}
		b.WriteString(p.text)
		if unknown != nil {
			unknown(p.text)
		}
	}
}

// block finds the two branches of a condition whose beginning was just read, and what
// comes after it. It is none when its end is missing or it has branches of other kinds.
func block(pieces []piece) (yes, no, rest []piece, ok bool) {
	depth, middle := 0, -1
	for i, p := range pieces {
		switch {
		case p.tag == opens, p.tag == opensAny:
			depth++
		case p.tag == closes && depth > 0:
			depth--
		case p.tag == closes:
			if middle < 0 {
				return pieces[:i], nil, pieces[i+1:], true
			}
			return pieces[:middle], pieces[middle+1 : i], pieces[i+1:], true
		case depth > 0:
		case p.tag == orElseIf, p.tag == orElse && middle >= 0:
			return nil, nil, nil, false
		case p.tag == orElse:
			middle = i
		}
	}
	return nil, nil, nil, false
}
