package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"

	"stint/api"
	"stint/worker/proc"
)

// The outcomes of a session that is complete.
const (
	outcomeSuccess = api.OutcomeSuccess
	outcomeStopped = api.OutcomeStopped
)

// The reasons with which a session is given back.
const (
	reasonStopped   = "worker_stopped"
	reasonRestarted = "worker_restarted"
	reasonFenced    = "lease_not_kept"
)

// outcome is how a session turned out: the entry that finishes its claim. The zero outcome
// reports nothing, since nobody waits for it any more.
type outcome struct {
	kind string
	body any
}

func completed(how, result string) outcome {
	return outcome{entryComplete, api.CompleteRequest{Outcome: how, Result: result}}
}

func released(reason string) outcome {
	return outcome{entryRelease, api.ReleaseRequest{Reason: reason}}
}

func failed(f *api.Failure, result string) outcome {
	return outcome{entryFail, api.FailRequest{Code: f.Code, Message: cut(ansi.Strip(f.Message), maxMessage)[0], Result: result}}
}

const (
	maxMessage = 4 << 10 // bytes, the coordinator's limit
	maxResult  = 8 << 10 // bytes of the output's end that are kept as the result
)

// ended is the outcome of a session that was ended for a cause, with what it had produced so
// far.
func (s *session) ended(cause error, result string) outcome {
	switch {
	case errors.Is(cause, errCancelled), errors.Is(cause, errLost), errors.Is(cause, errRecordGone), errors.Is(cause, errSuperseded):
		return outcome{}
	case errors.Is(cause, errStop):
		return completed(outcomeStopped, result)
	case errors.Is(cause, errDraining), errors.Is(cause, errToldToStop):
		return released(reasonStopped)
	case errors.Is(cause, errFolderGone):
		return failed(refuse(CodeFolderNotFound, "The work folder %q vanished while the command ran.", s.claim.Trusted.Run.WorkFolder), result)
	case errors.Is(cause, proc.ErrGuardianLost):
		return failed(refuse(CodeCrashed, "The process that guards what the session runs was killed or stopped, so the worker ended all of it."), result)
	}
	return released(reasonFenced)
}

// conclude puts the outcome into the outbox. It has to succeed: it waits for space on a full
// disk as long as this process runs.
func (s *session) conclude(o outcome) {
	if o.kind == "" {
		s.out.drop()
		return
	}
	e, err := newEntry(o.kind, o.body)
	if err != nil {
		s.log.Error("the outcome can't be encoded", "error", err)
		return
	}
	s.at("conclude")
	s.persist("keep the outcome", func() error { return s.out.finish(e) })
	s.at("concluded")
}

// persist does a write to the state file until it succeeds, or reports false
// when this process ends first.
func (s *session) persist(doing string, do func() error) bool {
	var wait backoff
	for {
		err := do()
		if err == nil {
			return true
		}
		pause := wait.next(0)
		s.log.Error("the state file can't be written", "doing", doing, "again in", pause, "error", err)
		if !sleep(s.p.reporting, pause, nil) {
			return false
		}
	}
}

// execute runs the session's command and returns the outcome. Nothing of it runs any more when
// it returns. held says that the claim's request had waited, so that less of the lease may be
// left than we can count on: it is renewed first.
func (s *session) execute(life proc.Record, held bool) (out outcome) {
	ctx := s.claimContext.ctx
	if held {
		s.renewFirst(ctx)
	}
	if err := s.claimContext.check(); err != nil {
		return s.ended(err, "")
	}
	plan, failure := s.p.planFor(s.claim)
	if failure != nil {
		if failure.Code == CodePolicyBlocked {
			s.activity(api.ActivityPolicyDecision, failure.Message)
		}
		return failed(failure, "")
	}
	s.claim.Trusted = plan.trusted // from here on nothing reads the rest
	for _, n := range s.p.notices(s.claim.Trusted.AgentSlug) {
		s.status(n.Text)
	}
	at, o := s.enter(ctx, &plan)
	if at == nil {
		return o
	}
	defer func() {
		at.changed(out)
		at.close(ends(out))
	}()
	defer s.files.remove()
	attempt := func(try int, life proc.Record) (outcome, bool) { return s.converse(ctx, plan, try, life) }
	if plan.adapter == nil {
		claim := s.claim
		claim.Untrusted.Prompt = cmp.Or(plan.template, claim.Untrusted.Prompt)
		files, err := s.p.writePrompt(claim)
		if err != nil {
			s.log.Error("the prompt can't be written", "error", err)
			return released("worker_state_not_writable")
		}
		defer files.remove()
		files.given = s.files.fetchInto(ctx, filepath.Join(files.dir, "files"), claim.Untrusted.Files...)
		attempt = func(try int, life proc.Record) (outcome, bool) {
			o, again := newCommand(s, plan, files, try).run(ctx, life)
			if len(plan.checkArgv) == 0 || !successful(o) {
				return o, again
			}
			return newCheck(s, plan, files, try, o).run(ctx, proc.NewRecord(s.addr.Session.String()))
		}
	}
	hope := s.expects(ctx, plan)
	for try := s.firstTry(plan.tries); ; try++ {
		o, again := at.before(ctx)
		if ctx.Err() == nil && !again {
			o, again = attempt(try, life)
		}
		at.after()
		if !again || try > plan.tries {
			return hope.judge(context.WithoutCancel(ctx), o)
		}
		pause := tryDelay(try, plan.tryPause)
		s.countTry(try)
		s.status(fmt.Sprintf("Try %d of %d failed; the next one starts in %v.", try, plan.tries+1, pause))
		if !sleep(ctx, pause, nil) {
			return s.ended(context.Cause(ctx), "")
		}
		life = proc.NewRecord(s.addr.Session.String())
	}
}

func successful(o outcome) bool {
	done, ok := o.body.(api.CompleteRequest)
	return ok && (done.Outcome == outcomeSuccess || done.Outcome == api.OutcomeUnfinished)
}

// ends reports whether an outcome is the session's last: it isn't given back.
func ends(o outcome) bool { return o.kind == entryComplete || o.kind == entryFail }

// renewFirst beats until a beat works or the lease is over: a beat renews the claim, and is
// the sign of life that the offline clock counts from. contract 4.4
func (s *session) renewFirst(ctx context.Context) {
	var wait backoff
	for s.claimContext.check() == nil {
		err := s.rec.beat(ctx, false)
		if err == nil {
			s.claimContext.known()
			return
		}
		s.rec.wake() // the record finds out what this means for it
		s.log.Warn("lease not renewed before the start", "error", err)
		if !sleep(ctx, wait.next(api.RetryAfter(err)), nil) {
			return
		}
	}
}

// startFailure is what a command that could not be started ends with.
func startFailure(name string, err error) *api.Failure {
	for _, known := range []error{exec.ErrNotFound, fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC} {
		if errors.Is(err, known) {
			return executableFailure(name, err)
		}
	}
	return refuse(CodeCrashed, "The command could not be started: %v.", err)
}

// exitFailure is what a command that ended by itself, but not well, ends with.
func exitFailure(r proc.Result, stderr string) *api.Failure {
	f := refuse(CodeExitNonzero, "The command ended with exit code %d.", r.ExitCode)
	if r.Signal != 0 {
		f = refuse(CodeCrashed, "The command was ended by signal %d (%v).", int(r.Signal), r.Signal)
	}
	if stderr != "" {
		f.Message += "\n" + stderr
	}
	return f
}

// seconds is a limit of the agent's, none when it is 0.
func seconds(n int64) time.Duration { return time.Duration(min(max(n, 0), 1<<31)) * time.Second }
