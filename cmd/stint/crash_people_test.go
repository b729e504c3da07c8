package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"stint/api"
)

// person is a client that creates sessions and agents and changes its mind about them. After a
// restart it continues where it left off: a call of unknown outcome is looked into first.
type person struct {
	name  string
	rand  *rand.Rand
	j     *journal
	board *board
	count int // names given out

	mine    []api.SessionID
	pending []func(l *serverRun) // what to look into
}

// live acts until the coordinator is gone.
func (p *person) live(l *serverRun) {
	for !l.wire.isOver() {
		if len(p.pending) == 0 {
			p.act(l)
			continue
		}
		look := p.pending[0]
		p.pending = p.pending[1:]
		look(l)
	}
}

func (p *person) act(l *serverRun) {
	switch n := p.rand.IntN(100); {
	case n < 22:
		p.create(l)
	case n < 42:
		p.createKeyed(l)
	case n < 50:
		p.cancel(l)
	case n < 56:
		p.stop(l)
	case n < 64:
		p.retry(l)
	case n < 70:
		p.archive(l)
	case n < 78:
		p.answer(l)
	case n < 84:
		p.editAgent(l)
	case n < 92:
		p.pauseOrResume(l)
	case n < 94:
		p.createAgent(l)
	case n < 97:
		p.again(l)
	default:
		p.read(l)
	}
}

// board is what all clients know about the agents and sessions there are.
type board struct {
	agents []string // slugs of those that workers serve
}

func (b *board) agent(r *rand.Rand) string { return b.agents[r.IntN(len(b.agents))] }

func (p *person) next(what string) string {
	p.count++
	return fmt.Sprintf("%s %s %d", p.name, what, p.count)
}

// one picks one of the person's own sessions, the newest most often.
func (p *person) one() (api.SessionID, bool) {
	if len(p.mine) == 0 {
		return 0, false
	}
	back := min(p.rand.IntN(8), p.rand.IntN(40), len(p.mine)-1)
	return p.mine[len(p.mine)-1-back], true
}

func (p *person) input(l *serverRun, prompt string) api.SessionInput {
	in := api.SessionInput{Prompt: new(prompt), UntrustedContext: "said by " + p.name}
	switch p.rand.IntN(12) {
	case 0:
		in.NotBefore = api.Time{Time: time.Now().Add(time.Duration(100+p.rand.IntN(700)) * time.Millisecond).Truncate(time.Millisecond)}
	case 1:
		n := int64(p.rand.IntN(5))
		in.Priority = &n
	case 2:
		if id, ok := p.one(); ok {
			in.After, in.AfterAny = id, true
		}
	}
	return in
}

// create creates a session without a key: a client that got no answer looks for it and never
// asks twice.
func (p *person) create(l *serverRun) {
	agent, prompt := p.board.agent(p.rand), p.next("makes")
	in := p.input(l, prompt)
	s, v := ask(l, "create", nil, func(ctx context.Context) (api.Session, error) {
		s, _, err := l.client.CreateSession(ctx, agent, in, "")
		return s, err
	})
	switch v {
	case told:
		p.made(s, in)
	case unread:
		p.made(s, in)
		p.pending = append(p.pending, func(l *serverRun) { p.find(l, agent, in, 1, 1) })
	case unknown:
		p.pending = append(p.pending, func(l *serverRun) { p.find(l, agent, in, 0, 1) })
	}
}

func (p *person) made(s api.Session, in api.SessionInput) {
	if s.Prompt != *in.Prompt || s.UntrustedContext != in.UntrustedContext || !s.NotBefore.Equal(in.NotBefore.Time) || s.After != in.After {
		p.j.fault("session %s was made of %+v and is %+v", s.ID, in, s)
	}
	p.mine = append(p.mine, s.ID)
	p.j.sawSession(s)
}

