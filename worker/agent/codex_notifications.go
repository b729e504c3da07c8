package agent

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// codexNote has what any notification may have; the rest is read by its method.
type codexNote struct {
	Thread string         `json:"threadId"`
	TurnID string         `json:"turnId"`
	Item   jsontext.Value `json:"item"`
	Turn   struct {
		ID     string      `json:"id"`
		Status string      `json:"status"`
		Error  *codexError `json:"error"`
	} `json:"turn"`
	Error     *codexError    `json:"error"`
	WillRetry bool           `json:"willRetry"`
	RequestID jsontext.Value `json:"requestId"`
	Plan      []struct {
		Step   string `json:"step"`
		Status string `json:"status"`
	} `json:"plan"`
	Tokens struct {
		Total struct {
			Input  int64 `json:"inputTokens"`
			Output int64 `json:"outputTokens"`
		} `json:"total"`
	} `json:"tokenUsage"`
	Limits struct {
		Primary   *codexWindow `json:"primary"`
		Secondary *codexWindow `json:"secondary"`
	} `json:"rateLimits"`
}

type codexError struct {
	Message string         `json:"message"`
	Info    jsontext.Value `json:"codexErrorInfo"`
	Details string         `json:"additionalDetails"`
}

type codexWindow struct {
	Used     float64 `json:"usedPercent"`
	ResetsAt int64   `json:"resetsAt"` // Unix seconds
}

// notified takes a notification.
func (t *codexTalk) notified(method string, params jsontext.Value) (done bool, err error) {
	if method == "mcpServer/startupStatus/updated" { // whose error is a text
		t.toolsStarted(params)
		return false, nil
	}
	var n codexNote
	if json.Unmarshal(params, &n, lenient) != nil {
		if method == "turn/completed" {
			return true, fail(CodeCrashed, true, "Codex ended a turn with a result that can't be read.")
		}
		return false, nil
	}
	ours := n.Thread == "" || n.Thread == t.thread
	switch method {
	case "item/started", "item/completed":
		t.alive()
		var i codexItem
		if ours && json.Unmarshal(n.Item, &i, lenient) == nil {
			if method == "item/started" {
				t.itemStarted(i)
			} else {
				t.itemCompleted(i)
			}
		}
	case "item/agentMessage/delta", "item/commandExecution/outputDelta", "item/fileChange/patchUpdated", "item/fileChange/outputDelta", "item/plan/delta",
		"item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded", "item/reasoning/textDelta", "item/mcpToolCall/progress", "turn/started",
		"thread/compacted", "model/rerouted", "hook/started", "hook/completed":
		t.alive()
	case "turn/plan/updated":
		t.alive()
		if ours {
			t.planned(n)
		}
	case "thread/tokenUsage/updated":
		before := t.spent[n.Thread]
		t.spent[n.Thread] = api.Usage{InputTokens: n.Tokens.Total.Input, OutputTokens: n.Tokens.Total.Output}
		t.account()
		if ours && t.turning && t.spent[n.Thread].OutputTokens > before.OutputTokens {
			return t.round()
		}
	case "account/rateLimits/updated":
		for _, w := range []*codexWindow{n.Limits.Primary, n.Limits.Secondary} {
			if w != nil && w.Used >= 100 && w.ResetsAt > 0 && unixTime(w.ResetsAt).After(t.limit) {
				t.limit = unixTime(w.ResetsAt)
			}
		}
	case "error": // one with willRetry is the network's, and no sign of progress
		switch {
		case !n.WillRetry:
			t.alive()
		case ours && n.Error != nil && !t.retrying:
			t.retrying = true // once per turn is enough
			t.host.Notice("Codex does not reach its model, and tries again: " + clip(n.Error.Message+" "+n.Error.Details, 500))
		}
	case "serverRequest/resolved":
		t.questions.settled(string(n.RequestID))
	case "turn/completed":
		if ours && t.turning && (t.turn == "" || n.Turn.ID == t.turn) {
			return t.turned(n)
		}
	}
	return false, nil
}

