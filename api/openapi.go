package api

import _ "embed" // the document below

// OpenAPIYAML is the OpenAPI 3.1 document of the HTTP interface: the source that
// the server and the client are checked against.
//
//go:embed openapi.yaml
var OpenAPIYAML []byte

// OpenAPIJSON is the same document as JSON, on one line, made by `go generate ./api`.
//
//go:embed openapi.json
var OpenAPIJSON []byte

//go:generate go test -run ^TestOpenAPI_JSONIsTheYAML$ -update .
