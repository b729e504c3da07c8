package server

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// mergeJSON applies a merge patch to the present values (contract 9.2, RFC 7396): absent
// members stay, null ones are cleared to the values in unset.
func mergeJSON[T any](b []byte, v *T, unset T) error {
	if err := decodeJSON(b, v); err != nil {
		return err
	}
	cleared := nulls(b)
	if len(cleared) == 0 {
		return nil
	}
	clearFields(reflect.ValueOf(v).Elem(), reflect.ValueOf(unset), cleared)
	return nil
}

// merging reads the body of a PATCH, refuses what is no T, and returns what merges it into
// the present values. That may run more than once, each time on a fresh value, and after the
// request: it holds a copy of the body.
func merging[T any](x *exchange, unset T) (func(*T) error, error) {
	sent, err := x.readBody()
	if err != nil {
		return nil, err
	}
	defer sent.give()
	if err := decodeJSON(sent.bytes(), new(T)); err != nil {
		return nil, err
	}
	text := bytes.Clone(sent.bytes())
	return func(v *T) error { return mergeJSON(text, v, unset) }, nil
}

// clearFields sets the named fields, those of embedded structs too, to what they are in from.
func clearFields(to, from reflect.Value, names []string) {
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if field.Anonymous {
			clearFields(to.Field(i), from.Field(i), names)
			continue
		}
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); slices.Contains(names, name) {
			to.Field(i).Set(from.Field(i))
		}
	}
}

// nulls are the names of an object's members that are null. The object was decoded before, so
// it is valid.
func nulls(b []byte) (names []string) {
	if !bytes.Contains(b, []byte("null")) {
		return nil
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(b, &members) != nil {
		return nil
	}
	for name, value := range members {
		if value.Kind() == 'n' {
			names = append(names, name)
		}
	}
	return names
}

// decodePatch reads a worker's report. Null clears what is optional in a session. Usage and
// prompt may be null too, which reports nothing: totals never fall, and a prompt is withdrawn
// by the status.
func (x *exchange) decodePatch(in *api.SessionPatch) error {
	b, err := x.readBody()
	if err != nil {
		return err
	}
	defer b.give()
	none := ""
	if err := mergeJSON(b.bytes(), in, api.SessionPatch{Plan: &none, ExternalURL: &none, AgentSessionID: &none}); err != nil {
		return err
	}
	var v api.Invalid
	for _, name := range nulls(b.bytes()) {
		switch name {
		case "tries", "turnEnded", "lastConsumed", "taken":
			v.Add(name, "can't be cleared: leave it out, or report how far the session is")
		case "status":
			v.Add(name, "can't be cleared: active withdraws a prompt; complete, fail or release end a claim")
		}
	}
	return v.Err()
}
