package server

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

const (
	maxBody    = 1 << 20  // contract 9.2
	maxFilled  = 16 << 20 // with files in it, which base64 makes a third longer
	maxPointer = 120      // of a field's path in a refusal
)

// The reader refuses repeated and wrongly cased names and broken UTF-8 by
// itself (contract 9.2).
var strict = json.RejectUnknownMembers(true)

// body is a request's body that was read whole. Release it once it is decoded.
type body struct{ buf *bytes.Buffer }

func (b body) give()         { giveBuffer(b.buf) }
func (b body) bytes() []byte { return b.buf.Bytes() }
func (b body) empty() bool   { return len(bytes.TrimSpace(b.buf.Bytes())) == 0 }

// readBody reads the whole body, which must be JSON of at most 1 MiB.
func (x *exchange) readBody() (body, error) { return x.readBodyOf(maxBody) }

// readBodyOf is readBody for another size.
func (x *exchange) readBodyOf(most int64) (body, error) {
	if err := checkType(x.r); err != nil {
		return body{}, err
	}
	if x.r.ContentLength > most {
		return body{}, tooLarge(most)
	}
	b := body{buf: takeBuffer()}
	_, err := b.buf.ReadFrom(http.MaxBytesReader(x.ResponseWriter, x.r.Body, most))
	if err == nil {
		return b, nil
	}
	b.give()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return body{}, tooLarge(most)
	case x.server.closing.Err() != nil:
		return body{}, &api.Error{Code: api.CodeUnavailable, Detail: "The server is stopping and the body had not arrived; nothing was changed. Send it again.", RetryIn: 5}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return body{}, api.Refuse(api.CodeMalformed, "The body did not arrive in time.")
	default:
		return body{}, api.Refuse(api.CodeMalformed, "The body ended before its time.")
	}
}

func tooLarge(most int64) error {
	return api.Refuse(api.CodeTooLarge, fmt.Sprintf("The body is over %d MiB: send less at once.", most>>20))
}

// checkType refuses what a page could send without asking the browser first
// (contract 9.2). No body needs no type.
func checkType(r *http.Request) error {
	sent := r.Header["Content-Type"]
	if len(sent) == 0 && r.ContentLength == 0 {
		return nil
	}
	if len(sent) == 1 {
		if sent[0] == "application/json" {
			return nil
		}
		kind, params, err := mime.ParseMediaType(sent[0])
		charset := params["charset"]
		if err == nil && (charset == "" || strings.EqualFold(charset, "utf-8")) &&
			(kind == "application/json" || kind == "application/merge-patch+json" && r.Method == http.MethodPatch) {
			return nil
		}
	}
	return api.Refuse(api.CodeUnsupportedType, "Send the body as application/json.")
}

// checkEncoding refuses compressed bodies, whatever path they are for: read unchanged they
// would be taken for something else.
func checkEncoding(r *http.Request) error {
	for _, sent := range r.Header["Content-Encoding"] {
		if sent = strings.TrimSpace(sent); sent != "" && !strings.EqualFold(sent, "identity") {
			return api.Refuse(api.CodeUnsupportedType, "Send the body as it is, without Content-Encoding.")
		}
	}
	return nil
}

// decode reads the body into v, whose present values apply where fields are absent.
func (x *exchange) decode(v any) error { return x.decodeOf(maxBody, v) }

// decodeOf is decode for a body of another size.
func (x *exchange) decodeOf(most int64, v any) error {
	b, err := x.readBodyOf(most)
	if err != nil {
		return err
	}
	defer b.give()
	return decodeJSON(b.bytes(), v)
}

// decodeOptional is decode for verbs that need no body.
func (x *exchange) decodeOptional(v any) error {
	b, err := x.readBody()
	if err != nil {
		return err
	}
	defer b.give()
	if b.empty() {
		return nil
	}
	return decodeJSON(b.bytes(), v)
}

// noBody is the body of verbs that take none; an empty object is fine.
type noBody struct{}

func decodeJSON(b []byte, v any) error {
	if start := bytes.TrimLeft(b, " \t\r\n"); len(start) == 0 || start[0] != '{' {
		return api.Refuse(api.CodeMalformed, "The body must be one JSON object.")
	}
	if err := json.Unmarshal(b, v, strict); err != nil {
		return malformed(err)
	}
	return nil
}

// malformed says what is wrong with a body, and where.
func malformed(err error) error {
	var meaning *json.SemanticError
	var syntax *jsontext.SyntacticError
	var pointer jsontext.Pointer
	var what string
	switch {
	case errors.As(err, &syntax):
		pointer, what = syntax.JSONPointer, syntaxWords(syntax)
	case errors.As(err, &meaning):
		pointer, what = meaning.JSONPointer, meaningWords(meaning)
	default:
		return api.Refuse(api.CodeMalformed, "The body is no valid JSON object.")
	}
	if pointer == "" || len(pointer) > maxPointer {
		return api.Refuse(api.CodeMalformed, "The body is no valid JSON object: it "+what+".")
	}
	field := fieldOf(pointer)
	return &api.Error{
		Code: api.CodeMalformed, Detail: "The field " + field + " " + what + ".",
		Fields: []api.FieldError{{Field: field, Detail: what}},
	}
}

// fieldOf writes a JSON pointer as the engine names fields: items[3].kind.
func fieldOf(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}

func syntaxWords(err *jsontext.SyntacticError) string {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "is given twice"
	case errors.Is(err.Err, io.ErrUnexpectedEOF):
		return "ends too early"
	case err.Err != nil:
		return "can't be read: " + err.Err.Error()
	}
	return "can't be read"
}

func meaningWords(err *json.SemanticError) string {
	if errors.Is(err, json.ErrUnknownName) {
		return "is not known here"
	}
	if err.GoType == nil {
		return "has the wrong type"
	}
	if reflect.PointerTo(err.GoType).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		if err.JSONKind == '"' && err.Err != nil {
			return "can't be read: " + err.Err.Error()
		}
		return "must be a text"
	}
	switch err.GoType.Kind() {
	case reflect.String:
		return "must be a text"
	case reflect.Bool:
		return "must be true or false"
	case reflect.Int, reflect.Int64:
		return "must be a whole number, written in digits"
	case reflect.Slice:
		return "must be a list"
	case reflect.Struct, reflect.Map:
		return "must be an object"
	}
	return "has the wrong type"
}
