package worker

import (
	"context"
	"slices"

	"stint/api"
	"stint/worker/agent"
)

// listen reads what people say to the running turn until ctx ends or over is closed, so that it
// doesn't wait for the turn's end (contract 6.6). A coordinator that can't tell of it in time still hands it over between
// turns.
func (h *host) listen(ctx context.Context, over <-chan struct{}) {
	if !h.c.plan.kind.Steers() {
		return
	}
	ctx, deaf := context.WithCancel(ctx)
	defer deaf()
	go func() {
		defer deaf()
		select {
		case <-over:
		case <-ctx.Done():
		}
	}()
	h.mu.Lock()
	after := h.consumed
	h.mu.Unlock()
	var wait backoff
	for ctx.Err() == nil {
		got, err := h.c.s.p.client.AwaitMessages(ctx, h.c.s.addr.Session, after, h.c.s.p.clocks.Hold)
		switch {
		case err == nil:
			wait.reset()
			for _, m := range got.Items {
				after = m.ID
				if m.Now {
					h.c.s.files.fetch(ctx, m.Files...)
				}
				h.urge(m)
			}
		case ctx.Err() != nil || refusedForGood(err):
			return
		default:
			sleep(ctx, wait.next(api.RetryAfter(err)), nil)
		}
	}
}

// urge offers a message to the running turn.
func (h *host) urge(m api.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !m.Now || !m.TakenAt.IsZero() || m.ID <= h.consumed || slices.Contains(h.memory.Given, m.ID) {
		return
	}
	h.urgent = append(h.urgent, m)
	select {
	case h.urged <- struct{}{}:
	default: // a look is already due
	}
}

// Urged is part of [agent.Host].
func (h *host) Urged() <-chan struct{} { return h.urged }

// Urgent takes the next message for the running turn, once it is kept that the agent session may
// have it: after a crash the next turn then says so. What can't be kept waits for the next turn.
func (h *host) Urgent() (agent.Said, bool) {
	h.mu.Lock()
	if len(h.urgent) == 0 || h.wind != nil {
		h.mu.Unlock()
		return agent.Said{}, false
	}
	m := h.urgent[0]
	h.urgent = h.urgent[1:]
	h.memory.Given = append(slices.Clone(h.memory.Given), m.ID)
	kept, id := h.memory, h.session
	h.mu.Unlock()
	s := h.c.s
	if err := s.p.state.remember(id, kept); err != nil {
		s.log.Error("a message to the running turn can't be journaled and waits for the next turn", "error", err)
		h.notGiven(m.ID)
		return agent.Said{}, false
	}
	s.steered = true
	s.at("steered")
	return agent.Said{ID: m.ID.String(), Text: h.c.brief.messages([]api.Message{m}, nil), Files: s.files.have(m.Files...)}, true
}

// Took is part of [agent.Host].
func (h *host) Took(id string, in bool) {
	var m api.MessageID
	if m.UnmarshalText([]byte(id)) != nil {
		return
	}
	if !in {
		h.notGiven(m)
		return
	}
	h.mu.Lock()
	known := slices.Contains(h.memory.Given, m) && !h.took[m]
	h.took[m] = true
	h.mu.Unlock()
	if known {
		h.report(api.SessionPatch{Taken: []api.MessageID{m}})
	}
}

// notGiven notes that a message is the next turn's after all.
func (h *host) notGiven(m api.MessageID) {
	h.mu.Lock()
	h.memory.Given = slices.DeleteFunc(slices.Clone(h.memory.Given), func(g api.MessageID) bool { return g == m })
	kept, id := h.memory, h.session
	h.mu.Unlock()
	if err := h.c.s.p.state.remember(id, kept); err != nil {
		h.c.s.log.Error("what is kept of the agent session can't be written", "error", err)
	}
}

// left are the messages of a page that no turn of this conversation has taken in. more says that
// all of the page were, so that the next has to be read.
func (h *host) left(page []api.Message) (out []api.Message, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range page {
		if !h.took[m.ID] {
			out = append(out, m)
		}
	}
	return out, len(out) == 0 && len(page) > 0
}

// settle forgets what a turn that begins, and takes in the messages up to one, leaves nothing open
// of. It returns what may have been given to the agent session before.
func (h *host) settle(takesIn api.MessageID) (given []api.MessageID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	given = h.memory.Given
	h.memory.Given = slices.DeleteFunc(slices.Clone(given), func(m api.MessageID) bool { return h.took[m] })
	h.urgent = slices.DeleteFunc(h.urgent, func(m api.Message) bool { return m.ID <= takesIn })
	return given
}

// again reads anew what people said before another try: the last one may have been given some of
// it. An error is the cause for which the session ends.
func (s *session) again(ctx context.Context) error {
	if !s.steered {
		return nil
	}
	return s.hearAnew(ctx)
}
