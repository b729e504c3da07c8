package agent

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/worker/agent/cmdline"
)

// acpCallUpdate is what the program says of a tool call: all of it, or what has changed.
type acpCallUpdate struct {
	ID        string         `json:"toolCallId"`
	Title     string         `json:"title"`
	Kind      string         `json:"kind"`
	Status    string         `json:"status"`
	Input     jsontext.Value `json:"rawInput"`
	Output    jsontext.Value `json:"rawOutput"`
	Content   jsontext.Value `json:"content"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
}

// acpCall is a tool call as it is known so far.
type acpCall struct {
	id, name, title string
	kind, status    string
	input, output   jsontext.Value
	content         jsontext.Value
	places          []string // that it names as its locations
	begun, ended    bool     // in the transcript
}

// acpWord matches the name of a tool, as opposed to a sentence about what it does.
var acpWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]{0,99}$`)

// merge takes in what an update says, and reports whether that is anything new.
func (c *acpCall) merge(u acpCallUpdate) (changed bool) {
	text := func(to *string, from string) {
		if from != "" && *to != from {
			*to, changed = from, true
		}
	}
	value := func(to *jsontext.Value, from jsontext.Value) {
		if len(from) > 0 && from.Kind() != 'n' && !same(*to, from) {
			*to, changed = from.Clone(), true
		}
	}
	if c.name == "" && acpWord.MatchString(u.Title) {
		c.name = u.Title
	}
	text(&c.title, u.Title)
	text(&c.kind, u.Kind)
	text(&c.status, u.Status)
	value(&c.input, u.Input)
	value(&c.output, u.Output)
	value(&c.content, u.Content)
	for _, l := range u.Locations {
		if l.Path != "" && !slices.Contains(c.places, l.Path) {
			c.places, changed = append(c.places, l.Path), true
		}
	}
	return changed
}

// tool is what the transcript calls the tool.
func (c *acpCall) tool() string { return or(c.name, or(c.kind, "tool")) }

// acpInput are the members by which programs name what a tool call is about.
type acpInput struct {
	Command  jsontext.Value `json:"command"`
	Cmd      jsontext.Value `json:"cmd"`
	Args     jsontext.Value `json:"args"`
	Script   string         `json:"script"`
	Cwd      string         `json:"cwd"`
	WorkDir  string         `json:"workdir"`
	URL      string         `json:"url"`
	URI      string         `json:"uri"`
	Query    string         `json:"query"`
	Pattern  string         `json:"pattern"`
	Path     string         `json:"path"`
	File     string         `json:"file"`
	Snake    string         `json:"file_path"`
	Camel    string         `json:"filePath"`
	Lower    string         `json:"filepath"`
	Absolute string         `json:"absolute_path"`
	Abs      string         `json:"abs_path"`
	Dir      string         `json:"directory"`
	Parent   string         `json:"parentDir"`
	From     string         `json:"source"`
	To       string         `json:"destination"`
	Todos    []acpStep      `json:"todos"`
}

func (c *acpCall) in() (in acpInput) {
	if json.Unmarshal(c.input, &in, lenient) != nil {
		return acpInput{} // of a form of the program's own: what it is about isn't known
	}
	return in
}

