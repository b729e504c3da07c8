package agent

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

const (
	// acpStart bounds each answer until a session is open: programs that are written in
	// JavaScript take 20 s for one where the machine is busy, and start tool servers besides.
	acpStart = 2 * time.Minute
	// acpQuiet is how long a program that repeats the conversation so far must have said nothing,
	// for the repetition to be over: some go on with it after their answer.
	acpQuiet = 500 * time.Millisecond
	// acpReasons is how often in one turn the program is told why something was refused.
	acpReasons = 20
)

// acpTalk is one conversation by the Agent Client Protocol. One goroutine owns it, that of run;
// those that wait for people reach it over channels.
type acpTalk struct {
	talk

	rpc     *rpc
	name    string           // of the program, for people
	agent   acpAgent         // what it says of itself
	session string           // the agent session, "" until it is open
	quiet   <-chan time.Time // while the program repeats the conversation: when that may be over
	replays bool             // what it says belongs to the conversation so far

	asks    map[string]acpAsked // requests of the program that wait for a person, by id
	calls   map[string]*acpCall // tool calls of the turn, by id
	order   []string            // … in the order of their beginning
	said    acpText             // what the program is saying
	refused []string            // what was refused in this turn, and why; not told yet
	told    int                 // how often it was told in this turn
	rounds  int                 // with the model in this turn, as far as it shows
	acting  bool                // a tool has ended since the model spoke
	spent   acpSpent
	rich    bool // people know that its costs aren't in US dollars
}

// acpText gathers the pieces of a text.
type acpText struct {
	kind api.ItemKind // text or thinking
	id   string       // the message's, where the program names it
	text strings.Builder
}

func newACPTalk(ctx context.Context, pipes Pipes, job Job, host Host) *acpTalk {
	t := &acpTalk{talk: newTalk(ctx, pipes, job, host, false), name: acpName(job), asks: map[string]acpAsked{}, calls: map[string]*acpCall{}}
	t.rpc = newRPC(t.wire, "2.0")
	t.spent = acpSpent{before: job.Used}
	t.result.Usage = job.Used
	t.result.Usage.Turns = 0
	return t
}

// end gives up what is still open.
func (t *acpTalk) end() {
	t.questions.close()
	t.wire.close()
	t.rpc.end()
}

func (t *acpTalk) run() (Result, error) {
	t.greet()
	for {
		done, err := t.step()
		if t.lost == nil {
			t.lost = t.rpc.lost
		}
		if done || err != nil || t.lost != nil {
			t.flush()
			return t.outcome(err)
		}
	}
}

// step waits for the next thing to happen; done says that the conversation is over.
func (t *acpTalk) step() (done bool, err error) {
	ended := t.ctx.Done()
	if t.stopping != nil {
		ended = nil
	}
	select {
	case line, open := <-t.wire.lines:
		if !open {
			return true, t.hungUp(t.name, len(t.rpc.open) > 0 || t.turning || t.session == "")
		}
		if !t.passes(line, t.name) {
			return false, nil
		}
		return false, t.hear(line.text)
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
	case <-t.quiet:
		t.quiet, t.replays = nil, false
		return false, t.opened()
	case id := <-t.rpc.late:
		c, open := t.rpc.open[id]
		if !open {
			return false, nil
		}
		return true, fail(CodeCrashed, true, "%s did not answer %s in time.", t.name, c.method)
	case <-ended:
		return t.interrupt(context.Cause(t.ctx)), nil
	case <-t.deadline:
		if t.stopping != nil || t.blocked != nil {
			return true, nil
		}
		return true, fail(CodeCrashed, true, "%s does not listen any more.", t.name)
	}
}

