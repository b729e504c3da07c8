package agent

import (
	"context"
	"errors"
	"time"

	"stint/api"
)

// talk is what a conversation with either program has: what it is about, how it stands, and how
// it ends.
type talk struct {
	job       Job
	host      Host
	wire      *wire
	judge     *judge
	ctx       context.Context // the caller's
	questions *questions      // questions to people

	turning  bool         // a turn is running
	stopping error        // why the conversation is cut short, nil while it isn't
	blocked  *api.Failure // by the policy
	lost     error        // what the host refused with
	result   Result
	limit    time.Time        // until when a usage limit holds
	cut      int64            // bytes that were left out of the line being read
	deadline <-chan time.Time // for the interrupt, or for the handshake
	deaf     <-chan struct{}  // closed when the program no longer reads

	toldToolless bool // people know that Stint's tools didn't start
}

func newTalk(ctx context.Context, pipes Pipes, job Job, host Host, sandboxed bool) talk {
	w := newWire(pipes)
	return talk{job: job, host: host, wire: w, deaf: w.broken, judge: newJudge(job, sandboxed), ctx: ctx, questions: newQuestions(ctx, host)}
}

func (t *talk) alive() {
	if t.stopping == nil {
		t.host.Alive()
	}
}

// hungUp says what the end of the program's output means. open reports whether the program
// still owed something.
func (t *talk) hungUp(program string, open bool) error {
	switch {
	case t.stopping != nil || t.blocked != nil:
		return nil
	case t.wire.err() != nil:
		return fail(CodeCrashed, true, "%s can't be listened to any more: %v.", program, t.wire.err())
	case open:
		return fail(CodeCrashed, true, "%s ended without a result.", program)
	default:
		return nil
	}
}

// passes tells people what was left out of a line of the program, and reports whether anything of it
// is left to be heard.
func (t *talk) passes(line heard, program string) bool {
	if line.lost {
		t.host.Item(Item{Kind: api.ItemStatus, Text: lostWords(program)})
		return false
	}
	if t.cut = line.cut; t.cut > 0 {
		t.host.Item(Item{Kind: api.ItemStatus, Text: cutWords(program, t.cut)})
	}
	return true
}

// outcome turns how the conversation ended into its result.
func (t *talk) outcome(err error) (Result, error) {
	var failed *failure
	switch {
	case t.lost != nil:
		return t.result, t.lost
	case t.blocked != nil:
		t.result.Failure = t.blocked
		return t.result, nil
	case t.stopping != nil:
		return t.result, t.stopping
	case errors.As(err, &failed):
		failed.into(&t.result)
		return t.result, nil
	default:
		return t.result, err
	}
}
