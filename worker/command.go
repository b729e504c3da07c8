package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"stint/api"
	"stint/worker/proc"
)

const stderrLines = 20 // of its end, in the message of a failure

// command is one try at running a session's command.
type command struct {
	s     *session
	plan  plan
	files promptFiles
	try   int
	out   *output
	of    *outcome // of the command that this one checks; nil = it is the session's own
}

func newCommand(s *session, p plan, f promptFiles, try int) *command {
	return &command{s: s, plan: p, files: f, try: try}
}

// newCheck makes the command that decides whether the good end of another counts
// (contract 10.10). It is told nothing on its standard input.
func newCheck(s *session, p plan, f promptFiles, try int, of outcome) *command {
	p.argv = p.checkArgv
	return &command{s: s, plan: p, files: f, try: try, of: &of}
}

// run starts the command and waits until nothing of it is left. again says that
// it failed in a way that another try may mend.
func (c *command) run(ctx context.Context, life proc.Record) (o outcome, again bool) {
	s := c.s
	env, err := c.environ()
	if err != nil {
		return failed(refuse(CodePolicyBlocked, "The agent's environment is not possible: %v.", err), ""), false
	}
	c.out = newOutput(s, secretsOf(env, c.plan.secrets(s.p.token(), s.claim.ClaimID.String())...))
	if c.plan.folder.vanished() {
		return failed(refuse(CodeFolderNotFound, "The work folder %q vanished before the command was started.", c.plan.folder.path), ""), false
	}
	if (c.try > 1 || c.of != nil) && !s.persist("journal the start", func() error { return s.p.state.setLife(s.heldID, life) }) {
		return released(reasonStopped), false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdin := c.files.text
	if c.of != nil {
		stdin = ""
	}
	deadline, _ := s.leash.deadline()
	if !s.launching() {
		return released(reasonStopped), false
	}
	s.at("start")
	running, err := proc.Start(ctx, proc.Spec{
		Record: life, Argv: slices.Concat(c.plan.wrapper, c.plan.argv), Dir: c.plan.folder.real, Env: env,
		Stdin: strings.NewReader(stdin), Stages: s.p.stages, Deadline: deadline,
	}, c.out.sink)
	s.at("started")
	if err != nil {
		s.launched(nil)
		if cause := s.leash.cause(); cause != nil || errors.Is(err, proc.ErrDeadline) {
			return s.ended(cause, ""), false
		}
		s.log.Warn("command not started", "error", err)
		return failed(startFailure(c.plan.argv[0], err), ""), false
	}
	// A failure to note the ids is no reason to end it: the mark is in the journal.
	if err := s.p.state.setLife(s.heldID, running.Record()); err != nil {
		s.log.Error("the command's process ids can't be journaled", "error", err)
	}
	s.at("recorded")
	s.log.Info("command started", "pid", running.Record().Agent.Pid, "try", c.try)
	s.activity(api.ActivityProgress, fmt.Sprintf("%s %s in %s%s.", c.verb(), filepath.Base(c.plan.argv[0]), c.plan.folder.path, c.tryWords()))
	r := c.follow(ctx, cancel, running)
	s.at("exited")
	c.out.close()
	return c.conclude(r)
}

func (c *command) verb() string {
	if c.of != nil {
		return "Checks the result with"
	}
	return "Started"
}

func (c *command) tryWords() string {
	if c.try == 1 {
		return ""
	}
	return fmt.Sprintf(", try %d", c.try)
}

// environ is the command's exact environment.
func (c *command) environ() ([]string, error) {
	p := c.s.p
	set := maps.Clone(c.plan.envSet)
	if set == nil {
		set = map[string]string{}
	}
	maps.Copy(set, sessionEnv(c.s.claim, p.client.URL(), p.client.Workspace(), c.files, c.try))
	return proc.Env(p.source, slices.Concat(p.opts.Env, c.plan.envNames), set)
}

// follow waits for the end of the command and meanwhile keeps its deadline and
// its limits.
func (c *command) follow(ctx context.Context, cancel context.CancelCauseFunc, running *proc.Process) proc.Result {
	var watches sync.WaitGroup
	watches.Go(func() { c.s.keepDeadline(running, running.Done()) })
	watches.Go(func() { c.keepLimits(cancel, running.Done()) })
	c.s.launched(func() {
		at := c.s.p.boot().Add(c.s.p.opts.DrainGrace + c.s.p.stages.Kill)
		if err := running.SetDeadline(at); err != nil {
			c.s.log.Warn("the command can't be hurried", "error", err)
		}
	})
	r := running.Wait()
	c.s.launched(nil)
	watches.Wait()
	return r
}

// keepLimits ends the command when it runs for too long, is silent for too long,
// or loses its folder.
func (c *command) keepLimits(cancel context.CancelCauseFunc, done <-chan struct{}) {
	t := c.s.claim.Trusted
	var tooLong <-chan time.Time
	if limit := seconds(t.TurnTimeoutSeconds); limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		tooLong = timer.C
	}
	stall := seconds(t.StallTimeoutSeconds)
	tick := time.NewTicker(c.s.p.clocks.Look)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tooLong:
			cancel(errTimeout)
		case <-tick.C:
			if stall > 0 && c.out.silence() >= stall {
				cancel(errStalled)
			}
			if c.plan.folder.vanished() {
				cancel(errFolderGone)
			}
		}
	}
}

