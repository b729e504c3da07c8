package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stint/api"
)

// exit is the status that the process ends with. Scripts rely on the numbers; `stint help
// exit-codes` prints them.
type exit int

// The exit codes. 0, 1, 4 and 8 mean what they mean to gh.
const (
	exitDone        exit = 0
	exitFailed      exit = 1
	exitUsage       exit = 2
	exitNotFound    exit = 3
	exitNotAllowed  exit = 4
	exitConflict    exit = 5
	exitError       exit = 6
	exitCancelled   exit = 7
	exitUnfinished  exit = 8
	exitUnreachable exit = 9
	exitProblems    exit = 10
	exitStopped     exit = 11
	exitCutShort    exit = 12
	exitRestart     exit = 75
	exitTimeout     exit = 124
	exitInterrupted exit = 130
)

// exitMeanings is what the help topic prints, in order.
var exitMeanings = []struct {
	code  exit
	means string
}{
	{exitDone, "done; for watch, wait and run --wait: the session is complete, nobody stopped it and its work was over"},
	{exitFailed, "failed in an unexpected way"},
	{exitUsage, "wrong usage or a value that is not valid"},
	{exitNotFound, "not found, or the beginning of an id fits several"},
	{exitNotAllowed, "not signed in or not allowed"},
	{exitConflict, "conflict: held by another, in the wrong state, or refused by the worker that was to land changes"},
	{exitError, "the session that was waited for ended in error"},
	{exitCancelled, "the session that was waited for was cancelled"},
	{exitUnfinished, "not finished: it awaits input or still waits for a worker"},
	{exitUnreachable, "no server answers"},
	{exitProblems, "doctor or worker doctor found problems"},
	{exitStopped, "the session that was waited for was stopped by a person before its work was done"},
	{exitCutShort, "the session that was waited for is complete, but no plain success: stint show says why"},
	{exitRestart, "worker run --on-restart exit: asked to restart; start it again"},
	{exitTimeout, "--timeout ran out"},
	{exitInterrupted, "interrupted"},
}

// problem is an error as a person reads it, in three lines: what failed, why, and the command
// that helps. Empty lines are left out.
type problem struct {
	code exit
	what string
	why  string
	next string

	refused *api.Error // the coordinator's refusal that it tells of; nil = the command found it out itself
}

// Error is the problem on one line.
func (p *problem) Error() string {
	if p.why == "" {
		return p.what
	}
	return p.what + ": " + p.why
}

// document is the problem for programs: the coordinator's refusal as the REST interface answers
// it, or the code and the sentence of what the command found out itself.
func (p *problem) document() []byte {
	if p.refused != nil {
		return p.refused.Document()
	}
	word := map[exit]api.Code{
		exitUsage: "usage", exitNotFound: api.CodeNotFound, exitNotAllowed: api.CodeUnauthenticated, exitConflict: api.CodeConflict, exitUnreachable: "unreachable",
	}[p.code]
	return api.Refuse(cmp.Or(word, "failed"), p.Error()).Document()
}

// quietly ends the process with a code when everything has already been said.
type quietly exit

// Error names the code.
func (q quietly) Error() string { return fmt.Sprintf("exit %d", int(q)) }

// usage says that the command line itself is wrong; next is the command that shows the right
// usage.
func usage(what, why, next string) error {
	return &problem{code: exitUsage, what: what, why: why, next: next}
}

// codeOf maps the coordinator's refusals to exit codes. What is missing here is exitFailed.
var codeOf = map[api.Code]exit{
	api.CodeMalformed:          exitUsage,
	api.CodeTooLarge:           exitUsage,
	api.CodeInvalid:            exitUsage,
	api.CodeInvalidLease:       exitUsage,
	api.CodeUnauthenticated:    exitNotAllowed,
	api.CodeForbidden:          exitNotAllowed,
	api.CodeUserTokenRequired:  exitNotAllowed,
	api.CodeNotFound:           exitNotFound,
	api.CodeGone:               exitNotFound,
	api.CodeSlugTaken:          exitConflict,
	api.CodeConflict:           exitConflict,
	api.CodeLastOwner:          exitConflict,
	api.CodeAlreadyClaimed:     exitConflict,
	api.CodeNotReady:           exitConflict,
	api.CodeWorkerNotEligible:  exitConflict,
	api.CodeSessionTerminal:    exitConflict,
	api.CodeSessionRunning:     exitConflict,
	api.CodeClaimRequired:      exitConflict,
	api.CodeClaimNotActive:     exitConflict,
	api.CodeOutcomeConflict:    exitConflict,
	api.CodeInstanceSuperseded: exitConflict,
	api.CodeWorkerRunning:      exitConflict,
	api.CodeStaleSignal:        exitConflict,
	api.CodeIdempotencyReuse:   exitConflict,
	api.CodePromptClosed:       exitConflict,
	api.CodePromptOpen:         exitConflict,
	api.CodeStaleVersion:       exitConflict,
	api.CodeNotClaimHolder:     exitConflict,
	api.CodeTaskDone:           exitConflict,
	api.CodeTaskBlocked:        exitConflict,
}

