package web

import (
	"net/url"
	"strings"

	"github.com/a-h/templ"
)

// Input is one field of a form. Its ID is also its name in the request, unless it has a
// separate name.
type Input struct {
	ID          string
	Name        string // "" = the id
	Label       string
	Hint        string
	Error       string
	Value       string
	Placeholder string
	Type        string // "" = text
	Mono        bool
	Required    bool
	Disabled    bool
}

// filled is what was typed into a form, and what is wrong with it by the field's name on the
// wire.
type filled struct {
	typed  url.Values
	errors map[string]string
}

// wrong counts the fields at fault; the entries of a list are one field.
func (f filled) wrong() int {
	fields := map[string]bool{}
	for name := range f.errors {
		fields[root(name)] = true
	}
	return len(fields)
}

// root is a field's name without the list entry.
func root(field string) string {
	name, _, _ := strings.Cut(field, "[")
	return name
}

// also adds what the engine finds at fault to what the form couldn't read; the form's own
// words come first.
func also(bad map[string]string, err error) {
	told := map[string]bool{}
	for field := range bad {
		told[root(field)] = true
	}
	more, _ := fieldErrors(err)
	for field, detail := range more {
		if !told[root(field)] {
			bad[field] = detail
		}
	}
}

// input is a field of the form with what was typed and what is wrong. wrong are the engine's
// names for it, if they aren't the form's.
func (f filled) input(id, label, hint string, wrong ...string) Input {
	in := Input{ID: id, Label: label, Hint: hint, Value: f.typed.Get(id), Error: sentence(f.errors[id])}
	for _, name := range wrong {
		for field, detail := range f.errors {
			if field == name || strings.HasPrefix(field, name+"[") {
				in.Error = sentence(detail)
			}
		}
	}
	return in
}

func (f filled) mono(id, label, hint string, wrong ...string) Input {
	in := f.input(id, label, hint, wrong...)
	in.Mono = true
	return in
}

func (f filled) number(id, label, hint string) Input {
	in := f.input(id, label, hint)
	in.Type = "number"
	return in
}

// Option is one answer of a [Select].
type Option struct{ Value, Word string }

func (f Input) name() string {
	if f.Name == "" {
		return f.ID
	}
	return f.Name
}

func (f Input) kind() string {
	if f.Type == "" {
		return "text"
	}
	return f.Type
}

func (f Input) describedBy() string {
	ids := ""
	if f.Error != "" {
		ids = f.ID + "-error"
	}
	if f.Hint != "" {
		if ids != "" {
			ids += " "
		}
		ids += f.ID + "-hint"
	}
	return ids
}

func (f Input) attributes() templ.Attributes {
	attrs := templ.Attributes{}
	if ids := f.describedBy(); ids != "" {
		attrs["aria-describedby"] = ids
	}
	if f.Error != "" {
		attrs["aria-invalid"] = "true"
	}
	if f.Disabled {
		attrs["disabled"] = true
	}
	return attrs
}
