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

const stderrLines = 20 // of stderr's end, in a failure's message

// command is one try at running a session's command.
type command struct {
	s     *session
	plan  plan
	files promptFiles
	try   int
	out   *output
	of    *outcome // of the command that this one checks; nil = this is the session's own
}

func newCommand(s *session, p plan, f promptFiles, try int) *command {
	return &command{s: s, plan: p, files: f, try: try}
}

// newCheck makes the command that decides whether another's success counts (contract 10.10).
// It gets nothing on its standard input.
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
	secrets := secretsOf(env, c.plan.secrets(s.p.token(), s.claim.RunToken, s.claim.ClaimID.String())...)
	s.out.hide(secrets)
	c.out = newOutput(s, secrets)
	if c.plan.folder.vanished() {
		return failed(refuse(CodeFolderNotFound, "The work folder %q vanished before the command was started.", c.plan.folder.path), ""), false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdin := c.files.text
	if c.of != nil {
		stdin = ""
	}
	running, err := s.launch(ctx, proc.Spec{
		Record: life, Argv: slices.Concat(c.plan.wrapper, c.plan.argv), Dir: c.plan.folder.real, Env: env,
		Stdin: strings.NewReader(stdin), Stages: s.p.stages,
	}, c.out.sink)
	if err != nil {
		return s.unlaunched(c.plan.argv[0], err), false
	}
	s.log.Info("command started", "pid", running.Record().Agent.Pid, "try", c.try)
	s.activity(api.ActivityProgress, fmt.Sprintf("%s %s in %s%s.", c.verb(), filepath.Base(c.plan.argv[0]), c.plan.folder.path, c.tryWords()))
	r := c.follow(cancel, running)
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

// follow waits for the end of the command and meanwhile keeps its limits.
func (c *command) follow(cancel context.CancelCauseFunc, running *proc.Process) proc.Result {
	var watch sync.WaitGroup
	watch.Go(func() { c.keepLimits(cancel, running.Done()) })
	r := running.Wait()
	watch.Wait()
	return r
}

// keepLimits ends the command when it runs for too long, is silent for too long,
// or loses its folder.
func (c *command) keepLimits(cancel context.CancelCauseFunc, done <-chan struct{}) {
	var tooLong <-chan time.Time
	if limit := c.plan.turnLimit; limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		tooLong = timer.C
	}
	tick := time.NewTicker(c.s.p.clocks.Look)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tooLong:
			cancel(errTimeout)
		case <-tick.C:
			c.out.awake.Tick()
			if stall := c.plan.stallLimit; stall > 0 && c.out.silence() >= stall {
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
	if lost := s.claimContext.cause(); cause != nil && lost != nil {
		cause = lost // the deadline and the lease's context end together; this one knows why
	}
	r.Cause = cause
	for _, line := range endWords(r) {
		s.status(line)
	}
	if len(r.Survivors) > 0 {
		// Nobody else may start this session while those processes are alive, so it isn't
		// given back.
		s.outlived()
		if o := s.ended(cause, result); cause != nil && o.kind == entryRelease {
			return failed(refuse(CodeCrashed, "%d processes of the command could not be ended.", len(r.Survivors)), result), false
		}
	}
	switch {
	case errors.Is(cause, errTimeout):
		return failed(refuse(CodeTurnTimeout, "The command ran longer than its limit of %v and was ended.", c.plan.turnLimit), result), true
	case errors.Is(cause, errStalled):
		return failed(refuse(CodeStalled, "The command printed nothing for %v and was ended.", c.plan.stallLimit), result), true
	}
	if cause != nil {
		return s.ended(cause, result), errors.Is(cause, proc.ErrGuardianLost)
	}
	switch {
	case r.Success():
		how := c.plan.endOf(r)
		switch { // nobody should have to go looking for it
		case r.Swept > 0 && how == api.OutcomeUnfinished && c.of == nil:
			s.marked(api.MarkUnfinished, api.ActivityProgress, "", leftBehind(r))
		case r.Swept > 0:
			s.activity(api.ActivityProgress, leftBehind(r))
		}
		if c.of != nil {
			return *c.of, false
		}
		return completed(how, result), false
	case c.of != nil:
		f := exitFailure(r, lastLines(c.out.end(proc.Stderr), stderrLines))
		return failed(refuse(CodeCheckFailed, "The command ended well, but its check did not. %s", f.Message), result), true
	}
	return failed(exitFailure(r, lastLines(c.out.end(proc.Stderr), stderrLines)), result), true
}

// keepers hold keys and sessions for other programs and have no work of their own that could
// be unfinished. The names are as the system truncates them.
var keepers = []string{"ssh-agent", "gpg-agent", "dirmngr", "keyboxd", "scdaemon", "dbus-daemon", "gnome-keyring-d"}

// endOf is the outcome of a command that ended well: not a plain success when something that
// may still have been working was ended with it. contract 15.4
func (o runSettings) endOf(r proc.Result) string {
	harmless := func(name string) bool {
		return slices.Contains(keepers, name) || slices.ContainsFunc(o.mayLeave, func(pattern string) bool {
			if len(name) == shownName && strings.HasPrefix(pattern, name) {
				return true // the system has truncated it
			}
			fits, _ := filepath.Match(pattern, name)
			return fits
		})
	}
	if r.Swept == 0 || len(r.Left) > 0 && !slices.ContainsFunc(r.Left, func(name string) bool { return !harmless(name) }) {
		return outcomeSuccess
	}
	return api.OutcomeUnfinished
}

// shownName is how much of a process's name the system keeps, in bytes.
const shownName = 15

// number is a sentence about n things.
func number(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(more, n)
}

// leftBehind says which of the session's processes outlived its program and were ended with
// it.
func leftBehind(r proc.Result) string {
	line := number(r.Swept, "One process that was left behind was ended", "%d processes that were left behind were ended")
	if len(r.Left) > 0 {
		line += ": " + strings.Join(r.Left, ", ")
	}
	return line + "."
}

// endWords says, in lines for the session, what happened at the end beyond the exit.
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
		out = append(out, leftBehind(r))
	}
	if n := len(r.Survivors); n > 0 {
		out = append(out, number(n, "One process could not be ended; it belongs to another user or the system holds it.", "%d processes could not be ended; they belong to another user or the system holds them."))
	}
	if r.OutputCut {
		out = append(out, "Something outside the session held the command's output open; reading was given up.")
	}
	return out
}
