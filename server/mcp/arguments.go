package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"stint/api"
)

// arguments are those of one call, by name.
type arguments map[string]jsontext.Value

// text is an argument that is a text, else "".
func (a arguments) text(name string) string {
	var out string
	if jsonv2.Unmarshal(a[name], &out) != nil {
		return ""
	}
	return out
}

// argument says where a value goes in the operation's request.
type argument struct {
	in   string // path, query, header or body
	name string // there

	never map[string]bool // values that would make another address; nil = none
}

// keyArgument is what the header Idempotency-Key is called as an argument.
const keyArgument = "idempotencyKey"

// signature is what a tool can be called with.
type signature struct {
	op       operation
	takes    map[string]argument
	finds    map[string]argument // those that the tool finds out itself
	required []string
	schema   object
	resolved *jsonschema.Resolved // of what stands in the address alone
}

// newSignature reads a tool's arguments from the document.
func newSignature(d *document, t *tool) (*signature, error) {
	op, ok := d.operations[t.operation]
	if !ok {
		return nil, fmt.Errorf("the document has no operation %s", t.operation)
	}
	s := &signature{op: op, takes: map[string]argument{}, finds: map[string]argument{}}
	properties := object{}
	add := func(name string, arg argument, schema object, required bool) {
		if slices.Contains(t.without, name) {
			return
		}
		if t.filled != nil && slices.Contains(t.filled.names, name) {
			s.finds[name] = arg
			return
		}
		s.takes[name], properties[name] = arg, schema
		if required {
			s.required = append(s.required, name)
		}
	}
	for _, p := range op.params {
		name, in := p["name"].(string), p["in"].(string)
		schema := d.inline(p["schema"]).(object)
		schema["description"] = p["description"]
		arg := argument{in: in, name: name}
		switch {
		case in == "header" && name == "Idempotency-Key":
			name = keyArgument
		case in == "header":
			continue
		case in == "path":
			schema["minLength"], arg.never = 1, d.besides(op.path, name)
			arg.never["."], arg.never[".."] = true, true
		}
		if name == "wait" && t.held > 0 {
			schema["maximum"], schema["default"] = t.held, t.held
		}
		add(name, arg, schema, p["required"] == true)
	}
	body, _ := d.inline(op.body).(object)
	needed, _ := body["required"].([]any)
	fields, _ := body["properties"].(object)
	for name, schema := range fields {
		add(name, argument{in: "body", name: name}, schema.(object), slices.Contains(needed, any(name)))
	}
	slices.Sort(s.required)
	s.schema = object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(s.required) > 0 {
		s.schema["required"] = s.required
	}
	var err error
	s.resolved, err = resolved(object{"type": "object", "properties": s.inAddress(properties)})
	return s, err
}

// inAddress are the schemas of the arguments that stand in the request's address: their types,
// without which no address can be made, and what is a tool's own rule. All else, and the whole
// body, is the API's to refuse, in its own words.
func (s *signature) inAddress(properties object) object {
	out := object{}
	for name, arg := range s.takes {
		schema := properties[name].(object)
		switch {
		case arg.in == "body":
		case name == "wait" || name != arg.name: // which the API would refuse under another name
			out[name] = schema
		default:
			out[name] = typeOf(schema)
		}
	}
	return out
}

// typeOf is a schema's type alone, and that it isn't empty.
func typeOf(schema object) object {
	out := object{}
	for _, rule := range []string{"type", "minLength"} {
		if schema[rule] != nil {
			out[rule] = schema[rule]
		}
	}
	if items, ok := schema["items"].(object); ok {
		out["items"] = typeOf(items)
	}
	return out
}

// resolved makes a validator of a schema.
func resolved(schema object) (*jsonschema.Resolved, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// read takes the arguments of a call apart. Errors: malformed.
func read(raw json.RawMessage) (arguments, error) {
	args := arguments{}
	if len(raw) == 0 || string(raw) == "null" {
		return args, nil
	}
	if err := jsonv2.Unmarshal(raw, &args); err != nil {
		return nil, api.Refuse(api.CodeMalformed, "The arguments must be one JSON object that has no name twice.")
	}
	return args, nil
}

// check refuses arguments that no request can be made of, and names them. Errors: malformed, not_found.
func (s *signature) check(args arguments) error {
	var bad []api.FieldError
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if _, known := s.takes[name]; !known {
			bad = append(bad, api.FieldError{Field: name, Detail: "is no argument of this tool; it takes " + strings.Join(slices.Sorted(maps.Keys(s.takes)), ", ")})
		}
	}
	for _, name := range s.required {
		if _, given := args[name]; !given && s.takes[name].in != "body" {
			bad = append(bad, api.FieldError{Field: name, Detail: "is missing"})
		}
	}
	if len(bad) > 0 {
		return &api.Error{Code: api.CodeMalformed, Detail: "The arguments are not those of this tool.", Fields: bad}
	}
	var value object
	text, err := jsonv2.Marshal(args)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err == nil {
		err = s.resolved.Validate(value)
	}
	if err != nil {
		return api.Refuse(api.CodeMalformed, "The arguments don't fit the tool's schema: "+strings.TrimPrefix(err.Error(), "validating root: ")+".")
	}
	return s.checkNames(args)
}

// checkNames refuses what can be no name of a thing, because it names something else in an
// address. Error: not_found.
func (s *signature) checkNames(args arguments) error {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if value := args.text(name); s.takes[name].never[value] {
			return api.Refuse(api.CodeNotFound, fmt.Sprintf("There is no %s %q here: that word means something else.", s.takes[name].name, value))
		}
	}
	return nil
}

// request is the operation's request with these arguments, which were checked.
func (s *signature) request(args arguments, workspace string, held int) api.RawCall {
	call := api.RawCall{Method: s.op.method, Query: url.Values{}, Header: http.Header{}}
	path := strings.ReplaceAll(s.op.path, "{workspace}", url.PathEscape(workspace))
	body := map[string]jsontext.Value{}
	for name, value := range args {
		arg, given := s.takes[name]
		if !given {
			arg = s.finds[name]
		}
		switch arg.in {
		case "path":
			path = strings.ReplaceAll(path, "{"+arg.name+"}", url.PathEscape(args.text(name)))
		case "query":
			call.Query.Set(arg.name, plain(value))
		case "header":
			call.Header.Set(arg.name, args.text(name))
		default:
			body[arg.name] = value
		}
	}
	call.Path = path
	if s.op.body != nil {
		call.Body = repeatable(body)
	}
	if held > 0 {
		if !call.Query.Has("wait") {
			call.Query.Set("wait", strconv.Itoa(held))
		}
		call.Held = time.Duration(held) * time.Second
	}
	return call
}

// repeatable is a body that is the same text whenever it holds the same: a repeated request with
// its key is recognized by that.
func repeatable(body map[string]jsontext.Value) jsontext.Value {
	text, err := jsonv2.Marshal(body, jsonv2.Deterministic(true))
	if err != nil { // every value was read from JSON
		panic(err)
	}
	return text
}

// plain is a value as a query has it: a list is joined by commas.
func plain(value jsontext.Value) string {
	var text string
	var list []string
	switch {
	case jsonv2.Unmarshal(value, &text) == nil:
		return text
	case jsonv2.Unmarshal(value, &list) == nil:
		return strings.Join(list, ",")
	}
	return string(value)
}