// explain turns any error of a call to the coordinator into a problem, and nil
// into nil. next is the command that helps when the refusal itself suggests none.
func explain(what string, err error, next string) error {
	if err == nil {
		return nil
	}
	var said *problem
	var code quietly
	if errors.As(err, &said) || errors.As(err, &code) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return quietly(exitInterrupted)
	}
	var refused *api.Error
	if errors.As(err, &refused) {
		return refusal(what, refused, next)
	}
	var silent *api.Unanswered
	if errors.As(err, &silent) {
		return &problem{code: exitUnreachable, what: what, why: "no server answers: " + api.Plain(silent), next: "stint up"}
	}
	return &problem{code: exitFailed, what: what, why: api.Plain(err), next: next}
}

// refusal puts into words what the coordinator refused.
func refusal(what string, e *api.Error, next string) error {
	p := &problem{code: exitFailed, what: what, next: next, refused: e}
	if code, ok := codeOf[e.Code]; ok {
		p.code = code
	}
	p.why = refusedBecause(e)
	switch e.Code {
	case api.CodeUnauthenticated:
		p.next = "stint login, or check STINT_TOKEN: unset, the data directory's owner.token is used"
	case api.CodeUnavailable, api.CodeOutcomeUnknown, api.CodeDatabaseMoved, api.CodeDatabaseDamaged:
		p.next = "stint status"
	case api.CodeNotFound:
		if strings.Contains(e.Detail, "workspace") {
			p.next = "stint workspace list"
		}
	}
	return p
}

// refusedBecause is a refusal's sentence with its fields, and with status, holder and expiry
// where it doesn't say them itself.
func refusedBecause(e *api.Error) string {
	var parts []string
	for i, f := range e.Fields {
		if i < len(e.Fields)-1 {
			f.Detail = strings.TrimSuffix(f.Detail, ".") // a semicolon comes
		}
		parts = append(parts, f.Field+": "+f.Detail)
	}
	text := e.Detail
	if len(parts) > 0 && e.Code != api.CodeStaleVersion { // whose detail has the versions
		text = strings.Join(parts, "; ")
	}
	if text == "" {
		text = string(e.Code)
	}
	var facts []string
	if e.Status != "" {
		facts = append(facts, "status "+string(e.Status))
	}
	if e.Holder != "" && !strings.Contains(text, e.Holder) {
		facts = append(facts, "held by "+e.Holder)
	}
	if !e.ExpiresAt.IsZero() && !strings.Contains(text, e.ExpiresAt.UTC().Format(time.DateTime)) {
		facts = append(facts, "until "+e.ExpiresAt.String())
	}
	if len(facts) > 0 {
		text = strings.TrimSuffix(text, ".") + " (" + strings.Join(facts, ", ") + ")"
	}
	return text
}

// report writes err, for a person or as one line of JSON, and returns the process's exit code.
// Errors that aren't a problem come from the flag and argument parser.
func (c *cli) report(err error) exit {
	if err == nil {
		return exitDone
	}
	var code quietly
	if errors.As(err, &code) {
		return exit(code)
	}
	var p *problem
	if !errors.As(err, &p) {
		p = &problem{code: exitUsage, what: err.Error(), next: "stint --help"}
		// The parser adds suggestions on separate lines.
		if first, rest, ok := strings.Cut(p.what, "\n"); ok {
			p.what = first
			if meant := strings.Fields(rest); len(meant) > 0 {
				p.next = "did you mean stint " + meant[len(meant)-1] + "?"
			}
		}
	}
	if p.refused == nil && p.why != "" {
		said := *p
		said.why = c.inFile(p.why)
		p = &said
	}
	if c.flags.json {
		fmt.Fprintf(c.err, "%s\n", p.document())
		return p.code
	}
	fmt.Fprintln(c.err, c.errLook.bad("stint: ")+plain(p.what))
	if p.why != "" {
		fmt.Fprintln(c.err, "  "+plain(p.why))
	}
	if p.next != "" {
		fmt.Fprintln(c.err, "  "+c.errLook.quiet("→ ")+plain(p.next))
	}
	return p.code
}

// exitOf is the exit code for somebody who waited for the session.
func exitOf(s api.Session) error {
	switch {
	case s.Status == api.Complete && s.Stopped():
		return quietly(exitStopped)
	case s.Mark() != "":
		return quietly(exitCutShort)
	case s.Status == api.Complete:
		return nil
	case s.Status == api.Failed:
		return quietly(exitError)
	case s.Status == api.Cancelled:
		return quietly(exitCancelled)
	default:
		return quietly(exitUnfinished)
	}
}
