package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/setup"
)

// host is the worker's side of one conversation: what the agent says goes through
// the outbox, what it asks to people.
type host struct {
	c       *conversation
	pace    *pace
	secrets [][]byte
	prefix  string // of the items' client ids

	mu       sync.Mutex
	count    int                     // items made; guarded by mu
	memory   memory                  // of the agent session; guarded by mu
	session  string                  // its id, once it has begun; guarded by mu
	usage    api.Usage               // reported; guarded by mu
	plan     string                  // reported; guarded by mu
	answered []api.Prompt            // not asked for again yet; guarded by mu
	consumed api.MessageID           // the last message in a turn that was begun; guarded by mu
	wind     error                   // why the turn that runs is the last; guarded by mu
	question context.CancelCauseFunc // ends the question that is asked; guarded by mu
	finished bool                    // the last turn had nothing left to take in; guarded by mu
}

func newHost(c *conversation, secrets [][]byte, m memory) *host {
	h := &host{c: c, pace: newPace(time.Now), secrets: secrets, prefix: rand.Text()[:10], memory: m}
	if said := c.s.claim.Conversation; said != nil {
		h.answered, h.consumed = said.Answered, said.LastConsumed
		if n := len(said.Messages); n > 0 {
			h.consumed = said.Messages[n-1].ID
		}
	}
	return h
}

// Began keeps the id by which the conversation can be resumed, here and with the session.
func (h *host) Began(agentSession string) error {
	h.mu.Lock()
	h.session = agentSession
	m := h.memory
	h.mu.Unlock()
	state, session := h.c.s.p.state, h.c.s.addr.Session
	kept := h.c.s.persist("keep the agent session", func() error {
		return errors.Join(state.remember(agentSession, m), state.setFact(latestName(session), agentSession))
	})
	if !kept {
		return errReportsOver
	}
	h.c.s.at("began")
	h.report(api.SessionPatch{AgentSessionID: &agentSession})
	h.pace.begin()
	return nil
}

// Item appends a line of the transcript, when there is room.
func (h *host) Item(it agent.Item) {
	_ = h.c.s.leash.check()
	h.pace.live()
	switch it.Kind {
	case api.ItemToolCall:
		h.pace.tool(it.CallID, true)
	case api.ItemToolResult:
		h.pace.tool(it.CallID, false)
	}
	held := h.pace.hold()
	defer held()
	h.c.s.out.room(h.c.s.leash.ctx)
	text := maskString(it.Text, h.secrets)
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
			ClientID: fmt.Sprintf("%s-%d", h.prefix, n), Kind: it.Kind, Tool: api.Excerpt(it.Tool, 200), CallID: it.CallID, Failed: it.Failed,
			Text: piece, At: api.Time{Time: time.Now()},
		})
	}
}

// Alive notes real progress.
func (h *host) Alive() {
	_ = h.c.s.leash.check()
	h.pace.live()
}

// Plan replaces the session's plan.
func (h *host) Plan(markdown string) {
	markdown = api.Excerpt(maskString(markdown, h.secrets), itemBytes)
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

// Usage reports what the session has used; the answer may say that it is too much.
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
	h.report(api.SessionPatch{Usage: &u})
	if limit := overOwn(h.c.plan.spend, u); limit != "" {
		h.c.s.overspent(limit)
	}
}

// overOwn says which limit of the owner's own file a session has reached, "" for none.
func overOwn(limit setup.Spend, u api.Usage) string {
	tokens := u.InputTokens + u.OutputTokens
	switch {
	case limit.SessionUSD > 0 && u.CostMicros >= limit.SessionMicros():
		return fmt.Sprintf("The session has cost $%.2f; the worker's owner allows $%.2f for one.", float64(u.CostMicros)/1e6, limit.SessionUSD)
	case limit.SessionTokens > 0 && tokens >= limit.SessionTokens:
		return fmt.Sprintf("The session has used %d tokens; the worker's owner allows %d for one.", tokens, limit.SessionTokens)
	}
	return ""
}

// Denied tells people what the policy refused.
func (h *host) Denied(a agent.Action, r agent.Ruling) {
	words := "was refused; the run goes on"
	if r == agent.DenyStop {
		words = "was refused and ends the run"
	}
	h.c.s.activity(api.ActivityPolicyDecision, fmt.Sprintf("The policy on %s: %s (%s) %s.", a.Area, api.Excerpt(maskString(a.What, h.secrets), 2000), a.Tool, words))
}

// Next ends a turn: what it had taken in is consumed. It answers what people wrote
// meanwhile; a coordinator that can't be reached is waited for as long as the
// claim lives, since what it would say may be a next turn.
func (h *host) Next(ctx context.Context) (turn string, more bool) {
	held := h.pace.hold()
	defer held()
	h.mu.Lock()
	last := h.consumed
	h.answered = nil
	h.mu.Unlock()
	h.report(api.SessionPatch{TurnEnded: true, LastConsumed: last})
	h.c.s.at("turn ended")
	if errors.Is(h.winding(), agent.ErrStopped) {
		return "", false
	}
	said, err := h.said(ctx, last)
	if err != nil {
		return "", false
	}
	if len(said) == 0 {
		h.mu.Lock()
		h.finished = true
		h.mu.Unlock()
		return "", false
	}
	if h.winding() != nil {
		return "", false
	}
	h.mu.Lock()
	h.consumed = said[len(said)-1].ID
	h.mu.Unlock()
	held()
	h.pace.begin()
	return h.c.brief.messages(said), true
}

// said reads the messages after the last that was taken in.
func (h *host) said(ctx context.Context, after api.MessageID) ([]api.Message, error) {
	var wait backoff
	for {
		got, err := h.c.s.p.client.Messages(ctx, h.c.s.addr.Session, after)
		if err == nil {
			return got.Items, nil
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

// report puts a change of the session into the outbox.
func (h *host) report(in api.SessionPatch) { h.c.s.report(entryPatch, in) }

// flush waits until what was said before is delivered, so that a question stands
// behind what led to it; not for long, since it may not be deliverable.
func (h *host) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	h.c.s.out.empty(ctx)
}

// windDown makes the turn that runs the last one, and ends a question.
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

// done reports whether the conversation came to its own end.
func (h *host) done() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.finished
}
