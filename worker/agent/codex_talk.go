package agent

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// codexTalk is one conversation with Codex. One goroutine owns it, that of run; those that
// wait for people, and hooks, reach it over channels.
type codexTalk struct {
	talk

	hooks *hookServer // nil where none is wanted

	rpc      *rpc
	thread   string
	turn     string               // "" while none runs
	rounds   int                  // with the model in this turn
	retrying bool                 // the turn's model can't be reached, and people were notified
	spent    map[string]api.Usage // by thread: the agent may start others
	items    map[string]codexItem // open ones, by id
	hookings int
}

func newCodexTalk(ctx context.Context, pipes Pipes, job Job, host Host) *codexTalk {
	t := &codexTalk{talk: newTalk(ctx, pipes, job, host, !job.boundless()), spent: map[string]api.Usage{}, items: map[string]codexItem{}}
	t.rpc = newRPC(t.wire, "") // its messages lack the usual envelope
	return t
}

// end gives up what is still open.
func (t *codexTalk) end() {
	if t.hooks != nil {
		t.hooks.close()
	}
	t.questions.close()
	t.wire.close()
	t.rpc.end()
}

func (t *codexTalk) run() (Result, error) {
	if t.job.ruled() && len(t.job.Hook) > 0 {
		var err error
		if t.hooks, err = newHookServer(t.ctx); err != nil {
			return t.result, err
		}
	}
	t.call("initialize", map[string]any{
		"clientInfo": map[string]any{"name": "stint", "title": "Stint", "version": "1"}, "capabilities": map[string]any{"experimentalApi": false},
	}, t.open)
	for {
		done, err := t.step()
		if t.lost == nil {
			t.lost = t.rpc.lost
		}
		if done || err != nil || t.lost != nil {
			return t.outcome(err)
		}
	}
}

// open begins the agent session, or resumes it.
func (t *codexTalk) open(jsontext.Value) error {
	t.rpc.notify("initialized", nil)
	hook := ""
	if t.hooks != nil {
		hook = t.hooks.command(t.job.Hook)
	}
	params := map[string]any{
		"cwd": t.job.Dir, "approvalPolicy": codexApproval(t.job), "config": codexConfig(t.job, hook),
	}
	if system := codexSystem(t.job); system != "" {
		params["developerInstructions"] = system
	}
	if t.job.Model != "" {
		params["model"] = t.job.Model
	}
	method := "thread/start"
	if t.job.Session != "" {
		method = "thread/resume"
		params["threadId"], params["excludeTurns"] = t.job.Session, true
	}
	t.call(method, params, func(result jsontext.Value) error {
		var opened struct {
			Thread struct {
				ID string `json:"id"`
			} `json:"thread"`
		}
		if json.Unmarshal(result, &opened, lenient) != nil || opened.Thread.ID == "" {
			return fail(CodeCrashed, true, "Codex began a thread that can't be read.")
		}
		t.thread = opened.Thread.ID
		if err := t.host.Began(t.thread); err != nil {
			t.lost = err
			return err
		}
		t.say(Said{Text: t.job.Turn, Files: t.job.Files})
		return nil
	})
	return nil
}

// say begins a turn.
func (t *codexTalk) say(said Said) {
	t.turning, t.turn, t.retrying, t.rounds = true, "", false, 0
	t.call("turn/start", map[string]any{
		"threadId": t.thread, "input": codexInput(said),
	}, func(result jsontext.Value) error {
		var began struct {
			Turn struct {
				ID string `json:"id"`
			} `json:"turn"`
		}
		if json.Unmarshal(result, &began, lenient) != nil || began.Turn.ID == "" {
			return fail(CodeCrashed, true, "Codex began a turn that can't be read.")
		}
		if t.turning {
			t.turn = began.Turn.ID
		}
		if t.stopping != nil || t.blocked != nil {
			t.cutShort()
		}
		return nil
	})
}

