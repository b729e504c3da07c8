package api

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/pb33f/go-yaml"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

var update = flag.Bool("update", false, "write openapi.json anew")

func TestOpenAPI_JSONIsTheYAML(t *testing.T) {
	var doc map[string]any
	if err := yaml.Unmarshal(OpenAPIYAML, &doc); err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(OpenAPIJSON, want) {
		t.Error("api/openapi.json is not what api/openapi.yaml says: run go generate ./api")
	}
}

func TestOpenAPI_DocumentIsValid(t *testing.T) {
	doc, err := libopenapi.NewDocument(OpenAPIYAML)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	for _, err := range errs {
		t.Fatal(err)
	}
	if ok, found := v.ValidateDocument(); !ok {
		for _, f := range found {
			t.Errorf("%s: %s", f.Message, f.Reason)
			for _, s := range f.SchemaValidationErrors {
				t.Errorf("  %s at %s", s.Reason, s.KeywordLocation)
			}
		}
	}
}
