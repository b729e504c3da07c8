package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/proc"
	"stint/worker/setup"
)

// host is the worker's side of one conversation: what the agent says goes through the outbox,
// what it asks goes to people.
type host struct {
	c         *conversation
	awake     *proc.Awake // ticked by whoever enforces the limits
	turnClock *turnClock
	secrets   hushed
	prefix    string // of the items' client ids

	mu       sync.Mutex
	count    int                     // items made; guarded by mu
	memory   memory                  // of the agent session; guarded by mu
	session  string                  // its id, once it has begun; guarded by mu
	usage    api.Usage               // reported; guarded by mu
	plan     string                  // reported; guarded by mu
	answered []api.Prompt            // not asked for again yet; guarded by mu
	consumed api.MessageID           // the last message in a turn that was begun; guarded by mu
	wind     error                   // why the current turn is the last; guarded by mu
	question context.CancelCauseFunc // ends the question that is asked; guarded by mu
	rests    bool                    // a turn has ended and no other has begun; guarded by mu
	last     string                  // what the agent said at its end; guarded by mu
	urgent   []api.Message           // for the running turn; guarded by mu
	took     map[api.MessageID]bool  // by turns of this conversation, before older ones; guarded by mu
	urged    chan struct{}           // one token: there may be something urgent
}

func newHost(c *conversation, secrets [][]byte, m memory) *host {
	awake := proc.NewAwake(c.s.p.clocks.Look)
	h := &host{c: c, awake: awake, turnClock: newTurnClock(time.Now, awake.Now), secrets: hushed{all: secrets}, prefix: rand.Text()[:10], memory: m, took: map[api.MessageID]bool{}, urged: make(chan struct{}, 1)}
	if said := c.s.claim.Conversation; said != nil {
		h.answered, h.consumed = said.Answered, said.LastConsumed
		if n := len(said.Messages); n > 0 {
			h.consumed = said.Messages[n-1].ID
		}
	}
	return h
}

// Began keeps the id by which the conversation can be resumed, here and in the session's
// record.
func (h *host) Began(agentSession string) error {
	h.mu.Lock()
	h.session = agentSession
	m := h.memory
	h.mu.Unlock()
	state, session := h.c.s.p.state, h.c.s.addr.Session
	stored := h.c.s.persist("keep the agent session", func() error {
		return errors.Join(state.remember(agentSession, m), state.setFact(latestName(session), agentSession))
	})
	if !stored {
		return errReportsOver
	}
	h.c.s.at("began")
	patch := api.SessionPatch{AgentSessionID: &agentSession}
	if h.c.s.claim.Session.Mode == api.Local {
		patch.ResumeCommand = new(h.c.resumeCommand(agentSession))
	}
	h.report(patch)
	h.turnClock.begin()
	return nil
}

// Notice is part of [agent.Host].
func (h *host) Notice(text string) { h.c.s.status(h.mask(text)) }

// Item appends a line of the transcript, when there is room.
func (h *host) Item(it agent.Item) {
	_ = h.c.s.claimContext.check()
	h.turnClock.live()
	switch it.Kind {
	case api.ItemToolCall:
		h.turnClock.tool(it.CallID, true)
	case api.ItemToolResult:
		h.turnClock.tool(it.CallID, false)
	}
	held := h.turnClock.hold()
	defer held()
	h.c.s.out.room(h.c.s.claimContext.ctx)
	text := h.mask(it.Text)
	pieces := []string{api.Excerpt(text, itemBytes)}
	if it.Kind == api.ItemText {
		pieces = cut(text, itemBytes)
	}
	for _, piece := range pieces {
		h.mu.Lock()
		h.count++
		n := h.count
		h.mu.Unlock()
		h.c.s.report(entryItem, api.ItemInput{
			ClientID: fmt.Sprintf("%s-%d", h.prefix, n), Kind: it.Kind, Tool: api.Line(api.Excerpt(it.Tool, 200)), CallID: api.Line(it.CallID), Failed: it.Failed,
			Text: piece, At: api.Time{Time: time.Now()},
		})
	}
}

