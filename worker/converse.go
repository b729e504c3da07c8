package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/proc"
)

var (
	errTalked = errors.New("the conversation is over")
	errBroken = errors.New("the session can't go on")
)

const (
	defaultTurnLimit  = time.Hour       // of a conversing agent, when it sets none
	defaultStallLimit = 5 * time.Minute // likewise
	goodbyeGrace      = 5 * time.Second // for a program to end by itself once its input has ended
)

// conversation is one try at a session of an agent that converses: its program
// under the guardian, its adapter on the program's streams, and this worker's
// side of the talk.
type conversation struct {
	s     *session
	plan  plan
	try   int
	brief briefing
	moved bool    // its agent session was held in another folder
	out   *output // the program's stderr
	host  *host
	env   []string // added by the adapter

	begun  string // the agent session that was begun in the session before, "" for none
	before past
	gone   bool // the program doesn't know the agent session it was to resume

	mu     sync.Mutex
	broken *api.Failure // why it can't go on; guarded by mu
}

func newConversation(s *session, p plan, try int) *conversation {
	return &conversation{s: s, plan: p, try: try, brief: newBriefing(s.claim)}
}

// run holds the conversation and waits until nothing of the program is left.
// again says that it failed in a way that another try may mend.
func (c *conversation) run(ctx context.Context, life proc.Record) (o outcome, again bool) {
	s := c.s
	known, m, err := c.lookBack()
	if err != nil {
		s.log.Error("what is kept of the agent session can't be read", "error", err)
		return released("worker_state_not_readable"), false
	}
	hidden, err := s.p.hidden()
	if err != nil {
		s.log.Error("what agents must not read isn't known", "error", err)
		return released("worker_state_not_readable"), false
	}
	c.brief.given = m.Given
	c.before.resumed = known != "" && known == c.begun
	if c.before.fresh = known == "" && (c.moved || s.claim.Session.AgentSessionID != ""); c.before.fresh {
		s.status(c.freshWords())
		if c.before.said, err = s.saidSoFar(ctx); err != nil {
			return s.ended(err, ""), false
		}
	}
	job := c.job(known, hidden, c.fetch(ctx))
	job.Used = m.Total
	if failure := c.mayUse(job); failure != nil {
		return failed(failure, ""), false
	}
	cmd, err := c.plan.adapter.Command(job)
	if refused := (*agent.Refusal)(nil); errors.As(err, &refused) {
		return failed(&refused.Failure, ""), false
	}
	if err == nil {
		err = cmd.Prepare(job.StateDir)
	}
	if err != nil {
		s.log.Error("the agent can't be prepared", "error", err)
		return failed(refuse(CodeCrashed, "The agent's own files can't be written."), ""), false
	}
	s.startNotes(slices.Concat(cmd.Notes, cmd.Unheld))
	secrets := secretsOf(slices.Concat(job.Env, cmd.Env), c.plan.secrets(s.p.token(), s.claim.RunToken, s.claim.ClaimID.String())...)
	s.out.hide(secrets)
	secrets = longestFirst(slices.Concat(secrets, s.p.told.in(s.thread)))
	c.out, c.env = newOutput(s, secrets), cmd.Env
	c.host = newHost(c, secrets, m)
	if !s.converses(c.host.windDown) {
		return s.ended(s.claimContext.cause(), ""), false
	}
	defer s.converses(nil)
	return c.hold(ctx, life, job, cmd)
}