// command is the exact command that a call runs, "" where the program doesn't say it apart from
// other words. The model writes the input, and the program reads the member that it knows: where
// several could be the command, each of them is.
func (c *acpCall) command() string {
	in := c.in()
	var all []string
	add := func(text string) {
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	for _, v := range []jsontext.Value{in.Command, in.Cmd} {
		var argv []string
		if text := asText(v); text != "" {
			add(cmdline.Unwrap(text))
			if json.Unmarshal(in.Args, &argv, lenient) == nil && len(argv) > 0 {
				add(text + " " + cmdline.Quote(argv))
			}
		} else if json.Unmarshal(v, &argv, lenient) == nil && len(argv) > 0 {
			add(cmdline.Unwrap(cmdline.Quote(argv)))
		}
	}
	add(in.Script)
	return strings.Join(all, "\n")
}

// files are the files and folders that a call names, in its input, as its locations or in the
// changes that it shows.
func (c *acpCall) files() (out []string) {
	in := c.in()
	for _, p := range slices.Concat([]string{in.Path, in.File, in.Snake, in.Camel, in.Lower, in.Absolute, in.Abs, in.Dir, in.Parent, in.From, in.To}, c.places) {
		if p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, d := range c.diffs() {
		if d.Path != "" && !slices.Contains(out, d.Path) {
			out = append(out, d.Path)
		}
	}
	return out
}

// acpDiff is a change of a file that a call shows.
type acpDiff struct {
	Type string  `json:"type"`
	Path string  `json:"path"`
	Old  *string `json:"oldText"`
	New  string  `json:"newText"`
}

func (c *acpCall) diffs() (out []acpDiff) {
	for _, v := range c.blocks() {
		var d acpDiff
		if json.Unmarshal(v, &d, lenient) == nil && d.Type == "diff" {
			out = append(out, d)
		}
	}
	return out
}

func (c *acpCall) blocks() (list []jsontext.Value) {
	if json.Unmarshal(c.content, &list, lenient) != nil {
		return nil
	}
	return list
}

// text is a tool call as people see it: the command, or what the program calls it with its input.
func (c *acpCall) text() string {
	if command := c.command(); command != "" {
		return command
	}
	var parts []string
	if c.title != "" && c.title != c.name {
		parts = append(parts, c.title)
	}
	if changes := c.changes(); changes != "" {
		parts = append(parts, changes)
	} else if input := indented(c.input); input != "" {
		parts = append(parts, input)
	}
	return strings.Join(parts, "\n")
}

// indented is JSON for people, "" for an empty object.
func indented(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	pretty := v.Clone()
	if pretty.Indent() != nil {
		return string(v)
	}
	if text := strings.TrimSpace(string(pretty)); text != "{}" {
		return text
	}
	return ""
}

// changes are what a call changes in files, line by line.
func (c *acpCall) changes() string {
	var b strings.Builder
	mark := func(sign, text string) {
		for line := range strings.Lines(text) {
			b.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	for _, d := range c.diffs() {
		if d.Old == nil {
			b.WriteString("add " + d.Path + "\n")
		} else {
			b.WriteString("change " + d.Path + "\n")
			mark("-", *d.Old)
		}
		mark("+", d.New)
	}
	return b.String()
}

// result is what people see of a tool's result.
func (c *acpCall) result() string {
	var parts []string
	for _, v := range c.blocks() {
		var b struct {
			Type    string         `json:"type"`
			Content jsontext.Value `json:"content"`
		}
		if json.Unmarshal(v, &b, lenient) == nil && b.Type == "content" {
			if text := acpBlock(b.Content); text != "" {
				parts = append(parts, text)
			}
		}
	}
	if changes := c.changes(); changes != "" {
		parts = append(parts, changes)
	}
	if len(parts) > 0 {
		return strings.Join(parts, "\n")
	}
	var out struct {
		Output jsontext.Value `json:"output"`
		Error  jsontext.Value `json:"error"`
	}
	if text := asText(c.output); text != "" {
		return text
	}
	if json.Unmarshal(c.output, &out, lenient) == nil {
		if text := or(asText(out.Output), asText(out.Error)); text != "" {
			return text
		}
	}
	return indented(c.output)
}

// failed reports whether a call didn't do what it should: the program says so, or a command ended
// with another code than 0.
func (c *acpCall) failed() bool {
	type exit struct {
		Exit  *float64 `json:"exit"`
		Camel *float64 `json:"exitCode"`
		Snake *float64 `json:"exit_code"`
	}
	var out struct {
		exit     `json:",inline"`
		Metadata exit `json:"metadata"`
	}
	if c.status == "failed" {
		return true
	}
	if json.Unmarshal(c.output, &out, lenient) != nil {
		return false
	}
	for _, code := range []*float64{out.Exit, out.Camel, out.Snake, out.Metadata.Exit, out.Metadata.Camel, out.Metadata.Snake} {
		if code != nil && *code != 0 {
			return true
		}
	}
	return false
}

// member is one of an object's members.
type member struct {
	name  string
	value jsontext.Value
}

// members are those of a JSON object, in its order.
func members(object jsontext.Value) (out []member, ok bool) {
	dec := jsontext.NewDecoder(strings.NewReader(string(object)), lenient)
	if begin, err := dec.ReadToken(); err != nil || begin.Kind() != '{' {
		return nil, false
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, false
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, false
		}
		out = append(out, member{key, value.Clone()})
	}
	return out, dec.PeekKind() == '}'
}
