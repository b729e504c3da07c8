package agent

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/worker/agent/cmdline"
)

// claudeInput has the inputs of tools that a policy looks at.
type claudeInput struct {
	Command   string `json:"command"`
	Why       string `json:"description"`
	Beyond    bool   `json:"dangerouslyDisableSandbox"`
	File      string `json:"file_path"`
	Notebook  string `json:"notebook_path"`
	Path      string `json:"path"`
	URL       string `json:"url"`
	Query     string `json:"query"`
	Host      string `json:"host"`
	Questions []struct {
		Question string `json:"question"`
		Header   string `json:"header"`
		Multi    bool   `json:"multiSelect"`
		Options  []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
			Preview     string `json:"preview"`
		} `json:"options"`
	} `json:"questions"`
}

// actions returns what a call of one of Claude Code's tools would do, nil for those that stay
// within the session. An unknown tool is judged as a side effect.
func (j *judge) claudeActions(tool string, input jsontext.Value) []toolAction {
	var in claudeInput
	if json.Unmarshal(input, &in, lenient) != nil {
		return []toolAction{{Action: Action{SideEffects, clip(string(input), 4000), tool}}}
	}
	one := func(area Area, what string) []toolAction { return []toolAction{{Action: Action{area, what, tool}}} }
	switch tool {
	case "Bash", "PowerShell", "Monitor":
		return j.command(tool, in.Command, "", in.Beyond)
	case "Write", "Edit", "MultiEdit":
		return []toolAction{j.write(tool, in.File)}
	case "NotebookEdit":
		return []toolAction{j.write(tool, in.Notebook)}
	case "Read":
		return j.read(tool, in.File)
	case "Grep", "Glob", "LS":
		return j.read(tool, or(in.Path, j.dir))
	case "WebFetch":
		return one(Network, in.URL)
	case "WebSearch":
		return one(Network, in.Query)
	case "AskUserQuestion", "Task", "Agent", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskStop", "TaskOutput", "BashOutput",
		"KillShell", "ToolSearch", "Skill", "EnterPlanMode", "ExitPlanMode", "ReportFindings", "StructuredOutput":
		return nil
	}
	if name, ours := strings.CutPrefix(tool, "mcp__"+toolServer+"__"); ours {
		out := one(Workspace, name)
		out[0].contained = true // the coordinator decides what a run's own token may do there
		return out
	}
	if in.Host != "" { // a command in the sandbox wants to connect
		return one(Network, in.Host)
	}
	return one(SideEffects, tool+" "+clip(string(input), 4000))
}

// claudeRequest is one of the program's requests.
type claudeRequest struct {
	Subtype  string         `json:"subtype"`
	ToolName string         `json:"tool_name"`
	Input    jsontext.Value `json:"input"`
	CallID   string         `json:"tool_use_id"`
}

// asked answers a request of the program, at once or when a person has answered.
func (t *claudeTalk) asked(line claudeLine) {
	id := string(line.RequestID) // as JSON: whatever it is, it goes back as it came
	if id == "" {
		return
	}
	var r claudeRequest
	if json.Unmarshal(line.Request, &r, lenient) != nil {
		t.refuse(id, "this request can't be read")
		return
	}
	switch {
	case r.Subtype == "can_use_tool" && r.ToolName != "" && len(r.Input) > 0:
		t.permission(id, r)
	case r.Subtype == "hook_callback":
		t.hook(id, r)
	case r.Subtype == "elicitation": // a tool server's form; we have none
		t.reply(id, map[string]any{"action": "decline"})
	default:
		t.refuse(id, "this request is unknown here: "+clip(r.Subtype, 100))
	}
}

// hook answers the program before each tool call with what the rules say about it; the rest
// the program judges itself, and asks us about whatever isn't harmless.
func (t *claudeTalk) hook(id string, r claudeRequest) {
	var call struct {
		Tool  string         `json:"tool_name"`
		Input jsontext.Value `json:"tool_input"`
	}
	if json.Unmarshal(r.Input, &call, lenient) != nil || call.Tool == "" {
		t.refuse(id, "this hook can't be read") // which blocks the call
		return
	}
	ruling, at := t.judge.ruled(r.CallID, t.judge.claudeActions(call.Tool, call.Input))
	decision := ""
	switch ruling {
	case Deny, DenyStop:
		decision = "deny"
		t.deny(r.CallID, at, ruling)
	case Ask:
		decision = "ask"
	}
	if decision == "" {
		t.reply(id, map[string]any{})
		return
	}
	t.reply(id, map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": refusal(at),
	}})
	if ruling == DenyStop {
		t.block(at)
	}
}