// lookBack finds out whether this worker can resume the session's agent session.
func (c *conversation) lookBack() (agentSession string, m memory, err error) {
	if c.begun, err = c.s.p.state.fact(latestName(c.s.addr.Session)); err != nil {
		return "", m, err
	}
	id := cmp.Or(c.begun, c.s.claim.Session.AgentSessionID)
	m, known, err := c.s.p.state.remembered(id)
	if c.moved = known && m.Folder != "" && m.Folder != c.plan.folder.real; c.moved {
		m, known = memory{}, false
	}
	if !known {
		// A new one counts from nothing; the session has used something already.
		u := c.s.usedSoFar()
		m = m.taken(c.s.addr.Session, c.plan.folder.real)
		m.Base = api.Usage{InputTokens: -u.InputTokens, OutputTokens: -u.OutputTokens, CostMicros: -u.CostMicros}
		return "", m, err
	}
	return id, m.taken(c.s.addr.Session, c.plan.folder.real), err
}

func latestName(s api.SessionID) string { return "agent-session-of " + s.String() }

func (c *conversation) job(resume string, hidden []string, files []agent.File) agent.Job {
	s, p := c.s, c.plan
	env := slices.Concat(p.env, envOf(sessionEnv(s.claim, s.p.client.URL(), s.p.client.Workspace(), promptFiles{}, c.try)))
	return agent.Job{
		Executable: p.executable, Dir: p.folder.real, Env: env,
		StateDir: s.p.agentState(p.kind),
		Hidden:   hidden,
		System:   c.brief.system(p.instructions), Turn: c.brief.turn(p.template, c.before), Files: files, FilesDir: s.files.folder(), Session: resume, Begin: agent.NewID(),
		Model: p.choice.Model, Effort: p.choice.Effort, PlanMode: p.choice.PlanMode, MaxTurns: p.maxTurns, Permissions: p.permissions, Policy: p.policy, Uses: p.uses,
		Hook: ourselves(agent.HookArg), Tools: p.tools(), AnswerLimit: p.answerLimit, Grace: s.p.stages.Interrupt,
	}
}

func envOf(set map[string]string) []string {
	out := make([]string, 0, len(set))
	for name, value := range set {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// hold starts the program, talks, and ends it.
func (c *conversation) hold(ctx context.Context, life proc.Record, job agent.Job, cmd agent.Command) (o outcome, again bool) {
	s := c.s
	if c.plan.folder.vanished() {
		return failed(refuse(CodeFolderNotFound, "The work folder %q vanished before the agent was started.", c.plan.folder.path), ""), false
	}
	// The program is not ended with the claim's context: the adapter interrupts it first, in
	// its own way, which counts as the first of the stages.
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	stages := s.p.stages
	stages.Interrupt = 0
	in, feed := io.Pipe()
	listen, heard := io.Pipe()
	p, err := s.launch(running, proc.Spec{
		Record: life, Argv: slices.Concat(c.plan.wrapper, cmd.Argv), Dir: c.plan.folder.real, Env: with(job.Env, cmd.Env),
		Stdin: in, Stages: stages,
	}, func(chunk proc.Chunk) {
		if chunk.Stream == proc.Stdout {
			_, _ = heard.Write(chunk.Data) // nobody listens once the conversation is over
			return
		}
		c.out.sink(chunk)
	})
	if err != nil {
		return s.unlaunched(cmd.Argv[0], err), false
	}
	s.log.Info("agent started", "pid", p.Record().Agent.Pid, "try", c.try, "resumed", job.Session != "")
	s.activity(api.ActivityProgress, c.startWords(cmd, job))
	go func() {
		<-p.Done()
		heard.Close() // the adapter learns that the program is gone
	}()
	res, err := c.talk(ctx, agent.Pipes{In: feed, Out: listen}, job)
	s.at("talked")
	// Nothing is read any more, and the program's input ends: it gets its grace to exit by
	// itself.
	listen.CloseWithError(errTalked)
	feed.Close()
	r := c.end(p, end)
	s.at("exited")
	c.out.close()
	return c.conclude(res, err, r)
}

func (c *conversation) startWords(cmd agent.Command, job agent.Job) string {
	what := "Started"
	if job.Session != "" {
		what = "Resumed the agent session with"
	}
	words := fmt.Sprintf("%s %s in %s", what, filepath.Base(cmd.Argv[0]), c.plan.folder.path) + choiceWords(job)
	if c.try > 1 {
		words += fmt.Sprintf(", try %d", c.try)
	}
	return words + "."
}

// choiceWords say what the program was told about how to think.
func choiceWords(job agent.Job) (out string) {
	if job.Model != "" {
		out += ", model " + job.Model
	}
	if job.Effort != "" {
		out += ", effort " + job.Effort
	}
	if job.PlanMode {
		out += ", to plan only"
	}
	return out
}

// with is env plus additions, which win.
func with(env, additions []string) []string {
	names := map[string]bool{}
	for _, v := range additions {
		name, _, _ := strings.Cut(v, "=")
		names[name] = true
	}
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return names[name]
	})
	return append(out, additions...)
}

