package web

import (
	"bytes"
	"cmp"
	"html"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/yuin/goldmark"

	"stint/api"
)

// The parts of the OpenAPI document that the reference page shows.
type (
	openAPI struct {
		Info struct {
			Description string `json:"description"`
		} `json:"info"`
		Tags       []openTag                            `json:"tags"`
		Paths      map[string]map[string]jsontext.Value `json:"paths"`
		Components struct {
			Parameters map[string]openParameter `json:"parameters"`
			Responses  map[string]openAnswer    `json:"responses"`
			Schemas    map[string]openSchema    `json:"schemas"`
		} `json:"components"`
	}
	openTag struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	openOperation struct {
		ID          string          `json:"operationId"`
		Tags        []string        `json:"tags"`
		Summary     string          `json:"summary"`
		Description string          `json:"description"`
		Parameters  []openParameter `json:"parameters"`
		Body        *struct {
			Required bool                   `json:"required"`
			Content  map[string]openContent `json:"content"`
		} `json:"requestBody"`
		Responses map[string]openAnswer `json:"responses"`
	}
	openParameter struct {
		Ref         string     `json:"$ref"`
		Name        string     `json:"name"`
		In          string     `json:"in"`
		Required    bool       `json:"required"`
		Description string     `json:"description"`
		Schema      openSchema `json:"schema"`
	}
	openAnswer struct {
		Ref         string                 `json:"$ref"`
		Description string                 `json:"description"`
		Content     map[string]openContent `json:"content"`
	}
	openContent struct {
		Schema openSchema `json:"schema"`
	}
	openSchema struct {
		Ref         string                `json:"$ref"`
		Type        jsontext.Value        `json:"type"` // a word or a list of words
		Format      string                `json:"format"`
		Description string                `json:"description"`
		Enum        []jsontext.Value      `json:"enum"`
		Required    []string              `json:"required"`
		Properties  map[string]openSchema `json:"properties"`
		Items       *openSchema           `json:"items"`
		OneOf       []openSchema          `json:"oneOf"`
		AllOf       []openSchema          `json:"allOf"`
	}
)

// reference is the page's content.
type reference struct {
	Intro   string // HTML, as every description is
	Groups  []referenceGroup
	Schemas []referenceSchema
}

type referenceGroup struct {
	Tag        openTag
	Operations []referenceOperation
}

type referenceOperation struct {
	ID, Method, Path, Summary, Description string
	Parameters                             []openParameter
	Body                                   string // name of its schema, "" for none
	BodyRequired                           bool
	Responses                              []referenceResponse
	Curl                                   string
	Try                                    string // address to try, for reads that need nothing filled in
}

// where says where a parameter goes.
func (p openParameter) where() string {
	if p.Required {
		return p.In + ", required"
	}
	return p.In
}

type referenceResponse struct{ Status, Description, Schema string }

type referenceSchema struct {
	Name, Description, Kind string
	Fields                  []referenceField
}

type referenceField struct {
	Name, Kind, Description string
	Required                bool
}

var theReference = sync.OnceValues(readReference)

