package agenttest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"testing"

	"stint/worker/agent"
)

// Peer is the program's end of a conversation, played by a test.
type Peer struct {
	t   testing.TB
	in  *bufio.Reader
	out *io.PipeWriter
	end *io.PipeReader
}

// Line is a message that a peer received.
type Line map[string]any

// Converse lets an adapter talk to a peer within this process and returns how that went. When
// play returns, the peer's output ends, as that of a program does that exits; the peer's input
// ends with the conversation. It works inside a synctest bubble.
func Converse(ctx context.Context, t testing.TB, a agent.Agent, job agent.Job, host agent.Host, play func(*Peer)) (agent.Result, error) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &Peer{t: t, in: bufio.NewReaderSize(inR, 1<<16), out: outW, end: inR}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer outW.Close()
		play(p)
	}()
	result, err := a.Converse(ctx, agent.Pipes{In: inW, Out: outR}, job, host)
	_ = inW.Close()
	_ = inR.CloseWithError(io.ErrClosedPipe)
	<-done
	return result, err
}

// Hear returns the next message, nil at the end. A line that is not JSON fails the test.
func (p *Peer) Hear() Line {
	raw, err := p.in.ReadBytes('\n')
	if err != nil {
		return nil
	}
	var v Line
	if err := json.Unmarshal(raw, &v); err != nil {
		p.t.Errorf("the adapter said %q: %v", raw, err)
	}
	return v
}

// HearUntil skips messages until one is as wanted; nil at the end.
func (p *Peer) HearUntil(wanted func(Line) bool) Line {
	for {
		v := p.Hear()
		if v == nil || wanted(v) {
			return v
		}
	}
}

// Say sends messages, one a line.
func (p *Peer) Say(messages ...any) {
	for _, m := range messages {
		b, err := json.Marshal(m)
		if err != nil {
			p.t.Errorf("encode a peer's message: %v", err)
		}
		p.Noise(string(b) + "\n")
	}
}

// Noise sends bytes as they are.
func (p *Peer) Noise(text string) { _, _ = io.WriteString(p.out, text) }

// Deaf ends the peer's input, so that nothing more can be sent to it.
func (p *Peer) Deaf() { _ = p.end.CloseWithError(io.ErrClosedPipe) }

// Wait plays a peer that does nothing more until the conversation is over.
func (p *Peer) Wait() {
	p.HearUntil(func(Line) bool { return false })
}

// At returns a member of a message by its path, nil where there is none.
func (l Line) At(path ...string) any {
	var v any = map[string]any(l)
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// Text is a member that is a text, "" where there is none.
func (l Line) Text(path ...string) string {
	s, _ := l.At(path...).(string)
	return s
}
