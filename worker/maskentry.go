package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// codes are the fields of entries whose words are the protocol's own: a password that equals
// one of them must not break an entry.
var codes = map[string]bool{
	"kind": true, "stream": true, "clientId": true, "callId": true, "at": true, "type": true, "key": true, "code": true, "outcome": true,
	"status": true, "agentSessionId": true, "notBefore": true, "change": true, "place": true, "snapshot": true,
}

// masked hides secrets in every text of entries. Everything that is reported of a session
// leaves through the outbox, so that nothing else needs to think of it: what the agent says,
// why it failed, what a hook printed, plans, results (contract 10.11).
func masked(entries []entry, secrets [][]byte) ([]entry, error) {
	if len(secrets) == 0 {
		return entries, nil
	}
	out := make([]entry, len(entries))
	for i, e := range entries {
		body, err := maskBody(e.body, secrets)
		if err != nil {
			return nil, fmt.Errorf("mask an outbox entry of kind %s: %w", e.kind, err)
		}
		out[i] = entry{seq: e.seq, kind: e.kind, body: body}
	}
	return out, nil
}

// maskBody hides secrets in the strings of a JSON document.
func maskBody(body []byte, secrets [][]byte) ([]byte, error) {
	lenient := []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}
	from := jsontext.NewDecoder(bytes.NewReader(body), lenient...)
	var b bytes.Buffer
	to := jsontext.NewEncoder(&b, lenient...)
	name, changed := "", false
	for {
		token, err := from.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if token.Kind() == '"' {
			in, n := from.StackIndex(from.StackDepth())
			text := token.String()
			switch {
			case in == '{' && n%2 == 1:
				name = text
			case !codes[name]:
				if hidden := maskString(text, secrets); hidden != text {
					token, changed = jsontext.String(hidden), true
				}
			}
		}
		if err := to.WriteToken(token); err != nil {
			return nil, err
		}
	}
	if !changed {
		return body, nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
