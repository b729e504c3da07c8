package mcp

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"stint/api"
)

// Failure says why a caller's calls can't be made at all.
type Failure struct {
	Code   string // a word to act on, such as unreachable
	Detail string // one sentence
	Next   string // what helps; "" = nothing is known
}

// Error is the code and the sentence.
func (f *Failure) Error() string { return f.Code + ": " + f.Detail }

// unreachable is the code for a coordinator that doesn't answer.
const unreachable = "unreachable"

// next is what a program does after a refusal. What is missing here has no general step.
var next = map[api.Code]string{
	api.CodeMalformed:         "Correct the arguments and call again.",
	api.CodeInvalid:           "Correct the fields that are named and call again.",
	api.CodeInvalidLease:      "Correct the lease and call again.",
	api.CodeTooLarge:          "Send less.",
	api.CodeUnauthenticated:   "A person has to sign this program in again: stint login, or a new token.",
	api.CodeForbidden:         "Ask somebody with that right to do it, or to give it.",
	api.CodeUserTokenRequired: "Ask a person to do it on Stint's page or with its command line.",
	api.CodeNotFound:          "List what there is, with list_sessions, list_tasks or list_agents, and use an id from there.",
	api.CodeGone:              "It was removed because it was old; nothing can bring it back.",
	api.CodeAlreadyClaimed:    "Take something else, or wait until the holder's lease ends.",
	api.CodeNotClaimHolder:    "Leave it to its holder, or wait until their lease ends.",
	api.CodeTaskDone:          "Take another task: next_task lists them.",
	api.CodeTaskBlocked:       "Do first what it waits for: get_task names it.",
	api.CodeConflict:          "Read how it stands now, and decide again.",
	api.CodeSessionTerminal:   "The session is over: retry_session runs it once more.",
	api.CodeSessionRunning:    "Wait for it with wait_session, or end it with stop_session.",
	api.CodePromptClosed:      "Nothing is left to answer: go on with get_session.",
	api.CodePromptOpen:        "Answer the open question first, with answer_prompt.",
	api.CodeIdempotencyReuse:  "Use another key for another request.",
	api.CodeTooMany:           "Wait, then call again.",
	api.CodeOutcomeUnknown:    "It may have been done: read how it stands before you call again.",
	api.CodeUnavailable:       "Nothing was changed: call again in a moment.",
	api.CodeDatabaseMoved:     "Nothing was changed: the operator has to look.",
	api.CodeTooSlow:           "Ask for less: narrow the filter.",
	api.CodeInternal:          "The operator has to look into the coordinator's log.",
}

// words are what a program is told of an error: the code, the sentence, who holds it until
// when, and what to do next.
func words(err error) string {
	var refused *api.Error
	if errors.As(err, &refused) {
		return refusedWords(refused)
	}
	f := failureOf(err)
	return text(f.Error(), f.Next)
}

// asRefusal is an error in the form of the API's refusals.
func asRefusal(err error) *api.Error {
	var refused *api.Error
	if errors.As(err, &refused) {
		return refused
	}
	f := failureOf(err)
	return api.Refuse(api.Code(f.Code), f.Detail)
}

// failureOf is an error that no coordinator sent.
func failureOf(err error) *Failure {
	f := &Failure{Code: string(api.CodeInternal), Detail: api.Plain(err) + "."}
	var silent *api.Unanswered
	switch {
	case errors.As(err, &f):
	case errors.As(err, &silent):
		f = &Failure{Code: unreachable, Detail: "No coordinator answered: " + api.Plain(silent) + ".", Next: "It may have been done: read how it stands before you call again. If nothing answers, a person has to start it: stint up."}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Code = unreachable
	}
	return f
}

func refusedWords(e *api.Error) string {
	var b strings.Builder
	b.WriteString(string(e.Code) + ": " + e.Detail)
	for _, field := range e.Fields {
		b.WriteString("\n- " + field.Field + " " + field.Detail)
	}
	for _, fact := range []struct{ name, value string }{
		{"Gate", e.Gate}, {"Status", string(e.Status)}, {"Holder", e.Holder}, {"Until", e.ExpiresAt.String()},
	} {
		if fact.value != "" {
			b.WriteString("\n" + fact.name + ": " + fact.value)
		}
	}
	if e.RetryIn > 0 {
		b.WriteString("\nRetry after: " + strconv.Itoa(e.RetryIn) + " s")
	}
	return text(b.String(), next[e.Code])
}

func text(what, next string) string {
	if next == "" {
		return what
	}
	return what + "\nNext: " + next
}
