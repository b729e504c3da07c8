package agent

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// claudeUsage is what one message has used.
type claudeUsage struct {
	Input   int64 `json:"input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
	Read    int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}

func (u claudeUsage) totals() api.Usage {
	return api.Usage{InputTokens: u.Input + u.Written + u.Read, OutputTokens: u.Output}
}

// claudeResult ends a turn.
type claudeResult struct {
	Subtype  string         `json:"subtype"`
	IsError  bool           `json:"is_error"`
	Text     string         `json:"result"`
	Turns    int64          `json:"num_turns"`
	Stop     string         `json:"stop_reason"`
	Terminal string         `json:"terminal_reason"`
	Status   int            `json:"api_error_status"`
	Asked    []string       `json:"user_message_uuids"` // the turns that it is about, in newer versions
	Errors   jsontext.Value `json:"errors"`
	Cost     float64        `json:"total_cost_usd"` // of the agent session so far
	Models   map[string]struct {
		Input   int64 `json:"inputTokens"`
		Output  int64 `json:"outputTokens"`
		Read    int64 `json:"cacheReadInputTokens"`
		Written int64 `json:"cacheCreationInputTokens"`
	} `json:"modelUsage"` // of the agent session so far
	Denials []struct {
		Tool  string         `json:"tool_name"`
		ID    string         `json:"tool_use_id"`
		Input jsontext.Value `json:"tool_input"`
	} `json:"permission_denials"`
}

// turned takes a turn's result: the next turn, or the conversation's end.
func (t *claudeTalk) turned(raw []byte) (done bool, err error) {
	var r claudeResult
	if err := json.Unmarshal(raw, &r, lenient); err != nil {
		return true, fail(CodeCrashed, true, "Claude Code ended a turn with a result that can't be read: %v.", err)
	}
	t.account(r)
	for _, d := range r.Denials { // what the program refused by itself, such as hidden files
		_, at, _ := t.judge.decide(t.judge.claudeActions(d.Tool, d.Input))
		if at.Tool == "" {
			at = Action{SideEffects, clip(string(d.Input), 4000), d.Tool}
		}
		t.deny(d.ID, at, Deny)
	}
	if t.stopping != nil || t.blocked != nil {
		return true, nil
	}
	if !t.turning || !t.about(r) {
		return false, nil // unasked, about something that ran in the background
	}
	t.questions.withdraw()
	if f := t.failed(r); f != nil {
		t.turning = false
		return true, f
	}
	if t.goesOn(r) {
		return false, nil
	}
	t.turning = false
	if r.Text != "" {
		t.result.Text = r.Text
	}
	t.item(Item{Kind: api.ItemTurnEnd, Text: turnEnd(r)})
	t.questions.next(t.result.Text)
	return false, nil
}

// turnEnd says what people should know about a turn that ended well.
func turnEnd(r claudeResult) string {
	if len(r.Denials) == 0 {
		return ""
	}
	names := map[string]bool{}
	var list []string
	for _, d := range r.Denials {
		if !names[d.Tool] {
			names[d.Tool] = true
			list = append(list, d.Tool)
		}
	}
	calls := strconv.Itoa(len(r.Denials)) + " tool calls of this turn were"
	if len(r.Denials) == 1 {
		calls = "1 tool call of this turn was"
	}
	return calls + " refused: " + strings.Join(list, ", ") + "."
}

// account notes what the agent session has used so far.
func (t *claudeTalk) account(r claudeResult) {
	var u api.Usage
	for _, m := range r.Models {
		u.InputTokens += m.Input + m.Read + m.Written
		u.OutputTokens += m.Output
	}
	u.CostMicros = int64(min(max(r.Cost*1e6, 0), api.MaxUsage) + 0.5)
	u.Turns = t.result.Usage.Turns + 1
	if u.InputTokens == 0 && u.OutputTokens == 0 { // a failed start or a cut turn may count nothing
		u.InputTokens, u.OutputTokens, u.CostMicros = t.result.Usage.InputTokens, t.result.Usage.OutputTokens, t.result.Usage.CostMicros
	}
	t.base, t.baseKnown, t.spent = u, true, map[string]api.Usage{}
	t.result.Usage = u
	t.host.Usage(u)
}

// spend notes what a message has used while its turn still runs. Its cost is known
// when the turn ends.
func (t *claudeTalk) spend(id string, u api.Usage) {
	if !t.baseKnown || t.spent[id] == u {
		return
	}
	t.spent[id] = u
	sum := t.base
	for _, one := range t.spent {
		sum.InputTokens += one.InputTokens
		sum.OutputTokens += one.OutputTokens
	}
	t.result.Usage = sum
	t.host.Usage(sum)
}

// failed says why a turn didn't end well, nil when it did. What the program calls success may
// not be one.
func (t *claudeTalk) failed(r claudeResult) *failure {
	text := r.Text
	var errs []string
	if json.Unmarshal(r.Errors, &errs, lenient) == nil && len(errs) > 0 {
		text = strings.TrimSpace(text + " " + strings.Join(errs, " "))
	}
	short := clip(text, 500)
	switch {
	case !r.IsError && (r.Subtype == "success" || r.Subtype == ""):
		if r.Stop == "tool_use" {
			return fail(CodeCrashed, true, "Claude Code stopped in the middle of a tool call.")
		}
		if r.Terminal != "" && r.Terminal != "completed" && r.Terminal != "stop_hook_prevented" && r.Terminal != "hook_stopped" {
			return fail(CodeCrashed, true, "Claude Code did not finish its turn (%s). %s", r.Terminal, short)
		}
		return nil
	case r.Subtype == "error_max_turns":
		return fail(CodeTurnTimeout, false, "Claude Code used up the %d rounds with the model that one turn may take.", t.job.rounds())
	case r.Subtype == "error_max_budget_usd":
		return fail(CodeSpendLimit, false, "Claude Code reached its own spend limit. %s", short)
	case strings.Contains(text, "No conversation found"):
		f := fail(CodeCrashed, false, "Claude Code does not know the agent session %s any more.", t.job.Session)
		f.unknown = true
		return f
	case t.signedOut(r, text):
		return fail(CodeNotSignedIn, false, "Claude Code is not signed in for the worker's user. %s", short)
	}
	if reset, limited := t.usageLimit(r, text); limited {
		f := fail(CodeUsageLimit, t.cause != "billing_error" || !reset.IsZero(), "The usage limit of Claude Code's account is reached. %s", short)
		f.reset = reset
		return f
	}
	return fail(CodeCrashed, r.Status == 0 || r.Status >= 500 || r.Status == 408, "Claude Code failed (%s). %s", or(r.Terminal, r.Subtype), short)
}

func (t *claudeTalk) signedOut(r claudeResult, text string) bool {
	switch t.cause {
	case "authentication_failed", "oauth_org_not_allowed", "account_on_hold", "verification_required":
		return true
	}
	if r.Status == 401 || r.Status == 403 && strings.Contains(text, "auth") {
		return true
	}
	lower := strings.ToLower(text)
	return strings.Contains(lower, "not logged in") || strings.Contains(lower, "/login") || strings.Contains(lower, "invalid api key")
}

// usageLimit says whether the account's limit ended a turn, and until when if the program said
// so, in an event or in its words. Being out of credit is not a limit that ends by itself.
func (t *claudeTalk) usageLimit(r claudeResult, text string) (reset time.Time, limited bool) {
	lower := strings.ToLower(text)
	limited = t.cause == "rate_limit" || t.cause == "billing_error" || r.Status == 429 || r.Terminal == "blocking_limit" ||
		strings.Contains(lower, "limit reached") || strings.Contains(lower, "hit your") && strings.Contains(lower, "limit")
	if !limited {
		return time.Time{}, false
	}
	if !t.limit.IsZero() {
		return t.limit, true
	}
	return limitEnd(text, time.Now(), time.Local), true
}

func unixTime(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