// talk runs the adapter while it keeps the limits.
func (c *conversation) talk(ctx context.Context, pipes agent.Pipes, job agent.Job) (agent.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	var limits sync.WaitGroup
	limits.Go(func() { c.keepLimits(cancel, over) })
	limits.Go(func() { c.host.listen(ctx, over) })
	c.s.breakable(func(f *api.Failure) {
		c.mu.Lock()
		if c.broken == nil {
			c.broken = f
		}
		c.mu.Unlock()
		cancel(errBroken)
	})
	job.Approvals = standing{h: c.host, files: c.host.files(), slug: c.s.claim.Session.AgentSlug}
	res, err := c.plan.adapter.Converse(ctx, pipes, job, c.host)
	c.s.breakable(nil)
	close(over)
	limits.Wait()
	if err == nil && ctx.Err() != nil && res.Failure != nil {
		err = context.Cause(ctx) // it failed because it was cut short
	}
	return res, err
}

// end lets the program exit and makes sure that it is gone.
func (c *conversation) end(p *proc.Process, end context.CancelCauseFunc) proc.Result {
	grace := time.NewTimer(goodbyeGrace)
	defer grace.Stop()
	select {
	case <-p.Done():
	case <-grace.C:
	case <-c.s.claimContext.ctx.Done():
	}
	end(errTalked)
	return p.Wait()
}

// keepLimits cuts the conversation short when a turn takes too long, the agent is
// silent for too long, or its folder is gone.
func (c *conversation) keepLimits(cancel context.CancelCauseFunc, over <-chan struct{}) {
	turn, stall := c.plan.turnLimit, c.plan.stallLimit
	tick := time.NewTicker(c.s.p.clocks.Look)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			c.host.awake.Tick()
			if err := c.host.turnClock.over(turn, stall); err != nil {
				cancel(err)
			}
			if c.plan.folder.vanished() {
				cancel(errFolderGone)
			}
		}
	}
}