// Alive notes real progress.
func (h *host) Alive() {
	_ = h.c.s.claimContext.check()
	h.turnClock.live()
}

// Plan replaces the session's plan.
func (h *host) Plan(markdown string) {
	markdown = api.Excerpt(h.mask(markdown), itemBytes)
	h.mu.Lock()
	same := markdown == h.plan
	h.plan = markdown
	h.mu.Unlock()
	if same {
		return
	}
	h.report(api.SessionPatch{Plan: &markdown})
	h.c.s.activity(api.ActivityPlanUpdated, "The plan was changed.")
}

// Usage reports what the session has used; the answer may say that this is too much.
func (h *host) Usage(total api.Usage) {
	h.mu.Lock()
	u := h.memory.used(total)
	same := u == h.usage
	h.usage = u
	m, id := h.memory, h.session
	h.mu.Unlock()
	if same {
		return
	}
	if id != "" {
		if err := h.c.s.p.state.remember(id, m); err != nil {
			h.c.s.log.Error("what the agent session used can't be kept", "error", err)
		}
	}
	h.c.s.uses(u)
	h.report(api.SessionPatch{Usage: &u})
	if limit := overOwn(h.c.plan.spend, u); limit != "" {
		h.c.s.overspent(limit)
	}
}

// overOwn says which limit in the owner's own file a session has reached, "" for none.
func overOwn(limit setup.Spend, u api.Usage) string {
	tokens := u.InputTokens + u.OutputTokens
	switch {
	case limit.SessionUSD > 0 && u.CostMicros >= limit.SessionMicros():
		return fmt.Sprintf("The session has cost %s; the worker's owner allows %s for one.", api.Dollars(u.CostMicros), api.Dollars(limit.SessionMicros()))
	case limit.SessionTokens > 0 && tokens >= limit.SessionTokens:
		return fmt.Sprintf("The session has used %d tokens; the worker's owner allows %d for one.", tokens, limit.SessionTokens)
	}
	return ""
}

// Denied shows people what the policy refused.
func (h *host) Denied(a agent.Action, r agent.Ruling) {
	words := "was refused; the run goes on"
	if r == agent.DenyStop {
		words = "was refused and ends the run"
	}
	h.c.s.marked(api.MarkRefused, api.ActivityPolicyDecision, "", fmt.Sprintf("The policy on %s: %s (%s) %s.", a.Area, api.Excerpt(h.mask(a.What), 2000), a.Tool, words))
}

// ToolsFailed shows people that tools which the agent was to have did not start.
func (h *host) ToolsFailed(why string) {
	line := h.mask(why)
	h.Notice(line)
	h.c.s.marked(api.MarkToolFailed, api.ActivityProgress, "", line)
}

// declined notes that people, or the time that they had, refused what the agent asked for.
func (h *host) declined(p api.Prompt, q agent.Question) {
	if q.Kind != agent.AskApproval || p.Answer == nil || p.Answer.Approved != nil && *p.Answer.Approved {
		return
	}
	who := "A person refused: "
	if strings.HasPrefix(p.Answer.Text, nobodyAnswered) {
		who = nobodyAnswered + " So it was refused: "
	}
	h.c.s.marked(api.MarkRefused, api.ActivityProgress, "refused-"+p.ID.String(), who+api.Excerpt(h.mask(q.Action.What), 2000))
}