func readReference() (reference, error) {
	var doc openAPI
	if err := json.Unmarshal(api.OpenAPIJSON(), &doc); err != nil {
		return reference{}, err
	}
	out := reference{Intro: markdown(doc.Info.Description)}
	byTag := map[string][]referenceOperation{}
	for path, methods := range doc.Paths {
		shared, err := sharedParameters(methods)
		if err != nil {
			return reference{}, err
		}
		for method, raw := range methods {
			if method == "parameters" {
				continue
			}
			var op openOperation
			if err := json.Unmarshal(raw, &op); err != nil {
				return reference{}, err
			}
			op.Parameters = append(slices.Clone(shared), op.Parameters...)
			tag := "server"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			byTag[tag] = append(byTag[tag], doc.operation(strings.ToUpper(method), path, op))
		}
	}
	for _, tag := range doc.Tags {
		ops := byTag[tag.Name]
		slices.SortFunc(ops, func(a, b referenceOperation) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
		})
		if len(ops) > 0 {
			out.Groups = append(out.Groups, referenceGroup{Tag: tag, Operations: ops})
		}
	}
	for name, s := range doc.Components.Schemas {
		out.Schemas = append(out.Schemas, doc.schema(name, s))
	}
	slices.SortFunc(out.Schemas, func(a, b referenceSchema) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func sharedParameters(methods map[string]jsontext.Value) (out []openParameter, err error) {
	if raw, ok := methods["parameters"]; ok {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

func (doc *openAPI) operation(method, path string, op openOperation) referenceOperation {
	out := referenceOperation{ID: op.ID, Method: method, Path: path, Summary: op.Summary, Description: markdown(op.Description)}
	for _, p := range op.Parameters {
		if p.Ref != "" {
			p = doc.Components.Parameters[lastPart(p.Ref)]
		}
		p.Description = markdown(p.Description)
		out.Parameters = append(out.Parameters, p)
	}
	if op.Body != nil {
		for _, c := range op.Body.Content {
			out.Body, out.BodyRequired = schemaKind(c.Schema), op.Body.Required
		}
	}
	for status, a := range op.Responses {
		if a.Ref != "" {
			a = doc.Components.Responses[lastPart(a.Ref)]
		}
		shown := referenceResponse{Status: status, Description: markdown(a.Description)}
		for _, c := range a.Content {
			shown.Schema = schemaKind(c.Schema)
		}
		out.Responses = append(out.Responses, shown)
	}
	slices.SortFunc(out.Responses, func(a, b referenceResponse) int { return strings.Compare(a.Status, b.Status) })
	filled := strings.ReplaceAll(path, "{workspace}", "default")
	out.Curl = curl(method, filled, op.Body != nil)
	if method == http.MethodGet && !strings.Contains(filled, "{") {
		out.Try = filled
	}
	return out
}

func curl(method, path string, body bool) string {
	parts := []string{"curl"}
	if method != http.MethodGet {
		parts = append(parts, "-X", method)
	}
	parts = append(parts, `-H "Authorization: Bearer $STINT_TOKEN"`)
	if body {
		parts = append(parts, `-H "Content-Type: application/json" -d '{}'`)
	}
	return strings.Join(append(parts, `"$STINT_URL`+path+`"`), " ")
}

func (doc *openAPI) schema(name string, s openSchema) referenceSchema {
	out := referenceSchema{Name: name, Description: markdown(s.Description), Kind: schemaKind(s), Fields: doc.fields(s)}
	slices.SortFunc(out.Fields, func(a, b referenceField) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// fields are a schema's own and those of the schemas that it includes.
func (doc *openAPI) fields(s openSchema) (out []referenceField) {
	for _, part := range s.AllOf {
		if part.Ref != "" {
			part = doc.Components.Schemas[lastPart(part.Ref)]
		}
		out = append(out, doc.fields(part)...)
	}
	for name, f := range s.Properties {
		out = append(out, referenceField{
			Name: name, Kind: schemaKind(f), Description: markdown(f.Description), Required: slices.Contains(s.Required, name),
		})
	}
	return out
}

// markdown converts a description, which is our own and short; a single paragraph stays bare.
func markdown(text string) string {
	var out bytes.Buffer
	if err := goldmark.Convert([]byte(text), &out); err != nil {
		return html.EscapeString(text)
	}
	body := strings.TrimSpace(out.String())
	if strings.Count(body, "<p>") == 1 {
		body = strings.TrimSuffix(strings.TrimPrefix(body, "<p>"), "</p>")
	}
	return body
}

// schemaKind says in a few words what a value is: a schema's name, a type, or the words it may be.
func schemaKind(s openSchema) string {
	switch {
	case s.Ref != "":
		return lastPart(s.Ref)
	case len(s.Enum) > 0:
		var words []string
		for _, w := range s.Enum {
			words = append(words, strings.Trim(w.String(), `"`))
		}
		return strings.Join(words, " | ")
	case s.Items != nil:
		return "list of " + schemaKind(*s.Items)
	case len(s.OneOf) > 0:
		return joinKinds(s.OneOf, " or ")
	case len(s.AllOf) > 0:
		return joinKinds(s.AllOf, " and ")
	}
	return strings.Trim(strings.NewReplacer(`"`, "", ",", " or ").Replace(s.Type.String()), "[]")
}

func joinKinds(all []openSchema, with string) string {
	var kinds []string
	for _, s := range all {
		kinds = append(kinds, schemaKind(s))
	}
	return strings.Join(kinds, with)
}

func lastPart(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

func (v *visit) apiDocs() error {
	ref, err := theReference()
	if err != nil {
		return err
	}
	return v.page(http.StatusOK, Shell{Title: "HTTP API", Prose: true}, apiReference(ref))
}

// apiDocsOn shows one operation or one schema.
func (v *visit) apiDocsOn() error {
	ref, err := theReference()
	if err != nil {
		return err
	}
	name := v.path("name")
	for _, g := range ref.Groups {
		for _, op := range g.Operations {
			if op.ID == name {
				return v.page(http.StatusOK, Shell{Title: op.Summary + " · HTTP API", Prose: true}, apiOperation(op))
			}
		}
	}
	for _, s := range ref.Schemas {
		if s.Name == name {
			return v.page(http.StatusOK, Shell{Title: s.Name + " · HTTP API", Prose: true}, apiSchema(s))
		}
	}
	return api.Refuse(api.CodeNotFound, "The API has nothing of that name.")
}

// schemaNamed reads a kind as the name of a schema, which begins with a capital.
func schemaNamed(kind string) (name string, list bool) {
	name, list = strings.CutPrefix(kind, "list of ")
	if name == "" || name[0] < 'A' || name[0] > 'Z' || strings.Contains(name, " ") {
		return "", false
	}
	return name, list
}
