package engine

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stint/api"
)

// schema is the part of a schema of the OpenAPI document that is compared here.
type schema struct {
	Enum       []string          `json:"enum"`
	MaxLength  int               `json:"maxLength"`
	MaxItems   int               `json:"maxItems"`
	Properties map[string]schema `json:"properties"`
}

func schemas(t *testing.T) map[string]schema {
	t.Helper()
	var doc struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(api.OpenAPIJSON(), &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]schema{}
	for name, text := range doc.Components.Schemas {
		var s schema
		if json.Unmarshal(text, &s) == nil { // what has other forms isn't compared
			out[name] = s
		}
	}
	return out
}

// gateCodes are the codes of gates, as the source has them.
func gateCodes(t *testing.T) (codes []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "gate.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.ValueSpec)
		if !ok || len(c.Values) != 1 || !strings.HasPrefix(c.Names[0].Name, "gate") {
			return true
		}
		if text, ok := c.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
			code, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return true
	})
	if len(codes) < 20 {
		t.Fatalf("found the gates %q alone", codes)
	}
	return codes
}

// Everything that can hold a session back is in the API's document and on the page for people.
func TestDocument_NamesEveryGate(t *testing.T) {
	codes := gateCodes(t)
	documented := schemas(t)["Waiting"].Properties["code"].Enum
	page, err := os.ReadFile("../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range codes {
		if !slices.Contains(documented, code) {
			t.Errorf("api/openapi.yaml: Waiting.code doesn't list %s", code)
		}
		if !strings.Contains(string(page), "`"+code+"`") {
			t.Errorf("docs/states.md doesn't tell of %s", code)
		}
	}
	for _, code := range documented {
		if !slices.Contains(codes, code) {
			t.Errorf("api/openapi.yaml: Waiting.code lists %s, which nothing says", code)
		}
	}
}

func TestDocument_HasTheLimitsThatAreHeld(t *testing.T) {
	all := schemas(t)
	for field, most := range map[string]int{
		"SessionInput.title": maxTitle, "SessionInput.prompt": maxPrompt, "SessionInput.untrustedContext": maxContext,
		"AgentInput.name": maxName, "AgentInput.description": maxDescription, "AgentInput.prompt": maxPrompt, "AgentInput.instructions": maxInstructions,
		"CompleteRequest.result": maxResult, "CompleteRequest.outcome": maxCode,
		"FailRequest.code": maxCode, "FailRequest.message": maxMessage, "FailRequest.result": maxResult,
		"ActivityInput.text": maxActivityText, "ActivityInput.detail": maxActivityDetail, "ItemsRequest.items": maxItems,
		"SessionPatch.plan": maxPlan, "SessionPatch.externalUrl": maxURL,
		"PromptInput.text": maxPromptText, "PromptInput.choices": maxChoices, "MessageInput.text": maxMessageText,
	} {
		name, property, _ := strings.Cut(field, ".")
		p := all[name].Properties[property]
		if p.MaxLength+p.MaxItems != most {
			t.Errorf("api/openapi.yaml: %s allows %d, the engine %d", field, p.MaxLength+p.MaxItems, most)
		}
	}
	for schema, want := range map[string][]string{
		"Prompt.kind": {api.PromptText, api.PromptApproval, api.PromptQuestions}, "PromptInput.kind": {api.PromptText, api.PromptApproval, api.PromptQuestions},
		"Prompt.resolution": {api.PromptAnswered, api.PromptWithdrawn, api.PromptCancelled},
	} {
		name, property, _ := strings.Cut(schema, ".")
		if got := all[name].Properties[property].Enum; !slices.Equal(got, want) {
			t.Errorf("api/openapi.yaml: %s is %v, want %v", schema, got, want)
		}
	}
	kinds := map[api.ItemKind]bool{}
	for _, kind := range all["ItemKind"].Enum {
		kinds[api.ItemKind(kind)] = true
	}
	page, err := os.ReadFile("../docs/worker-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range api.WorkerItemKinds {
		if !kinds[kind] {
			t.Errorf("api/openapi.yaml: ItemKind doesn't list %s", kind)
		}
		if !strings.Contains(string(page), "| `"+string(kind)+"` |") {
			t.Errorf("docs/worker-protocol.md doesn't tell of items of kind %s", kind)
		}
	}
}
