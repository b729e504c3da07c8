package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// lenient reads the output of any version of a program.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// claudeTalk is one conversation with Claude Code. One goroutine owns it, that of run; those
// that wait for people reply to it over a channel.
type claudeTalk struct {
	talk

	turn             string       // the running one's id
	said             []claudeSaid // to the running turn, and not taken in yet
	base             api.Usage    // the agent session's totals when the turn began
	baseKnown        bool
	spent            map[string]api.Usage // by this turn's messages, by id
	cause            string               // the error class of the last synthetic message
	tools            map[string]string    // open tool calls: name by id
	refusalsReported map[string]bool      // tool calls whose refusal was shown, or came from a person
	plan             plan
}

func newClaudeTalk(ctx context.Context, pipes Pipes, job Job, host Host) *claudeTalk {
	return &claudeTalk{
		talk:      newTalk(ctx, pipes, job, host, claudeSandbox(job)),
		baseKnown: job.Session == "", spent: map[string]api.Usage{}, tools: map[string]string{}, refusalsReported: map[string]bool{},
	}
}

// end gives up what is still open.
func (t *claudeTalk) end() {
	t.questions.close()
	t.wire.close()
}

const claudeHello = "stint-hello" // the handshake's request id

func (t *claudeTalk) run() (Result, error) {
	session := t.job.Session
	if session == "" {
		session = t.job.Begin
	}
	if err := t.host.Began(session); err != nil {
		return t.result, err
	}
	t.control(claudeHello, map[string]any{
		"subtype":              "initialize",
		"systemPromptSnapshot": false, // a resumed session gets the current instructions, not those it began with
		"hooks": map[string]any{"PreToolUse": []any{
			map[string]any{"hookCallbackIds": []string{"policy"}, "onFailure": "block"},
		}},
	})
	t.deadline = time.After(t.job.answerLimit())
	t.say(Said{Text: t.job.Turn, Files: t.job.Files})
	for {
		done, err := t.step()
		if done || t.lost != nil {
			return t.outcome(err)
		}
	}
}

// step waits for the next thing to happen; done says that the conversation is over.
func (t *claudeTalk) step() (done bool, err error) {
	ended := t.ctx.Done()
	if t.stopping != nil {
		ended = nil
	}
	var urged <-chan struct{}
	if t.turning && t.stopping == nil && t.blocked == nil {
		urged = t.host.Urged()
	}
	select {
	case line, open := <-t.wire.lines:
		if !open {
			return true, t.hungUp("Claude Code", t.turning)
		}
		if !t.passes(line, "Claude Code") {
			return false, nil
		}
		return t.hear(line.text)
	case <-t.deaf: // its output says more, and should end soon
		t.deaf = nil
		if t.stopping == nil && t.blocked == nil {
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
	case <-ended:
		return t.interrupt(context.Cause(t.ctx))
	case <-t.deadline:
		t.deadline = nil
		switch {
		case t.stopping != nil || t.blocked != nil:
			return true, nil
		case t.deaf == nil:
			return true, fail(CodeCrashed, true, "Claude Code does not listen any more.")
		default:
			return true, fail(CodeCrashed, true, "Claude Code did not answer within %v of its start.", t.job.answerLimit())
		}
	}
}

// say begins a turn.
func (t *claudeTalk) say(said Said) {
	t.turning = true
	t.spent = map[string]api.Usage{}
	t.turn = NewID()
	t.write(t.turn, said)
}

func (t *claudeTalk) write(id string, said Said) {
	t.send(map[string]any{
		"type": "user", "uuid": id, "message": map[string]any{"role": "user", "content": claudeContent(said)}, "parent_tool_use_id": nil, "session_id": "",
	})
}

func (t *claudeTalk) control(id string, request map[string]any) {
	t.send(map[string]any{"type": "control_request", "request_id": id, "request": request})
}

// reply answers one of the program's requests.
func (t *claudeTalk) reply(id string, response map[string]any) {
	t.send(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": jsontext.Value(id), "response": response,
	}})
}

func (t *claudeTalk) refuse(id, why string) {
	t.send(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "error", "request_id": jsontext.Value(id), "error": why,
	}})
}

func (t *claudeTalk) send(message any) {
	if err := t.wire.send(message); err != nil && t.lost == nil {
		t.lost = err
	}
}

// interrupt ends the current turn, and the conversation with it.
func (t *claudeTalk) interrupt(cause error) (done bool, err error) {
	t.stopping = cause
	t.questions.withdraw()
	if !t.turning {
		return true, nil
	}
	t.control("stint-interrupt", map[string]any{"subtype": "interrupt"})
	t.deadline = time.After(t.job.grace())
	return false, nil
}

// block ends the current turn because the policy says so.
func (t *claudeTalk) block(a Action) {
	if t.blocked != nil || t.stopping != nil {
		return
	}
	t.blocked = blockedBy(a)
	t.questions.withdraw()
	t.control("stint-interrupt", map[string]any{"subtype": "interrupt"})
	t.deadline = time.After(t.job.grace())
}

// answered takes what people said: to a question, or as the next turn.
func (t *claudeTalk) answered(a questionAnswer) (done bool, err error) {
	if a.next {
		if !a.more || t.stopping != nil {
			return true, t.stopping
		}
		t.say(a.said)
		return false, nil
	}
	if a.err != nil { // parked, or the conversation ends
		t.reply(a.id, denial("Nobody has answered yet. Ask again, word for word, when the work goes on.", true))
		if t.stopping == nil {
			return t.interrupt(a.err)
		}
		return false, nil
	}
	t.host.Alive()
	t.refusalsReported[a.call] = true
	t.reply(a.id, claudeAnswer(t.judge, a))
	return false, nil
}

// failure is a conversation's failure, on its way to the result.
type failure struct {
	api.Failure
	retriable bool
	unknown   bool
	reset     time.Time
}

func (f *failure) Error() string { return f.Message }

// into puts the failure into a conversation's result.
func (f *failure) into(r *Result) {
	r.Failure, r.Retriable, r.ResetAt, r.Unknown = &f.Failure, f.retriable, f.reset, f.unknown
}

func fail(code string, retriable bool, format string, args ...any) *failure {
	return &failure{Failure: *api.NewFailure(code, format, args...), retriable: retriable}
}

func blockedBy(a Action) *api.Failure {
	return &api.Failure{Code: CodePolicy, Message: fmt.Sprintf("The policy ends a session that wants this (%s): %s", a.Area, clip(a.What, 500))}
}

func (j Job) answerLimit() time.Duration {
	if j.AnswerLimit <= 0 {
		return 30 * time.Second
	}
	return j.AnswerLimit
}

func (j Job) grace() time.Duration {
	if j.Grace <= 0 {
		return 10 * time.Second
	}
	return j.Grace
}
