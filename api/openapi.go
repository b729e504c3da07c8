package api

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the documents below
	"io"
	"sync"
)

// Both are packed, since they would be the largest texts in the program. openapi.yaml is the
// source; `go generate ./api` packs it, and makes the other from it.
var (
	//go:embed openapi.yaml.gz
	packedYAML []byte
	//go:embed openapi.json.gz
	packedJSON []byte
)

// OpenAPIYAML is the OpenAPI 3.1 document of the HTTP interface: the source that
// the server and the client are checked against.
var OpenAPIYAML = sync.OnceValue(func() []byte { return unpack(packedYAML) })

// OpenAPIJSON is the same document as JSON, on one line.
var OpenAPIJSON = sync.OnceValue(func() []byte { return unpack(packedJSON) })

//go:generate go test -run ^TestOpenAPI_PackedIsTheYAML$ -update .

func unpack(packed []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // it is part of the program, and a test reads it
	}
	text, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return text
}
