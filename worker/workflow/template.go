package workflow

import (
	"regexp"
	"strings"
	"unicode"
)

// Variables are what a template may name. People wrote or could have written all of them: they
// are put in as text, once, and have no other effect.
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

// value is a variable's value by its name in templates.
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

// Render puts the variables into the template. Their values are not looked at again, so a
// variable whose text looks like a template stays as it is. `{% if NAME %}`, with or without
// `{% else %}`, keeps its text when the variable isn't empty. Every other variable and tag is
// left as written. "" means that nothing is said, as where a condition leaves only a comment.
func (w Workflow) Render(v Variables) string {
	var b strings.Builder
	render(&b, lex(w.Template), v, nil)
	if text := strings.TrimSpace(b.String()); says(text) {
		return text
	}
	return ""
}

// comments are those of Markdown and of the usual template languages.
var comments = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)|\{\{-?\s*/\*.*?\*/\s*-?\}\}|\{#.*?#\}|\{%-?\s*comment\b.*?endcomment\s*-?%\}`)

// says reports whether a text says anything: it has a letter, a digit or a symbol outside
// comments.
func says(text string) bool {
	return strings.ContainsFunc(comments.ReplaceAllString(text, ""), func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r)
	})
}

// unseen reports whether a character at the end of a text doesn't show: a space, or one that
// isn't displayed, such as a byte order mark.
func unseen(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b' }

// Unknown lists the variables and tags of the template that are left as written, as they are
// written, each once.
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

// render writes pieces; unknown, if any, is called with everything left as written, in both
// branches of each condition.
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

// block finds the two branches of a condition whose beginning was just read, and what comes
// after it. There is none when its end is missing or it has branches of other kinds.
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
