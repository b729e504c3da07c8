package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"stint/api"
)

// object is a JSON object of the document, or of a schema.
type object = map[string]any

// operation is one method of one path of the OpenAPI document.
type operation struct {
	method, path string
	params       []object // without the workspace, references resolved
	body         object   // the schema of its body; nil = takes none
	answer       object   // the schema of what it answers
}

// document is the OpenAPI document as far as tools need it.
type document struct {
	parts      object // its components
	operations map[string]operation
	paths      []string
}

// theDocument is read when it is first needed: it takes some milliseconds and a megabyte.
var theDocument = sync.OnceValue(func() *document {
	var all struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components object                                `json:"components"`
	}
	if err := json.Unmarshal(api.OpenAPIJSON(), &all); err != nil {
		panic(fmt.Errorf("read the OpenAPI document: %w", err))
	}
	d := &document{parts: all.Components, operations: map[string]operation{}}
	for path, item := range all.Paths {
		d.paths = append(d.paths, path)
		var shared []object
		if text, ok := item["parameters"]; ok {
			mustRead(text, &shared)
		}
		for method, text := range item {
			if method == "parameters" {
				continue
			}
			var o struct {
				ID         string   `json:"operationId"`
				Parameters []object `json:"parameters"`
				Body       object   `json:"requestBody"`
				Responses  object   `json:"responses"`
			}
			mustRead(text, &o)
			op := operation{method: strings.ToUpper(method), path: path, body: contentOf(o.Body)}
			for _, p := range append(append([]object{}, shared...), o.Parameters...) {
				if p = d.resolve(p); p["name"] != "workspace" {
					op.params = append(op.params, p)
				}
			}
			for _, status := range []string{"201", "200"} {
				if found, ok := o.Responses[status].(object); ok {
					op.answer = contentOf(found)
				}
			}
			d.operations[o.ID] = op
		}
	}
	return d
})

// besides are the words that other paths have where this one has a parameter: there such a value
// would be part of another address, and make another call.
func (d *document) besides(path, param string) map[string]bool {
	before, _, found := strings.Cut(path, "{"+param+"}")
	words := map[string]bool{}
	for _, other := range d.paths {
		if rest, beside := strings.CutPrefix(other, before); found && beside {
			if word, _, _ := strings.Cut(rest, "/"); !strings.HasPrefix(word, "{") {
				words[word] = true
			}
		}
	}
	return words
}

func mustRead(text []byte, into any) {
	if err := json.Unmarshal(text, into); err != nil {
		panic(fmt.Errorf("read the OpenAPI document: %w", err))
	}
}

// contentOf is the schema of a body or an answer of JSON, nil for none.
func contentOf(of object) object {
	content, _ := of["content"].(object)
	kind, _ := content["application/json"].(object)
	schema, _ := kind["schema"].(object)
	return schema
}

const refPrefix = "#/components/"

// resolve is what a reference stands for; what is none is returned as it is. What stands beside
// the reference stays.
func (d *document) resolve(o object) object {
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	var at any = d.parts
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, refPrefix), "/") {
		at = at.(object)[name]
	}
	out := maps.Clone(d.resolve(at.(object)))
	for k, v := range o {
		if k != "$ref" {
			out[k] = v
		}
	}
	return out
}

// inline is a schema without references, for what programs are asked to send: not every client
// follows them there. No schema of a request refers to itself.
func (d *document) inline(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for k, part := range d.resolve(v) {
			out[k] = d.inline(part)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = d.inline(v[i])
		}
		return out
	}
	return v
}

// answers is the schema of what a tool answers: the operation's answer or its refusal, since
// clients check either against it. A refusal that no coordinator sent has no more than a code and
// a sentence.
func (d *document) answers(schema object) object {
	refusal := maps.Clone(d.resolve(object{"$ref": refPrefix + "schemas/Problem"}))
	refusal["required"] = []any{"code", "detail"}
	return d.standalone(object{"anyOf": []any{schema, refusal}})
}

// standalone is a schema of an answer with all that it refers to, as an object at its root, as
// older clients expect. It says nothing that the document doesn't.
func (d *document) standalone(schema object) object {
	parts := object{}
	var move func(v any) any
	move = func(v any) any {
		switch v := v.(type) {
		case object:
			out := object{}
			for k, part := range v {
				out[k] = move(part)
			}
			if ref, ok := v["$ref"].(string); ok {
				name := ref[strings.LastIndexByte(ref, '/')+1:]
				out["$ref"] = "#/$defs/" + name
				if _, known := parts[name]; !known {
					parts[name] = nil // so that what refers to itself ends
					parts[name] = move(d.resolve(object{"$ref": ref}))
				}
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = move(v[i])
			}
			return out
		}
		return v
	}
	out := move(d.resolve(schema)).(object)
	out["type"] = "object"
	if len(parts) > 0 {
		out["$defs"] = parts
	}
	return out
}