// deny shows people a refusal, once for each tool call.
func (t *claudeTalk) deny(call string, a Action, r Ruling) {
	if call != "" && t.refusalsReported[call] {
		return
	}
	t.refusalsReported[call] = true
	t.host.Denied(a, r)
}

// permission decides on a tool call that the program would not make by itself.
func (t *claudeTalk) permission(id string, r claudeRequest) {
	if t.stopping != nil || t.blocked != nil {
		t.refusalsReported[r.CallID] = true
		t.reply(id, denial("The session is being ended.", true))
		return
	}
	if r.ToolName == "AskUserQuestion" {
		t.question(id, r)
		return
	}
	actions := t.judge.claudeActions(r.ToolName, r.Input)
	ruling, at := t.judge.verdict(r.CallID, actions)
	switch ruling {
	case Allow:
		t.reply(id, map[string]any{"behavior": "allow", "updatedInput": r.Input})
	case Ask:
		t.questions.ask(questionAnswer{id: id, call: r.CallID, actions: actions, input: r.Input.Clone(), asked: Question{
			Kind: AskApproval, Action: at, Standing: t.judge.proposals(actions), Text: claudeCall(r.ToolName, r.Input), Why: claudeWhy(r.Input),
		}})
	default:
		t.deny(r.CallID, at, ruling)
		t.reply(id, denial(refusal(at), ruling == DenyStop))
		if ruling == DenyStop {
			t.block(at)
		}
	}
}

// claudeWhy is what the model says a command is for.
func claudeWhy(input jsontext.Value) string {
	var in claudeInput
	if json.Unmarshal(input, &in, lenient) != nil || in.Command == "" {
		return "" // for any other tool that is asked about, it is not a reason
	}
	return in.Why
}

// What fits into one of several questions, in bytes (contract 6.5).
const (
	maxQuestionID = 200
	maxQuestion   = 4096
)

// question passes the model's own questions on to people.
func (t *claudeTalk) question(id string, r claudeRequest) {
	t.refusalsReported[r.CallID] = true // whatever comes of it is not a refusal
	var in claudeInput
	if json.Unmarshal(r.Input, &in, lenient) != nil || len(in.Questions) == 0 {
		t.reply(id, denial("The questions can't be read.", false))
		return
	}
	if t.job.Policy.Unattended {
		t.reply(id, denial("There is nobody to ask. Decide yourself, and say what you assumed.", false))
		return
	}
	q := Question{Kind: AskQuestions}
	for i, one := range in.Questions {
		c := Choice{ID: one.Question, Header: one.Header, Text: one.Question, Several: one.Multi, Other: true}
		if len(c.ID) > maxQuestionID {
			c.ID = fmt.Sprintf("question %d", i+1)
		}
		longest := len(c.Text)
		for _, o := range one.Options {
			c.offer(o.Label, api.OptionAbout{Description: o.Description, Preview: o.Preview})
			longest = max(longest, len(o.Label))
		}
		if longest > maxQuestion {
			t.reply(id, denial(fmt.Sprintf("No question and no option may be longer than %d bytes. Ask more briefly.", maxQuestion), false))
			return
		}
		q.Choices = append(q.Choices, c.settled())
		q.Text = strings.TrimSpace(q.Text + "\n" + one.Question)
	}
	t.questions.ask(questionAnswer{id: id, call: r.CallID, input: r.Input.Clone(), asked: q})
}

// claudeAnswer is a person's answer in the program's form.
func claudeAnswer(j *judge, a questionAnswer) map[string]any {
	if a.asked.Kind == AskQuestions {
		var in map[string]any
		_ = json.Unmarshal(a.input, &in, lenient)
		answers := map[string]string{}
		for _, c := range a.asked.Choices {
			answers[c.Text] = strings.Join(c.taken(a.answer.Choices[c.ID]), ", ")
		}
		in["answers"] = answers
		return map[string]any{"behavior": "allow", "updatedInput": in}
	}
	if !a.answer.Approved {
		return denial(strings.TrimSpace("This was declined. "+a.answer.Text), false)
	}
	if a.answer.ForSession {
		j.grant(a.actions)
	}
	return map[string]any{"behavior": "allow", "updatedInput": jsontext.Value(a.input)}
}

func denial(why string, interrupt bool) map[string]any {
	out := map[string]any{"behavior": "deny", "message": why}
	if interrupt {
		out["interrupt"] = true
	}
	return out
}

// refusal is what the agent is told.
func refusal(a Action) string {
	words := fmt.Sprintf("The policy of this worker does not allow it (%s: %s). Go on without.", a.Area, clip(a.What, 300))
	if a.Area == Shell || a.Area == SideEffects || a.Area == Network {
		if why := cmdline.Read(a.What).Unclear; why != "" {
			words += " Or write the command out: " + why + "."
		}
	}
	return words
}