// round counts one round with the model, after each of which Codex tells what was used, and ends
// a turn that takes more than it may. Codex has no such limit of its own.
func (t *codexTalk) round() (done bool, err error) {
	if t.rounds++; t.rounds <= t.job.rounds() || t.stopping != nil || t.blocked != nil {
		return false, nil
	}
	t.cutShort()
	return true, fail(CodeTurnTimeout, false, "Codex used up the %d rounds with the model that one turn may take.", t.job.rounds())
}

func (t *codexTalk) planned(n codexNote) {
	var b strings.Builder
	for _, s := range n.Plan {
		b.WriteString(taskLine(s.Step, s.Status == "completed", s.Status == "inProgress"))
	}
	t.host.Plan(b.String())
}

func (t *codexTalk) account() {
	u := api.Usage{Turns: t.result.Usage.Turns}
	for _, one := range t.spent {
		u.InputTokens += one.InputTokens
		u.OutputTokens += one.OutputTokens
	}
	t.result.Usage = u
	t.host.Usage(u)
}

// turned takes a turn's end: the next turn, or the conversation's end.
func (t *codexTalk) turned(n codexNote) (done bool, err error) {
	t.turning, t.turn = false, ""
	t.questions.withdraw()
	t.result.Running = t.closeItems()
	t.result.Usage.Turns++
	t.account()
	if t.stopping != nil || t.blocked != nil {
		return true, nil
	}
	switch n.Turn.Status {
	case "completed":
		t.host.Item(Item{Kind: api.ItemTurnEnd})
		t.questions.next(t.result.Text)
		return false, nil
	case "interrupted":
		return true, fail(CodeCrashed, true, "Codex broke off its turn.")
	default:
		e := n.Turn.Error
		if e == nil {
			e = &codexError{Message: "The turn ended " + or(n.Turn.Status, "without a status") + "."}
		}
		return true, t.failed(*e)
	}
}

// failed is the failure that an error of Codex stands for.
func (t *codexTalk) failed(e codexError) *failure {
	text := clip(strings.TrimSpace(e.Message+" "+e.Details), 500)
	class, status := e.class()
	switch {
	case class == "unauthorized" || status == 401 || status == 403:
		return fail(CodeNotSignedIn, false, "Codex is not signed in for the worker's user. %s", text)
	case class == "usageLimitExceeded" || class == "rateLimitExceeded" || status == 429:
		f := fail(CodeUsageLimit, true, "The usage limit of Codex's account is reached. %s", text)
		if f.reset = t.limit; f.reset.IsZero() {
			f.reset = limitEnd(text, time.Now(), time.Local)
		}
		return f
	case class == "sessionBudgetExceeded":
		return fail(CodeSpendLimit, false, "Codex reached its own spend limit. %s", text)
	}
	final := map[string]bool{
		"contextWindowExceeded": true, "badRequest": true, "modelNotFound": true, "cyberPolicy": true, "misalignmentPolicyViolation": true,
		"tooManyDenials": true, "sandboxError": true,
	}
	return fail(CodeCrashed, !final[class] && status != 400 && status != 404, "Codex failed. %s", text)
}

// class is an error's name, and the HTTP status behind it if there is one.
func (e codexError) class() (name string, status int) {
	if name = asText(e.Info); name != "" {
		return name, 0
	}
	var variant map[string]struct {
		Status *int `json:"httpStatusCode"`
	}
	if json.Unmarshal(e.Info, &variant, lenient) != nil {
		return "", 0
	}
	for name, v := range variant {
		if v.Status != nil {
			return name, *v.Status
		}
		return name, 0
	}
	return "", 0
}

// denied takes Codex's refusal of a request of ours. All refusals have the code -32600, so the
// text decides.
func (t *codexTalk) denied(method string, code int64, text string) error {
	switch {
	case method == "turn/interrupt" || method == codexSteer: // the turn has just ended, or will be ended
		return nil
	case method == "thread/resume" && (strings.Contains(text, "no rollout found") || strings.Contains(text, "invalid thread id") || strings.Contains(text, "not found")):
		f := fail(CodeCrashed, false, "Codex does not know the agent session %s any more.", clip(t.job.Session, 100))
		f.unknown = true
		return f
	default:
		return fail(CodeCrashed, code != -32600, "Codex refused %s: %s", method, clip(text, 500))
	}
}