// conclude turns how the command ended into the session's outcome.
func (c *command) conclude(r proc.Result) (o outcome, again bool) {
	s := c.s
	result := lastLines(c.out.end(proc.Stdout), 100)
	s.log.Info("command ended", "exit", r.ExitCode, "signal", int(r.Signal), "cause", r.Cause, "stage", r.Stage.String(), "swept", r.Swept)
	cause := r.Cause
	if lost := s.leash.cause(); cause != nil && lost != nil {
		cause = lost // the deadline and the lease's context come together; this one knows why
	}
	r.Cause = cause
	for _, line := range endWords(r) {
		s.status(line)
	}
	if len(r.Survivors) > 0 {
		// Nobody else may start this session while they live, so it isn't given back.
		s.outlived()
		if o := s.ended(cause, result); cause != nil && o.kind == entryRelease {
			return failed(refuse(CodeCrashed, "%d processes of the command could not be ended.", len(r.Survivors)), result), false
		}
	}
	if cause != nil {
		again = errors.Is(cause, errTimeout) || errors.Is(cause, errStalled) || errors.Is(cause, proc.ErrGuardianLost)
		return s.ended(cause, result), again
	}
	switch {
	case r.Success() && c.of != nil:
		return *c.of, false
	case r.Success():
		return completed(outcomeSuccess, result), false
	case c.of != nil:
		f := exitFailure(r, lastLines(c.out.end(proc.Stderr), stderrLines))
		return failed(refuse(CodeCheckFailed, "The command ended well, but its check did not. %s", f.Message), result), true
	}
	return failed(exitFailure(r, lastLines(c.out.end(proc.Stderr), stderrLines)), result), true
}

// number is a sentence about n things.
func number(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(more, n)
}

// endWords tells in lines for the session what happened at the end beyond the exit.
func endWords(r proc.Result) []string {
	var out []string
	if r.Cause != nil {
		line := "The worker ended the command: " + r.Cause.Error()
		for _, step := range []struct {
			word string
			at   time.Time
		}{{"interrupted", r.Interrupted}, {"asked to terminate", r.Terminated}, {"killed", r.Killed}} {
			if !step.at.IsZero() {
				line += "; " + step.word + " " + step.at.UTC().Format("15:04:05.000")
			}
		}
		out = append(out, line+" UTC.")
	}
	if r.Swept > 0 {
		out = append(out, number(r.Swept, "One process that the command left behind was ended.", "%d processes that the command left behind were ended."))
	}
	if n := len(r.Survivors); n > 0 {
		out = append(out, number(n, "One process could not be ended; it belongs to another user or the system holds it.", "%d processes could not be ended; they belong to another user or the system holds them."))
	}
	if r.OutputCut {
		out = append(out, "Something outside the session held the command's output open; reading was given up.")
	}
	return out
}
