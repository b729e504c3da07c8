package agent

import (
	"context"
	"sync"
)

// questions lets a conversation wait for people without blocking: each question has a
// goroutine, which replies over one channel.
type questions struct {
	ctx     context.Context // the conversation's
	host    Host
	answers chan questionAnswer
	shut    chan struct{}
	wait    sync.WaitGroup
	open    map[string]context.CancelFunc // by the program's request; the conversation's goroutine owns it
}

// questionAnswer is the answer to a question, or the next turn.
type questionAnswer struct {
	id      string // the program's request
	call    string // the tool call that it is about
	actions []toolAction
	input   []byte // the tool's input, as it came
	asked   Question
	answer  Answer
	err     error

	method string // Codex: the request's method and parameters, or the hook that waits
	params codexParams
	hook   chan<- []byte

	next, more bool
	said       Said
}

func newQuestions(ctx context.Context, host Host) *questions {
	return &questions{ctx: ctx, host: host, answers: make(chan questionAnswer), shut: make(chan struct{}), open: map[string]context.CancelFunc{}}
}

// ask puts a question to people. The same request asked again is the same question.
func (d *questions) ask(about questionAnswer) {
	if d.open[about.id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	d.open[about.id] = cancel
	d.wait.Go(func() {
		about.answer, about.err = d.host.Ask(ctx, about.asked)
		if ctx.Err() != nil { // withdrawn: an answer that came too late is dropped
			return
		}
		d.hand(ctx, about)
	})
}

// next ends a turn, with what the agent said last, and asks for the next one.
func (d *questions) next(said string) {
	ctx, cancel := context.WithCancel(d.ctx)
	d.open[nextTurn] = cancel
	d.wait.Go(func() {
		turn, more := d.host.Next(ctx, said)
		if ctx.Err() == nil {
			d.hand(ctx, questionAnswer{next: true, more: more, said: turn})
		}
	})
}

const nextTurn = "" // no request has this id

func (d *questions) hand(ctx context.Context, a questionAnswer) {
	select {
	case d.answers <- a:
	case <-ctx.Done():
	case <-d.shut:
	}
}

// settled forgets a question, and returns false when it was forgotten before.
func (d *questions) settled(id string) bool {
	cancel := d.open[id]
	if cancel == nil {
		return false
	}
	cancel()
	delete(d.open, id)
	return true
}

// withdraw withdraws all questions.
func (d *questions) withdraw() {
	for id := range d.open {
		d.settled(id)
	}
}

// close withdraws all questions and waits until nothing asks any more.
func (d *questions) close() {
	close(d.shut)
	d.withdraw()
	d.wait.Wait()
}