// Next ends a turn: what it had taken in is consumed, and its result is kept, so that it is
// handed in whatever follows and never done again (contract 10.11). It returns what people
// wrote meanwhile; it waits for a coordinator that can't be reached as long as the claim
// lasts, since the answer may be a next turn.
func (h *host) Next(ctx context.Context, text string) (turn agent.Said, more bool) {
	held := h.turnClock.hold()
	defer held()
	h.mu.Lock()
	last := h.consumed
	h.answered = nil
	h.mu.Unlock()
	if !h.turnEnded(last, api.Excerpt(h.mask(text), maxResult)) {
		return turn, false
	}
	h.c.s.at("turn ended")
	if errors.Is(h.winding(), agent.ErrStopped) {
		return turn, false
	}
	said, err := h.said(ctx, last)
	if err != nil {
		return turn, false
	}
	if len(said) == 0 || h.winding() != nil {
		return turn, false // what is said to an ending session becomes a session of its own
	}
	h.c.s.turnChanged(ctx)
	files := h.c.s.files.fetch(ctx, filesOf(said)...)
	takesIn := said[len(said)-1].ID
	given := h.settle(takesIn)
	if !h.turnBegins(ctx, takesIn) {
		return turn, false
	}
	held()
	h.turnClock.begin()
	h.c.s.at("turn begun")
	return agent.Said{Text: h.c.brief.messages(said, given), Files: files}, true
}

// turnEnded keeps and reports the end of a turn that had taken in the messages up to one. It
// reports false when this process ends before that is stored.
func (h *host) turnEnded(consumed api.MessageID, said string) bool {
	s := h.c.s
	e, err := newEntry(entryPatch, api.SessionPatch{TurnEnded: true, LastConsumed: consumed})
	if err != nil {
		s.log.Error("a turn's end can't be encoded", "error", err)
		return false
	}
	h.mu.Lock()
	h.rests, h.last = true, said
	h.mu.Unlock()
	return s.persist("keep the turn's end", func() error { return s.out.turnEnds(e, said) })
}

// turnBegins notes that a turn begins which takes in the messages up to one. It reports false
// when the claim's time is over: then no turn begins.
func (h *host) turnBegins(ctx context.Context, takesIn api.MessageID) bool {
	s := h.c.s
	if ctx.Err() != nil || !s.persist("journal the turn's begin", func() error { return s.p.state.turnBegins(s.heldID) }) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.consumed, h.rests, h.last = takesIn, false, ""
	return true
}

// said reads the messages after the last one that was taken in, without those that a turn took in
// before older ones.
func (h *host) said(ctx context.Context, after api.MessageID) ([]api.Message, error) {
	var wait backoff
	for {
		got, err := h.c.s.p.client.Messages(ctx, h.c.s.addr.Session, after)
		if err == nil {
			left, more := h.left(got.Items)
			if !more {
				return left, nil
			}
			after = got.Items[len(got.Items)-1].ID
			continue
		}
		if ctx.Err() != nil || refusedForGood(err) {
			return nil, err
		}
		h.c.s.log.Warn("messages can't be read yet", "error", err)
		if !sleep(ctx, wait.next(api.RetryAfter(err)), h.c.s.retry) {
			return nil, context.Cause(ctx)
		}
	}
}

// running are the things that an agent had running, in a form that can be shown.
func (h *host) running(what []string) []string {
	out := make([]string, 0, len(what))
	for _, one := range what[:min(len(what), 8)] {
		out = append(out, api.Excerpt(oneLine(h.mask(one)), 200))
	}
	return out
}

// report puts a change of the session into the outbox.
func (h *host) report(in api.SessionPatch) { h.c.s.report(entryPatch, in) }

// flush waits until what was said before is delivered, so that a question appears after what
// led to it; not for long, since it may not be deliverable.
func (h *host) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	h.c.s.out.empty(ctx)
}

// windDown makes the current turn the last one, and ends a question.
func (h *host) windDown(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wind == nil || errors.Is(cause, agent.ErrStopped) {
		h.wind = cause
	}
	if h.question != nil {
		h.question(cause)
	}
}

func (h *host) winding() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wind
}

// asking notes how to end the question, and reports false when none may be asked.
func (h *host) asking(end context.CancelCauseFunc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wind != nil {
		return false
	}
	h.question = end
	return true
}

func (h *host) asked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.question = nil
}

// atRest is what the agent said last, if its turn has ended and no other has begun.
func (h *host) atRest() (said string, rests bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, h.rests
}