// conclude turns how the conversation ended into the session's outcome.
func (c *conversation) conclude(res agent.Result, err error, r proc.Result) (o outcome, again bool) {
	s := c.s
	s.log.Info("agent ended", "exit", r.ExitCode, "signal", int(r.Signal), "stage", r.Stage.String(), "swept", r.Swept, "error", err)
	text := api.Excerpt(c.host.mask(res.Text), maxResult)
	for _, line := range leftWords(r) {
		s.status(line)
	}
	cause := s.claimContext.cause()
	if len(r.Survivors) > 0 {
		s.outlived()
		if o := s.ended(cause, text); cause == nil || o.kind == entryRelease {
			return failed(refuse(CodeCrashed, "%d processes of the agent could not be ended.", len(r.Survivors)), text), false
		}
	}
	wind := c.host.winding()
	if said, rests := c.host.atRest(); rests && !errors.Is(err, errBroken) && (cause != nil || err != nil || wind != nil || res.Failure != nil) {
		// Whatever ended the conversation came after its last turn, which isn't done again.
		// contract 10.11
		how := outcomeSuccess
		if errors.Is(wind, agent.ErrStopped) || errors.Is(cause, errStop) {
			how = outcomeStopped
		}
		return completed(how, cmp.Or(text, said)), false
	}
	switch {
	case cause != nil:
		return s.ended(cause, text), false
	case errors.Is(err, errBroken):
		c.mu.Lock()
		defer c.mu.Unlock()
		return failed(c.broken, text), false
	case errors.Is(err, errTimeout):
		return failed(refuse(CodeTurnTimeout, "A turn of the agent took longer than its limit of %v and was ended.", c.plan.turnLimit), text), true
	case errors.Is(err, errStalled):
		return failed(refuse(CodeStalled, "The agent gave no sign of life for %v and was ended.", c.plan.stallLimit), text), true
	case errors.Is(err, errFolderGone):
		return s.ended(err, text), false
	case errors.Is(err, agent.ErrParked):
		return outcome{entryRelease, api.ReleaseRequest{Reason: "parked", Park: true}}, false
	case errors.Is(wind, agent.ErrStopped):
		return completed(outcomeStopped, text), false
	case wind != nil && errors.Is(err, wind):
		return released(reasonStopped), false // it was in the middle of a question
	case errors.Is(r.Cause, proc.ErrGuardianLost):
		return s.ended(r.Cause, text), true
	case err == nil && res.Failure == nil && len(res.Running) > 0:
		return s.unfinished(c.host.running(res.Running), text), false
	case err == nil && res.Failure == nil:
		if r.Swept > 0 {
			s.activity(api.ActivityProgress, leftBehind(r))
		}
		return completed(outcomeSuccess, text), false
	case res.Failure == nil:
		return failed(refuse(CodeCrashed, "The conversation with the agent broke off: %v.", err), text), true
	}
	return c.failure(res, r, text)
}

// failure is the outcome of a conversation that was ended by the agent itself or by something
// it depends on.
func (c *conversation) failure(res agent.Result, r proc.Result, text string) (o outcome, again bool) {
	f := *res.Failure
	c.gone = res.Unknown
	f.Message = c.host.mask(f.Message)
	if f.Code == agent.CodeUsageLimit && (res.Retriable || !res.ResetAt.IsZero()) {
		at := limitedUntil(res.ResetAt, time.Now(), c.s.claim.Session.Releases)
		c.s.status("The agent's usage limit is reached; the session goes on after " + at.UTC().Format("2006-01-02 15:04:05 UTC") + ". " + f.Message)
		return outcome{entryRelease, api.ReleaseRequest{Reason: "usage_limit", NotBefore: api.Time{Time: at}, Named: at.Equal(res.ResetAt)}}, false
	}
	if f.Code == agent.CodePolicy {
		c.s.activity(api.ActivityPolicyDecision, f.Message)
	}
	if f.Code == agent.CodeCrashed {
		if r.Signal != 0 {
			f.Message += fmt.Sprintf(" The program was ended by signal %d (%v).", int(r.Signal), r.Signal)
		} else if r.ExitCode != 0 {
			f.Message += fmt.Sprintf(" The program's exit code was %d.", r.ExitCode)
		}
		if end := lastLines(c.out.end(proc.Stderr), stderrLines); end != "" {
			f.Message += "\n" + end
		}
	}
	return failed(&f, text), res.Retriable
}

// unfinished is the outcome of a conversation whose last turn ended while the program still
// ran something. The turn was over, the work may not have been: that is not a plain success.
// contract 15.4
func (s *session) unfinished(what []string, text string) outcome {
	line := "When the agent's turn ended it had this still running, which was ended with it: " + strings.Join(what, "; ") + "."
	s.status(line)
	s.marked(api.MarkUnfinished, api.ActivityProgress, "", line)
	return completed(api.OutcomeUnfinished, text)
}

// leftWords says, in lines for the session, what was left behind.
func leftWords(r proc.Result) []string {
	r.Cause = nil
	return endWords(r)
}
