package worker

import (
	"context"
	"errors"
	"fmt"

	"stint/api"
	"stint/worker/git"
)

// hope is what a session's agent says must come of it, beside that it ends well (contract
// 15.4). The zero hope is for nothing.
type hope struct {
	s      *session
	want   api.Expectation
	strict bool
	folder string
	env    []string
	found  string // how the session found its repository; "" = that isn't known
	blind  error  // why that isn't known
}

// expects looks at the session's folder before anything of it runs. A session that goes on
// after a release or a crash is compared with how its first life found the folder.
func (s *session) expects(ctx context.Context, p plan) hope {
	h := hope{s: s, want: p.expect, strict: p.strict, folder: p.folder.real, env: p.env}
	if !h.want.Changes {
		return h
	}
	name := foundName(s.addr.Session)
	if h.found, h.blind = s.p.state.fact(name); h.blind != nil || h.found != "" {
		return h
	}
	if h.found, h.blind = git.State(ctx, h.folder, s.p.gitWith(h.env)); h.blind == nil {
		h.blind = s.p.state.setFact(name, h.found)
	}
	return h
}

// expectsAfterCrash is for a session whose turn had ended when its worker was killed. Its folder
// isn't entered again.
func (s *session) expectsAfterCrash() hope {
	run := s.claim.Trusted.Run
	e, err := api.ParseExpect(run.Expect)
	if err != nil {
		s.log.Error("what is expected of the session can't be read", "error", err)
	}
	return hope{s: s, want: e, strict: run.Strict && !e.Changes, blind: errAfterCrash}
}

var errAfterCrash = errors.New("its worker was killed after its last turn")

// blindWords says for people why a folder could not be looked at, without its path.
func blindWords(err error) string {
	for _, known := range []error{errAfterCrash, git.ErrNoGit, git.ErrNoRepository, git.ErrForeign} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "git could not be asked"
}

func foundName(id api.SessionID) string { return "found by " + id.String() }

// judge turns a success into what it is without what was hoped for: marked, or a failure.
func (h hope) judge(ctx context.Context, o outcome) outcome {
	if !h.want.Any() || !successful(o) {
		return o
	}
	done := o.body.(api.CompleteRequest)
	why := h.missing(ctx, done.Result)
	if why == "" {
		return o
	}
	h.s.status(why)
	h.s.marked(api.MarkUnmet, api.ActivityProgress, "unmet-"+h.s.addr.Session.String(), why)
	if h.strict {
		return failed(&api.Failure{Code: CodeExpectationFailed, Message: why}, done.Result)
	}
	return o
}

// missing says what did not come of the session, "" when all did.
func (h hope) missing(ctx context.Context, result string) string {
	if re := h.want.Output; re != nil {
		if re.MatchString(result) {
			return ""
		}
		return fmt.Sprintf("Its result does not match what its agent expects: %s", re)
	}
	now, err := "", h.blind
	if err == nil {
		now, err = git.State(ctx, h.folder, h.s.p.gitWith(h.env))
	}
	switch {
	case err != nil:
		h.s.log.Warn("whether the session changed something can't be told", "error", err)
		return "Its agent expects changes, and whether there are any can't be told: " + blindWords(err) + "."
	case now == h.found:
		return "Its agent expects changes, and nothing in its repository changed."
	}
	return ""
}
