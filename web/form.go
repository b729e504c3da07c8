package web

import "github.com/a-h/templ"

// Input is one field of a form. Its ID is also its name in the request, unless
// it has a name of its own.
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
