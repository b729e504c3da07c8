package agent

import (
	"context"
	"sync"
)

// desk is where a conversation waits for people without standing still: each
// question has a goroutine, which answers over one channel.
type desk struct {
	ctx     context.Context // the conversation's
	host    Host
	answers chan deskAnswer
	shut    chan struct{}
	wait    sync.WaitGroup
	open    map[string]context.CancelFunc // by the program's request; the conversation's goroutine owns it
}

// deskAnswer is what became of a question, or the next turn.
type deskAnswer struct {
	id     string // the program's request
	call   string // the tool call that it is about
	deeds  []deed
	input  []byte // the tool's input, as it came
	asked  Question
	answer Answer
	err    error

	method string // Codex: the request's method and parameters, or the hook that waits
	params codexParams
	hook   chan<- []byte

	next, more bool
	text       string
}

func newDesk(ctx context.Context, host Host) *desk {
	return &desk{ctx: ctx, host: host, answers: make(chan deskAnswer), shut: make(chan struct{}), open: map[string]context.CancelFunc{}}
}

// ask puts a question to people. The same request asked again is the same question.
func (d *desk) ask(about deskAnswer) {
	if d.open[about.id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	d.open[about.id] = cancel
	d.wait.Go(func() {
		about.answer, about.err = d.host.Ask(ctx, about.asked)
		if ctx.Err() != nil { // withdrawn: an answer that came too late is nobody's
			return
		}
		d.hand(ctx, about)
	})
}

// next asks for the next turn.
func (d *desk) next() {
	ctx, cancel := context.WithCancel(d.ctx)
	d.open[nextTurn] = cancel
	d.wait.Go(func() {
		text, more := d.host.Next(ctx)
		if ctx.Err() == nil {
			d.hand(ctx, deskAnswer{next: true, more: more, text: text})
		}
	})
}

const nextTurn = "" // no request has this id

func (d *desk) hand(ctx context.Context, a deskAnswer) {
	select {
	case d.answers <- a:
	case <-ctx.Done():
	case <-d.shut:
	}
}

// settled forgets a question, false when it was forgotten before.
func (d *desk) settled(id string) bool {
	cancel := d.open[id]
	if cancel == nil {
		return false
	}
	cancel()
	delete(d.open, id)
	return true
}

// withdraw takes all questions back.
func (d *desk) withdraw() {
	for id := range d.open {
		d.settled(id)
	}
}

// close takes all back and waits until nobody asks any more.
func (d *desk) close() {
	close(d.shut)
	d.withdraw()
	d.wait.Wait()
}