// step waits for the next thing to happen; done says that the conversation is over.
func (t *codexTalk) step() (done bool, err error) {
	ended := t.ctx.Done()
	if t.stopping != nil {
		ended = nil
	}
	var urged <-chan struct{}
	if t.turning && t.turn != "" && t.stopping == nil && t.blocked == nil {
		urged = t.host.Urged()
	}
	var hooked chan hookCall
	if t.hooks != nil {
		hooked = t.hooks.calls
	}
	select {
	case line, open := <-t.wire.lines:
		if !open {
			return true, t.hungUp("Codex", len(t.rpc.open) > 0 || t.turning)
		}
		if !t.passes(line, "Codex") {
			return false, nil
		}
		return t.hear(line.text)
	case <-t.deaf:
		t.deaf = nil
		if t.deadline == nil { // its output says more, and should end soon
			t.deadline = time.After(t.job.grace())
		}
		return false, nil
	case a := <-t.questions.answers:
		if !t.questions.settled(a.id) {
			return false, nil
		}
		return t.answered(a)
	case <-urged:
		t.steer()
		return false, nil
	case call := <-hooked:
		t.hooked(call)
		return false, nil
	case id := <-t.rpc.late:
		c, open := t.rpc.open[id]
		if !open || c.method == "turn/interrupt" || c.method == codexSteer {
			return false, nil
		}
		return true, fail(CodeCrashed, true, "Codex did not answer %s within %v.", c.method, t.job.answerLimit())
	case <-ended:
		return t.interrupt(context.Cause(t.ctx)), nil
	case <-t.deadline:
		if t.stopping != nil || t.blocked != nil {
			return true, nil
		}
		return true, fail(CodeCrashed, true, "Codex does not listen any more.")
	}
}

// call sends a request. then is called with the result of the answer; if it fails, the
// conversation ends.
func (t *codexTalk) call(method string, params map[string]any, then func(jsontext.Value) error) {
	t.rpc.call(method, params, t.job.answerLimit(), then)
}

// hear takes one line of the program. It skips what it can't read, unless the program waits
// for an answer.
func (t *codexTalk) hear(raw []byte) (done bool, err error) {
	var m rpcMessage
	if json.Unmarshal(raw, &m, lenient) != nil {
		t.rpc.unreadable(raw)
		return false, nil
	}
	switch {
	case m.Method != "" && m.hasID():
		t.alive()
		if t.cut > 0 {
			t.rpc.refuse(string(m.ID), tooLongToJudge)
			return false, nil
		}
		t.asked(string(m.ID), m.Method, m.Params)
		return false, nil
	case m.Method != "":
		return t.notified(m.Method, m.Params)
	case m.hasID():
		return false, t.replied(m)
	}
	return false, nil
}

// replied takes the answer to a request of ours.
func (t *codexTalk) replied(m rpcMessage) error {
	c, ours := t.rpc.answered(m)
	if !ours {
		return nil
	}
	if m.Error == nil {
		t.alive()
		if c.then == nil {
			return nil
		}
		return c.then(m.Result)
	}
	if c.said != "" { // the turn has just ended
		t.host.Took(c.said, false)
		return nil
	}
	return t.denied(c.method, m.Error.Code, m.Error.Message)
}

// interrupt ends the current turn, and the conversation with it.
func (t *codexTalk) interrupt(cause error) (done bool) {
	t.stopping = cause
	t.questions.withdraw()
	if !t.turning {
		return true
	}
	t.deadline = time.After(t.job.grace())
	t.cutShort()
	return false
}

// cutShort asks for the end of the turn, once it has an id.
func (t *codexTalk) cutShort() {
	if t.turn != "" {
		t.call("turn/interrupt", map[string]any{"threadId": t.thread, "turnId": t.turn}, nil)
	}
}

// block ends the current turn because the policy says so.
func (t *codexTalk) block(a Action) {
	if t.blocked != nil || t.stopping != nil {
		return
	}
	t.blocked = blockedBy(a)
	t.questions.withdraw()
	t.deadline = time.After(t.job.grace())
	t.cutShort()
}
