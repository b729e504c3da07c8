package api

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Code names a refusal so that a program can act on it. docs/errors.md lists them.
type Code string

// The error codes of the coordinator. One table in the server says which HTTP status goes with
// which.
const (
	CodeMalformed          Code = "malformed"              // the body is not a JSON object of the right shape
	CodeUnsupportedType    Code = "unsupported_media_type" // the content type is not application/json
	CodeTooLarge           Code = "too_large"              // the body is over its limit
	CodeInvalid            Code = "invalid"                // fields break their rules; see fields
	CodeUnauthenticated    Code = "unauthenticated"
	CodeForbidden          Code = "forbidden"
	CodeUserTokenRequired  Code = "user_token_required" // an API key where only a user's sign-in counts
	CodeNotFound           Code = "not_found"
	CodeGone               Code = "gone" // it was there, and retention removed it
	CodeMethodNotAllowed   Code = "method_not_allowed"
	CodeMisdirected        Code = "misdirected"  // the Host is not one of ours
	CodeCrossOrigin        Code = "cross_origin" // a write from another origin
	CodeSlugTaken          Code = "slug_taken"
	CodeConflict           Code = "conflict"
	CodeLastOwner          Code = "last_owner"          // the workspace would be left without an owner
	CodeAlreadyClaimed     Code = "already_claimed"     // holder, expiresAt
	CodeNotReady           Code = "not_ready"           // gate
	CodeWorkerNotEligible  Code = "worker_not_eligible" // gate says why
	CodeSessionTerminal    Code = "session_terminal"
	CodeSessionRunning     Code = "session_running" // onlyPending cancel of a running session; retry of a running one
	CodeClaimRequired      Code = "claim_required"
	CodeClaimNotActive     Code = "claim_not_active" // status, holder
	CodeOutcomeConflict    Code = "outcome_conflict"
	CodeInvalidLease       Code = "invalid_lease"
	CodeInstanceSuperseded Code = "instance_superseded"
	CodeWorkerRunning      Code = "worker_running"
	CodeStaleSignal        Code = "stale_signal" // acknowledged another signal than the pending one
	CodeIdempotencyReuse   Code = "idempotency_key_reused"
	CodePromptClosed       Code = "prompt_closed"
	CodePromptOpen         Code = "prompt_open"
	CodeStateNotYours      Code = "state_not_yours"  // a thread's state that only its worker's reports set
	CodeStaleVersion       Code = "stale_version"    // a PATCH of a version that isn't the present one
	CodeNotClaimHolder     Code = "not_claim_holder" // holder, expiresAt: somebody else's lease on a task
	CodeTaskDone           Code = "task_done"
	CodeTaskBlocked        Code = "task_blocked" // by a task that isn't done
	CodeTooMany            Code = "too_many_requests"
	CodeOutcomeUnknown     Code = "outcome_unknown"  // the write may or may not have been kept
	CodeUnavailable        Code = "unavailable"      // the store can't take writes now; nothing was changed
	CodeDatabaseMoved      Code = "database_moved"   // the database file isn't the open one any more; nothing was changed
	CodeDatabaseDamaged    Code = "database_damaged" // what is read from the database makes no sense
	CodeTooSlow            Code = "too_slow"         // a read that takes too long; a list has to be narrowed
	CodeInternal           Code = "internal"
)

// FieldError names one bad field of a request and the correction.
type FieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Error is a refusal that a caller can act on. On the wire it is
// application/problem+json (RFC 9457); the server adds type, title and status.
type Error struct {
	Code      Code         `json:"code"`
	Detail    string       `json:"detail"`
	Fields    []FieldError `json:"fields,omitzero"`
	Gate      string       `json:"gate,omitzero"` // why a session or worker can't be matched
	Status    Status       `json:"sessionStatus,omitzero"`
	Holder    string       `json:"holder,omitzero"` // who holds the claim, for those who may see it
	WorkerID  WorkerID     `json:"workerId,omitzero"`
	ExpiresAt Time         `json:"expiresAt,omitzero"` // when the holder's lease ends
	RetryIn   int          `json:"retryAfterSeconds,omitzero"`

	sent []byte // as it came from the coordinator; nil = it was made here
}

// Document is the refusal as one line of JSON, for programs: the coordinator's own answer,
// unchanged, or of a refusal that was made here what of it is known, in the same names.
func (e *Error) Document() []byte {
	if e.sent != nil {
		return e.sent
	}
	text, err := json.Marshal(e, jsontext.AllowInvalidUTF8(true))
	if err != nil { // it holds texts, numbers and times
		panic(fmt.Errorf("encode a refusal: %w", err))
	}
	return text
}

// Error is the code and the sentence.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	b.WriteString(": ")
	b.WriteString(e.Detail)
	for _, f := range e.Fields {
		b.WriteString("; ")
		b.WriteString(f.Field)
		b.WriteString(": ")
		b.WriteString(f.Detail)
	}
	return b.String()
}

// Refuse makes an Error of a code and one plain sentence.
func Refuse(code Code, detail string) *Error { return &Error{Code: code, Detail: detail} }

// BadField refuses one field and says how to correct it.
func BadField(field, detail string) *Error {
	return &Error{Code: CodeInvalid, Detail: "One field is not valid.", Fields: []FieldError{{Field: field, Detail: detail}}}
}

// Invalid gathers field errors; Err is nil while none was added.
type Invalid struct{ fields []FieldError }

// Add notes that field breaks a rule, and how to correct it.
func (v *Invalid) Add(field, detail string) {
	v.fields = append(v.fields, FieldError{Field: field, Detail: detail})
}

// Join adds the fields of another refusal, if err is one.
func (v *Invalid) Join(err error) {
	if of, ok := errors.AsType[*Error](err); ok {
		v.fields = append(v.fields, of.Fields...)
	}
}

// CheckText refuses a text of more bytes than the limit, and what is no text.
func (v *Invalid) CheckText(field, text string, limit int) {
	if len(text) > limit {
		v.Add(field, fmt.Sprintf("has %d bytes; at most %d fit", len(text), limit))
	}
	if !utf8.ValidString(text) {
		v.Add(field, "is not valid UTF-8")
	}
}

// CheckLine refuses what can't stand in a line among others: a name, a title.
func (v *Invalid) CheckLine(field, text string) {
	if !OneLine(text) {
		v.Add(field, "must be one line of text, without control characters, characters that aren't seen, and marks that turn its direction")
	}
}

// CheckPlace refuses what breaks a line. A path has the characters that it has.
func (v *Invalid) CheckPlace(field, text string) {
	if !Unbroken(text) {
		v.Add(field, "must be one line of text, without control characters and marks that turn its direction")
	}
}

// CheckWritten refuses what no person writes and no program can be told.
func (v *Invalid) CheckWritten(field, text string) {
	if strings.ContainsRune(text, 0) {
		v.Add(field, "holds a NUL character: leave it out")
	}
}

// Err is a 422 that names each bad field, or nil.
func (v *Invalid) Err() error {
	if len(v.fields) == 0 {
		return nil
	}
	if len(v.fields) == 1 {
		return BadField(v.fields[0].Field, v.fields[0].Detail)
	}
	return &Error{Code: CodeInvalid, Detail: "Some fields are not valid.", Fields: v.fields}
}
