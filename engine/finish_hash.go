package engine

import (
	"crypto/sha256"
	"fmt"

	"stint/api"
	"stint/db"
)

// The hash of a finish tells its repetition from another outcome of the same claim. It is kept
// with the closed claim, and a later release of the coordinator may compare it, so it is made
// of the fields named here in this order and not of whatever a request's type has by then. A
// field that is added goes to the end, and only when it is set: what was stored before stays
// a repetition. Neither the process that sends it nor the claim it asks for makes it another
// finish; claimId, instanceId and claimNext are there because stored hashes hold them.

// fields is a JSON object with its members in a fixed order.
type fields []field

type field struct {
	name  string
	value any
}

// appendTo writes the members as they stand.
func (f fields) appendTo(out []byte) ([]byte, error) {
	out = append(out, '{')
	for i, m := range f {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, m.name...)
		out = append(out, '"', ':')
		var err error
		if inner, ok := m.value.(fields); ok {
			out, err = inner.appendTo(out)
		} else {
			out, err = db.AppendJSON(out, m.value)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func completeHash(in api.CompleteRequest) ([]byte, error) {
	return finishHash(closedByComplete, fields{
		{"claimId", in.ClaimID},
		{"instanceId", ""},
		{"result", in.Result},
		{"outcome", in.Outcome},
		{"usage", usageFields(in.Usage)},
		{"claimNext", nil},
	})
}

func failHash(in api.FailRequest) ([]byte, error) {
	return finishHash(closedByFail, fields{
		{"claimId", in.ClaimID},
		{"instanceId", ""},
		{"code", in.Code},
		{"message", in.Message},
		{"result", in.Result},
		{"usage", usageFields(in.Usage)},
		{"claimNext", nil},
	})
}

func releaseHash(in api.ReleaseRequest) ([]byte, error) {
	body := fields{
		{"claimId", in.ClaimID},
		{"instanceId", ""},
		{"reason", in.Reason},
		{"notBefore", in.NotBefore},
	}
	if in.Named {
		body = append(body, field{"notBeforeNamed", true})
	}
	return finishHash(closedByRelease, append(body, field{"park", in.Park}, field{"claimNext", nil}))
}

func usageFields(u *api.Usage) any {
	if u == nil {
		return nil
	}
	return fields{
		{"inputTokens", u.InputTokens},
		{"outputTokens", u.OutputTokens},
		{"costMicros", u.CostMicros},
		{"turns", u.Turns},
	}
}

func finishHash(verb string, body fields) ([]byte, error) {
	text := append(make([]byte, 0, 512), verb...)
	text, err := body.appendTo(append(text, ' '))
	if err != nil {
		return nil, fmt.Errorf("write the body of %s: %w", verb, err)
	}
	sum := sha256.Sum256(text)
	return sum[:16], nil // it only distinguishes calls of one claim
}