// hear takes one line of the program. It skips what it can't read, unless the program waits
// for an answer.
func (t *acpTalk) hear(raw []byte) error {
	var m rpcMessage
	if json.Unmarshal(raw, &m, lenient) != nil {
		t.rpc.unreadable(raw)
		return nil
	}
	switch {
	case m.Method != "" && m.hasID():
		t.alive()
		if t.cut > 0 {
			t.rpc.refuse(string(m.ID), tooLongToJudge)
			return nil
		}
		t.asked(string(m.ID), m.Method, m.Params)
	case m.Method == "session/update":
		t.updated(m.Params)
		return t.bounded()
	case m.Method == "$/cancel_request": // it no longer wants to know
		var p struct {
			ID jsontext.Value `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p, lenient) == nil && t.questions.settled(string(p.ID)) {
			delete(t.asks, string(p.ID))
		}
	case m.Method == "" && m.hasID():
		c, ours := t.rpc.answered(m)
		switch {
		case !ours:
		case m.Error != nil:
			return t.refusedUs(c.method, *m.Error)
		default:
			t.alive()
			if c.then != nil {
				return c.then(m.Result)
			}
		}
	}
	return nil
}

// say begins a turn.
func (t *acpTalk) say(said Said) {
	t.turning, t.rounds, t.acting, t.told, t.refused = true, 1, false, 0, nil
	t.result.Text = ""
	t.prompt(said.Text, acpBlocks(said.Files, t.agent.Can.Prompt.Image, t.agent.Can.Prompt.Embedded)...)
}

// prompt sends the next words of a turn. The protocol has no place for trusted text beside them:
// where the program has none of its own, it comes first.
func (t *acpTalk) prompt(text string, also ...any) {
	if first := strings.TrimSpace(text); first == "" || !unicode.IsLetter([]rune(first)[0]) {
		text = "To you:\n" + text // what begins with a slash or the like would be a command of the program
	}
	if t.session != "" && t.job.System != "" && !t.systemTold() {
		text = t.job.System + "\n\n" + text
		t.job.System = ""
	}
	t.rpc.call("session/prompt", map[string]any{
		"sessionId": t.session, "prompt": append([]any{map[string]any{"type": "text", "text": text}}, also...),
	}, 0, t.turned)
}

// systemTold reports whether the program was started with the trusted text.
func (t *acpTalk) systemTold() bool {
	p, _ := api.ACPProgramOf(t.job.Executable)
	return p.Name == "opencode" && acpInstructions(t.job) != ""
}

// turned takes a turn's end: the next turn, or the conversation's end.
func (t *acpTalk) turned(result jsontext.Value) error {
	var r struct {
		Reason string   `json:"stopReason"`
		Usage  acpUsage `json:"usage"`
		Meta   acpMeta  `json:"_meta"`
	}
	readable := json.Unmarshal(result, &r, lenient) == nil
	t.flush()
	t.account(r.Usage, r.Meta)
	if t.stopping != nil || t.blocked != nil {
		t.closeCalls()
		return t.over()
	}
	if !readable || r.Reason == "" {
		return fail(CodeCrashed, true, "%s ended a turn with a result that can't be read.", t.name)
	}
	if r.Reason == "end_turn" && len(t.refused) > 0 && t.told < acpReasons {
		t.told++
		t.rounds++
		t.prompt(t.reasons())
		return nil
	}
	t.turning = false
	t.questions.withdraw()
	running := t.closeCalls()
	switch r.Reason {
	case "end_turn":
		t.result.Running = running
		t.result.Usage.Turns++
		t.host.Usage(t.result.Usage)
		t.host.Item(Item{Kind: api.ItemTurnEnd})
		t.questions.next(t.result.Text)
		return nil
	case "max_tokens":
		return fail(CodeCrashed, false, "%s reached the most that its model may say in one turn.", t.name)
	case "max_turn_requests":
		return fail(CodeTurnTimeout, false, "%s used up the rounds with the model that one turn may take.", t.name)
	case "refusal":
		return fail(CodeCrashed, false, "The model of %s refused to go on.", t.name)
	case "cancelled":
		return fail(CodeCrashed, true, "%s broke off its turn.", t.name)
	default:
		return fail(CodeCrashed, true, "%s did not finish its turn (%s).", t.name, clip(r.Reason, 100))
	}
}

// errOver ends a conversation that is being cut short; how it ended is known already.
var errOver = fmt.Errorf("the conversation is over")

func (t *acpTalk) over() error {
	t.turning = false
	return errOver
}

// reasons tells the program what was refused and why. The protocol's own refusal has no room for
// that, and some programs end their turn at one: this is sent when the turn has ended.
func (t *acpTalk) reasons() string {
	text := "While you worked, this was not allowed:\n\n" + strings.Join(t.refused, "\n\n") +
		"\n\nDon't do it in another way. Go on with what you were asked and can do without it, or say what is missing."
	t.refused = nil
	return text
}

// bounded ends a turn that takes more rounds with the model than it may. The protocol doesn't
// tell of rounds: one more is counted when the model speaks or acts after a tool has ended.
func (t *acpTalk) bounded() error {
	if t.rounds <= t.job.rounds() || t.stopping != nil || t.blocked != nil {
		return nil
	}
	t.cancel()
	return fail(CodeTurnTimeout, false, "%s used up the %d rounds with the model that one turn may take.", t.name, t.job.rounds())
}

// interrupt ends the current turn, and the conversation with it.
func (t *acpTalk) interrupt(cause error) (done bool) {
	t.stopping = cause
	t.withdraw()
	if !t.turning {
		return true
	}
	t.deadline = time.After(t.job.grace())
	t.cancel()
	return false
}

// block ends the current turn because the policy says so.
func (t *acpTalk) block(a Action) {
	if t.blocked != nil || t.stopping != nil {
		return
	}
	t.blocked = blockedBy(a)
	t.withdraw()
	t.deadline = time.After(t.job.grace())
	t.cancel()
}

func (t *acpTalk) cancel() {
	t.rpc.notify("session/cancel", map[string]any{"sessionId": t.session})
}

// withdraw answers what the program asked and nobody answered.
func (t *acpTalk) withdraw() {
	t.questions.withdraw()
	for id, a := range t.asks {
		t.drop(id, a)
	}
}