// find looks for the session that a creation of unknown outcome made, if it did.
func (p *person) find(l *serverRun, agent string, in api.SessionInput, least, most int) {
	list, v := ask(l, "find", nil, func(ctx context.Context) (api.List[api.Session], error) {
		return l.client.Sessions(ctx, api.SessionFilter{Agent: agent, Query: *in.Prompt, Archived: true}, api.Page{})
	})
	if v != told {
		p.pending = append(p.pending, func(l *serverRun) { p.find(l, agent, in, least, most) })
		return
	}
	var found []api.Session
	for _, s := range list.Items {
		if s.Prompt == *in.Prompt && s.RetryOf == 0 {
			found = append(found, s)
		}
	}
	if len(found) < least || len(found) > most {
		p.j.fault("%d sessions were made of %q, not %d to %d", len(found), *in.Prompt, least, most)
	}
	if least == 0 && len(found) == 1 {
		l.tally.add("create committed, unanswered")
		p.made(found[0], in)
	}
}

// createKeyed creates a session that can be requested again.
func (p *person) createKeyed(l *serverRun) {
	agent, prompt := p.board.agent(p.rand), p.next("keys")
	p.keyed(l, agent, fmt.Sprintf("key-%s-%d", p.name, p.count), p.input(l, prompt), 0)
}

// keyed requests the session of a key; known is its id, 0 if that isn't known.
func (p *person) keyed(l *serverRun, agent, key string, in api.SessionInput, known api.SessionID) {
	again := func(known api.SessionID) {
		p.pending = append(p.pending, func(l *serverRun) { p.keyed(l, agent, key, in, known) })
	}
	var replayed bool
	s, v := ask(l, "create with key", nil, func(ctx context.Context) (s api.Session, err error) {
		s, replayed, err = l.client.CreateSession(ctx, agent, in, key)
		return s, err
	})
	if v == unknown {
		again(known)
		return
	}
	if v == told && known != 0 && !replayed {
		p.j.fault("key %s of session %s made session %s", key, known, s.ID)
	}
	if known != 0 && s.ID != known {
		p.j.fault("key %s answered session %s and then %s", key, known, s.ID)
	}
	if known == 0 {
		p.made(s, in)
		p.j.mu.Lock()
		p.j.keyed[key] = keyed{agent, in, s.ID}
		p.j.mu.Unlock()
		if p.rand.IntN(4) == 0 {
			p.pending = append(p.pending, func(l *serverRun) { p.find(l, agent, in, 1, 1) })
		}
	}
	if v == unread {
		again(s.ID)
	}
}

// again repeats an old creation of any client.
func (p *person) again(l *serverRun) {
	p.j.mu.Lock()
	var key string
	var k keyed
	for key, k = range p.j.keyed { // in no order
		break
	}
	p.j.mu.Unlock()
	if key != "" {
		p.keyed(l, k.agent, key, k.in, k.id)
	}
}

// change runs a verb that says whether it changed something and can be repeated.
func (p *person) change(l *serverRun, verb string, id api.SessionID, call func(*serverRun, context.Context) (api.Changed, error), fair []api.Code, was *api.Changed) {
	out, v := ask(l, verb, fair, func(ctx context.Context) (api.Changed, error) { return call(l, ctx) })
	if v == refused {
		return
	}
	if v == unknown {
		p.pending = append(p.pending, func(l *serverRun) { p.change(l, verb, id, call, fair, was) })
		return
	}
	if was != nil && out.Changed {
		p.j.fault("%s of session %s changed it twice", verb, id)
	}
	p.j.sawSession(out.Session)
	if v == unread {
		p.pending = append(p.pending, func(l *serverRun) { p.change(l, verb, id, call, fair, &out) })
	}
}

func (p *person) cancel(l *serverRun) {
	id, ok := p.one()
	if !ok {
		return
	}
	in := api.CancelInput{Reason: p.next("cancels"), OnlyPending: p.rand.IntN(3) == 0}
	p.change(l, "cancel", id, func(l *serverRun, ctx context.Context) (api.Changed, error) {
		out, err := l.client.CancelSession(ctx, id, in)
		if err == nil && out.Changed && (out.Session.Status != api.Cancelled || why(out.Session.Error).Message != in.Reason) {
			p.j.fault("a cancelled session is %+v", out.Session)
		}
		return out, err
	}, []api.Code{api.CodeSessionRunning}, nil)
}

