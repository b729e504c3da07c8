package agenttest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"stint/api"
	"stint/worker/agent"
)

// Host is a worker's side of a conversation that records its calls. The fields above mu are
// set before the conversation.
type Host struct {
	Answer  func(context.Context, agent.Question) (agent.Answer, error) // nil: everything is declined
	Turns   []string                                                    // the turns after the first
	Files   []agent.File                                                // that come with the second turn
	Refuses error                                                       // what Began returns

	mu     sync.Mutex
	began  []string
	items  []agent.Item
	plans  []string
	usages []api.Usage
	denied []Denial
	asked  []agent.Question
	alive  int
	said   []agent.Said
	urged  chan struct{}
	took   []string
}

// Denial is what the policy refused.
type Denial struct {
	Action agent.Action
	Ruling agent.Ruling
}

// Began is part of [agent.Host].
func (h *Host) Began(session string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began = append(h.began, session)
	return h.Refuses
}

// Item is part of [agent.Host].
func (h *Host) Item(i agent.Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.items = append(h.items, i)
	h.alive++
}

// Notice is part of [agent.Host].
func (h *Host) Notice(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.items = append(h.items, agent.Item{Kind: api.ItemStatus, Text: text})
}

// Alive is part of [agent.Host].
func (h *Host) Alive() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive++
}

// Plan is part of [agent.Host].
func (h *Host) Plan(markdown string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plans = append(h.plans, markdown)
}

// Usage is part of [agent.Host].
func (h *Host) Usage(u api.Usage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.usages = append(h.usages, u)
}

// Denied is part of [agent.Host].
func (h *Host) Denied(a agent.Action, r agent.Ruling) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.denied = append(h.denied, Denial{a, r})
}

// ToolsFailed is part of [agent.Host]: it shows what a notice does.
func (h *Host) ToolsFailed(why string) { h.Notice(why) }

// Ask is part of [agent.Host].
func (h *Host) Ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	h.mu.Lock()
	h.asked = append(h.asked, q)
	h.mu.Unlock()
	if h.Answer == nil {
		return agent.Answer{}, nil
	}
	return h.Answer(ctx, q)
}

// Urge is what people say to the running turn.
func (h *Host) Urge(s agent.Said) {
	h.mu.Lock()
	h.said = append(h.said, s)
	h.mu.Unlock()
	select {
	case h.token() <- struct{}{}:
	default:
	}
}

// Urged is part of [agent.Host].
func (h *Host) Urged() <-chan struct{} { return h.token() }

func (h *Host) token() chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.urged == nil {
		h.urged = make(chan struct{}, 1)
	}
	return h.urged
}

// Urgent is part of [agent.Host].
func (h *Host) Urgent() (s agent.Said, some bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.said) == 0 {
		return s, false
	}
	s, h.said = h.said[0], h.said[1:]
	return s, true
}

// Took is part of [agent.Host].
func (h *Host) Took(id string, in bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !in {
		id = "not " + id
	}
	h.took = append(h.took, id)
	h.items = append(h.items, agent.Item{Kind: api.ItemStatus, Text: "took " + id})
}

// Next is part of [agent.Host].
func (h *Host) Next(context.Context, string) (turn agent.Said, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.Turns) == 0 {
		return turn, false
	}
	turn, h.Turns = agent.Said{Text: h.Turns[0], Files: h.Files}, h.Turns[1:]
	h.Files = nil
	return turn, true
}

// Seen is what a host was called with until now.
type Seen struct {
	Began  []string
	Items  []agent.Item
	Plans  []string
	Usages []api.Usage
	Denied []Denial
	Asked  []agent.Question
	Alive  int
	Took   []string // ids; "not ID" for what certainly wasn't taken in
}

// Seen returns what it was called with until now.
func (h *Host) Seen() Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Seen{
		Began: slices.Clone(h.began), Items: slices.Clone(h.items), Plans: slices.Clone(h.plans),
		Usages: slices.Clone(h.usages), Denied: slices.Clone(h.denied), Asked: slices.Clone(h.asked), Alive: h.alive, Took: slices.Clone(h.took),
	}
}

// Transcript returns the items of some kinds, one a line; none = all.
func (s Seen) Transcript(kinds ...api.ItemKind) string {
	var b strings.Builder
	for _, i := range s.Items {
		if len(kinds) > 0 && !slices.Contains(kinds, i.Kind) {
			continue
		}
		b.WriteString(string(i.Kind))
		if i.Tool != "" {
			b.WriteString(" " + i.Tool)
		}
		if i.Failed {
			b.WriteString(" failed")
		}
		if i.Text != "" {
			b.WriteString(": " + strings.TrimSpace(i.Text))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Approves is an answer that approves everything and picks each question's last option.
func Approves(_ context.Context, q agent.Question) (agent.Answer, error) {
	a := agent.Answer{Approved: true, Choices: map[string]string{}, Text: "yes"}
	for _, c := range q.Choices {
		if len(c.Options) > 0 {
			a.Choices[c.ID] = c.Options[len(c.Options)-1]
		}
	}
	return a, nil
}

// Parks is an answer that doesn't come in time.
func Parks(context.Context, agent.Question) (agent.Answer, error) {
	return agent.Answer{}, agent.ErrParked
}

// Silent is an answer that never comes.
func Silent(ctx context.Context, _ agent.Question) (agent.Answer, error) {
	<-ctx.Done()
	return agent.Answer{}, context.Cause(ctx)
}
