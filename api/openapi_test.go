package api

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/pb33f/go-yaml"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

var update = flag.Bool("update", false, "pack the documents anew")

func TestOpenAPI_PackedIsTheYAML(t *testing.T) {
	source, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(source, &doc); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	asJSON = append(asJSON, '\n')
	if *update {
		for name, text := range map[string][]byte{"openapi.yaml.gz": source, "openapi.json.gz": asJSON} {
			if err := os.WriteFile(name, pack(t, text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if !bytes.Equal(OpenAPIYAML(), source) || !bytes.Equal(OpenAPIJSON(), asJSON) {
		t.Error("the packed documents are not what api/openapi.yaml says: run go generate ./api")
	}
}

func pack(t *testing.T, text []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestOpenAPI_DocumentIsValid(t *testing.T) {
	doc, err := libopenapi.NewDocument(OpenAPIYAML())
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