func (p *person) stop(l *serverRun) {
	if id, ok := p.one(); ok {
		p.change(l, "stop", id, func(l *serverRun, ctx context.Context) (api.Changed, error) {
			out, err := l.client.StopSession(ctx, id)
			if s := out.Session; err == nil && out.Changed && !s.Status.Terminal() && s.StopRequestedAt.IsZero() {
				p.j.fault("a stopped session is %+v", s)
			}
			return out, err
		}, nil, nil)
	}
}

func (p *person) archive(l *serverRun) {
	if id, ok := p.one(); ok {
		p.change(l, "archive", id, func(l *serverRun, ctx context.Context) (api.Changed, error) {
			return l.client.ArchiveSession(ctx, id)
		}, []api.Code{api.CodeConflict}, nil)
	}
}

// retry makes a new session of an ended one, or queues a stale one. It can't be repeated: a
// client that got no answer looks.
func (p *person) retry(l *serverRun) {
	id, ok := p.one()
	if !ok {
		return
	}
	before, v := p.retries(l, id)
	if v != told {
		return
	}
	s, v := ask(l, "retry", []api.Code{api.CodeSessionRunning}, func(ctx context.Context) (api.Session, error) {
		again, err := l.client.RetrySession(ctx, id)
		return again.Session, err
	})
	switch v {
	case told, unread:
		p.retried(id, s)
	case unknown:
		p.pending = append(p.pending, func(l *serverRun) { p.findRetry(l, id, before) })
	}
}

func (p *person) retried(of api.SessionID, s api.Session) {
	if s.ID != of {
		if s.RetryOf != of {
			p.j.fault("a retry of session %s is one of %s", of, s.RetryOf)
		}
		p.mine = append(p.mine, s.ID)
	}
	p.j.sawSession(s)
}

func (p *person) retries(l *serverRun, of api.SessionID) ([]api.Session, verdict) {
	list, v := ask(l, "find retries", nil, func(ctx context.Context) (api.List[api.Session], error) {
		return l.client.Sessions(ctx, api.SessionFilter{RetryOf: of, Archived: true}, api.Page{Limit: 200})
	})
	return list.Items, v
}

// findRetry looks for what a retry of unknown outcome made; nobody else retries this person's
// sessions.
func (p *person) findRetry(l *serverRun, of api.SessionID, before []api.Session) {
	now, v := p.retries(l, of)
	if v != told {
		p.pending = append(p.pending, func(l *serverRun) { p.findRetry(l, of, before) })
		return
	}
	if len(now) < len(before) || len(now) > len(before)+1 {
		p.j.fault("session %s had %d retries, was retried once more, and has %d", of, len(before), len(now))
	}
	if len(now) > len(before) {
		l.tally.add("retry committed, unanswered")
		p.retried(of, now[0]) // newest first
	}
}

// answer looks for an open prompt and answers it.
func (p *person) answer(l *serverRun) {
	list, v := ask(l, "list", nil, func(ctx context.Context) (api.List[api.Session], error) {
		return l.client.Sessions(ctx, api.SessionFilter{Statuses: []api.Status{api.AwaitingInput, api.Stale, api.Pending}}, api.Page{Limit: 50})
	})
	if v != told {
		return
	}
	for _, s := range list.Items {
		if s.Prompted == nil || p.rand.IntN(2) == 0 {
			continue
		}
		in := api.AnswerInput{PromptID: s.Prompted.ID, Answer: api.Answer{Text: p.next("answers")}}
		out, v := ask(l, "answer", []api.Code{api.CodePromptClosed}, func(ctx context.Context) (api.Session, error) {
			return l.client.AnswerPrompt(ctx, s.ID, in)
		})
		p.answered(s.ID, in.Text, v)
		if v == told || v == unread {
			p.j.sawSession(out)
		}
		return
	}
}

func (p *person) answered(id api.SessionID, text string, v verdict) {
	least, most := 1, 1
	switch v {
	case refused:
		least, most = 0, 0
	case unknown:
		least = 0
	}
	p.j.expect(id, fmt.Sprintf("the answer %q is there %d to %d times", text, least, most), func(v *view) string {
		if n := v.texts(text); n < least || n > most {
			return fmt.Sprintf("it is there %d times", n)
		}
		return ""
	})
}
