package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"stint/api"
)

// statusOf says which HTTP status goes with which code. It is the only place that does.
var statusOf = map[api.Code]int{
	api.CodeMalformed:          http.StatusBadRequest,
	api.CodeClaimRequired:      http.StatusBadRequest,
	api.CodeInvalidLease:       http.StatusBadRequest,
	api.CodeUnauthenticated:    http.StatusUnauthorized,
	api.CodeForbidden:          http.StatusForbidden,
	api.CodeCrossOrigin:        http.StatusForbidden,
	api.CodeUserTokenRequired:  http.StatusForbidden,
	api.CodeNotFound:           http.StatusNotFound,
	api.CodeGone:               http.StatusGone,
	api.CodeMethodNotAllowed:   http.StatusMethodNotAllowed,
	api.CodeSlugTaken:          http.StatusConflict,
	api.CodeConflict:           http.StatusConflict,
	api.CodeLastOwner:          http.StatusConflict,
	api.CodeAlreadyClaimed:     http.StatusConflict,
	api.CodeNotReady:           http.StatusConflict,
	api.CodeWorkerNotEligible:  http.StatusConflict,
	api.CodeSessionTerminal:    http.StatusConflict,
	api.CodeSessionRunning:     http.StatusConflict,
	api.CodeClaimNotActive:     http.StatusConflict,
	api.CodeOutcomeConflict:    http.StatusConflict,
	api.CodeInstanceSuperseded: http.StatusConflict,
	api.CodeWorkerRunning:      http.StatusConflict,
	api.CodeStaleSignal:        http.StatusConflict,
	api.CodePromptClosed:       http.StatusConflict,
	api.CodePromptOpen:         http.StatusConflict,
	api.CodeStaleVersion:       http.StatusConflict,
	api.CodeTaskDone:           http.StatusConflict,
	api.CodeTaskBlocked:        http.StatusConflict,
	api.CodeNotClaimHolder:     http.StatusForbidden,
	api.CodeStateNotYours:      http.StatusForbidden,
	api.CodeTooLarge:           http.StatusRequestEntityTooLarge,
	api.CodeUnsupportedType:    http.StatusUnsupportedMediaType,
	api.CodeMisdirected:        http.StatusMisdirectedRequest,
	api.CodeInvalid:            http.StatusUnprocessableEntity,
	api.CodeIdempotencyReuse:   http.StatusUnprocessableEntity,
	api.CodeTooMany:            http.StatusTooManyRequests,
	api.CodeInternal:           http.StatusInternalServerError,
	api.CodeOutcomeUnknown:     http.StatusServiceUnavailable,
	api.CodeUnavailable:        http.StatusServiceUnavailable,
	api.CodeDatabaseMoved:      http.StatusServiceUnavailable,
	api.CodeDatabaseDamaged:    http.StatusInternalServerError,
	api.CodeTooSlow:            http.StatusServiceUnavailable,
}

var (
	errNoRoute  = api.Refuse(api.CodeNotFound, "Nothing is served at this path. /openapi.json lists what there is.")
	errNoMethod = api.Refuse(api.CodeMethodNotAllowed, "This path has other methods; the Allow header lists them.")
)

// gone marks in the log a request whose client went away before the answer.
const gone = 499

// problem is a refusal on the wire (RFC 9457).
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	*api.Error
	RequestID string `json:"requestId"`
}

// fail answers with the refusal that err is. Anything else is our own fault: it goes to the
// log, and the client gets only the request's number.
func (x *exchange) fail(err error) {
	var refused *api.Error
	switch {
	case errors.As(err, &refused):
		if statusOf[refused.Code] >= http.StatusInternalServerError {
			x.server.log.Error("request failed", "request", x.id, "path", x.r.URL.Path, "error", err)
		}
	case errors.Is(err, context.Canceled) && x.r.Context().Err() != nil:
		x.status = gone
		return
	default:
		x.server.log.Error("request failed", "request", x.id, "path", x.r.URL.Path, "error", err)
		refused = api.Refuse(api.CodeInternal, "Something went wrong in the server. Its log has more under this request id.")
	}
	x.problem(refused)
}

func (x *exchange) problem(refused *api.Error) {
	status, known := statusOf[refused.Code]
	if !known {
		status = http.StatusInternalServerError
	}
	h := x.Header()
	h["Content-Type"] = headProblem
	if refused.RetryIn > 0 {
		h.Set("Retry-After", strconv.Itoa(refused.RetryIn))
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", x.challenge())
	}
	body := problem{
		Type: "urn:stint:error:" + string(refused.Code), Title: http.StatusText(status), Status: status,
		Error: refused, RequestID: x.id,
	}
	if err := x.send(response{status: status, body: body}); err != nil {
		x.server.log.Error("write a refusal", "request", x.id, "error", err)
		x.WriteHeader(http.StatusInternalServerError)
	}
}
