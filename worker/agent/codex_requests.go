package agent

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/worker/agent/cmdline"
)

// codexParams has the parameters of Codex's requests.
type codexParams struct {
	ItemID    string         `json:"itemId"`
	Command   string         `json:"command"`
	Argv      []string       `json:"argv"`
	Cwd       string         `json:"cwd"`
	Reason    string         `json:"reason"`
	GrantRoot string         `json:"grantRoot"`
	Network   *codexNetwork  `json:"networkApprovalContext"`
	Grant     codexGrant     `json:"permissions"`
	Server    string         `json:"serverName"`
	Message   string         `json:"message"`
	Schema    jsontext.Value `json:"requestedSchema"`
	Questions []struct {
		ID       string `json:"id"`
		Header   string `json:"header"`
		Question string `json:"question"`
		Other    bool   `json:"isOther"`
		Secret   bool   `json:"isSecret"`
		Options  []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
}

type codexNetwork struct {
	Host     string `json:"host"`
	Protocol string `json:"protocol"`
}

type codexGrant struct {
	Network jsontext.Value `json:"network"`
	Files   jsontext.Value `json:"fileSystem"`
}

// asked answers a request of the program, at once or when a person has answered.
func (t *codexTalk) asked(id, method string, params jsontext.Value) {
	var p codexParams
	if json.Unmarshal(params, &p, lenient) != nil {
		t.rpc.refuse(id, "the parameters can't be read")
		return
	}
	if t.stopping != nil || t.blocked != nil {
		t.rpc.refuse(id, "the session is being ended")
		return
	}
	switch method {
	case "item/commandExecution/requestApproval":
		t.approval(id, method, p, t.commandActions(p), or(p.networkText(), cmdline.Unwrap(p.Command)))
	case "item/fileChange/requestApproval":
		change := t.items[p.ItemID]
		t.approval(id, method, p, t.changeActions(change, p.GrantRoot), or(change.diffs(), "Change files."))
	case "item/permissions/requestApproval":
		actions, text := t.grantActions(p)
		t.approval(id, method, p, actions, text)
	case "mcpServer/elicitation/request":
		t.approval(id, method, p, t.serverActions(p), p.Message)
	case "item/tool/requestUserInput":
		t.question(id, p)
	case "item/tool/call": // a tool that a client offers; we offer none
		t.rpc.reply(id, map[string]any{"contentItems": []any{}, "success": false})
	case "execCommandApproval", "applyPatchApproval": // from threads older than any that we begin
		t.rpc.reply(id, map[string]any{"decision": "abort"})
	default:
		t.rpc.refuse(id, "this request is unknown here: "+clip(method, 100))
	}
}

func (p codexParams) networkText() string {
	if p.Network == nil {
		return ""
	}
	return fmt.Sprintf("Connect to %s (%s).", p.Network.Host, or(p.Network.Protocol, "any protocol"))
}

// commandActions are what a command that Codex wants to run outside its sandbox would do.
func (t *codexTalk) commandActions(p codexParams) []toolAction {
	if p.Network != nil {
		return []toolAction{{Action: Action{Network, p.Network.Host, "shell"}}}
	}
	return t.judge.command("shell", cmdline.Unwrap(p.Command), p.Cwd, true)
}

func (t *codexTalk) changeActions(i codexItem, root string) []toolAction {
	var out []toolAction
	for _, c := range i.Changes {
		out = append(out, t.judge.write("edit", c.Path))
		if c.Kind.Move != "" {
			out = append(out, t.judge.write("edit", c.Kind.Move))
		}
	}
	if root != "" {
		out = append(out, t.judge.write("edit", root))
	}
	if len(out) == 0 { // of a change that wasn't announced
		out = append(out, toolAction{Action: Action{Filesystem, "/", "edit"}})
	}
	return out
}

// grantActions are the actions that a request for more rights is about.
func (t *codexTalk) grantActions(p codexParams) (actions []toolAction, text string) {
	var files struct {
		Read    []string `json:"read"`
		Write   []string `json:"write"`
		Entries []struct {
			Access string         `json:"access"`
			Path   jsontext.Value `json:"path"`
		} `json:"entries"`
	}
	_ = json.Unmarshal(p.Grant.Files, &files, lenient)
	var lines []string
	for _, path := range files.Write {
		actions, lines = append(actions, t.judge.write("permissions", path)), append(lines, "write "+path)
	}
	for _, path := range files.Read {
		d := t.judge.write("permissions", path)
		d.contained = false
		actions, lines = append(actions, d), append(lines, "read "+path)
	}
	for _, e := range files.Entries {
		what := string(e.Path)
		actions, lines = append(actions, toolAction{Action: Action{Filesystem, what, "permissions"}}), append(lines, e.Access+" "+what)
	}
	if len(p.Grant.Network) > 0 && p.Grant.Network.Kind() != 'n' {
		actions, lines = append(actions, toolAction{Action: Action{Network, "*", "permissions"}}), append(lines, "use the network")
	}
	if len(actions) == 0 {
		actions = append(actions, toolAction{Action: Action{SideEffects, "more rights", "permissions"}})
	}
	return actions, strings.Join(lines, "\n")
}

func (t *codexTalk) serverActions(p codexParams) []toolAction {
	if p.Server == toolServer {
		return []toolAction{{Action: Action{Workspace, p.Message, p.Server}, contained: true}}
	}
	return []toolAction{{Action: Action{SideEffects, p.Server + " " + p.Message, p.Server}}}
}

// approval decides on something that Codex doesn't do by itself.
func (t *codexTalk) approval(id, method string, p codexParams, actions []toolAction, text string) {
	ruling, at := t.judge.verdict(p.ItemID, actions)
	switch ruling {
	case Allow:
		t.rpc.reply(id, codexYes(method, p, false))
	case Ask:
		t.questions.ask(questionAnswer{id: id, method: method, params: p, actions: actions, asked: Question{
			Kind: AskApproval, Action: at, Standing: t.judge.proposals(actions), Why: p.Reason, Text: or(or(text, at.What), "Something that Codex doesn't name."),
		}})
	default:
		t.host.Denied(at, ruling)
		t.rpc.reply(id, codexNo(method, ruling == DenyStop))
		if ruling == DenyStop {
			t.block(at)
			return
		}
		t.explain(refusal(at))
	}
}

// explain gives the model the reason for a refusal. Codex's own refusals have no room for one:
// it is sent as a further message of the current turn.
func (t *codexTalk) explain(why string) {
	if t.turn == "" {
		return
	}
	t.call(codexSteer, map[string]any{
		"threadId": t.thread, "expectedTurnId": t.turn, "input": []any{map[string]any{"type": "text", "text": why}},
	}, nil)
}

const codexSteer = "turn/steer"

// steer hands what people said to the running turn. That Codex has it, its item shows.
func (t *codexTalk) steer() {
	for said, some := t.host.Urgent(); some; said, some = t.host.Urgent() {
		id := t.rpc.call(codexSteer, map[string]any{
			"threadId": t.thread, "expectedTurnId": t.turn, "clientUserMessageId": said.ID, "input": codexInput(said),
		}, t.job.answerLimit(), nil)
		c := t.rpc.open[id]
		c.said = said.ID
		t.rpc.open[id] = c
	}
}

// codexYes grants what a request asks for.
func codexYes(method string, p codexParams, session bool) map[string]any {
	switch method {
	case "item/permissions/requestApproval":
		granted := map[string]any{}
		if len(p.Grant.Network) > 0 && p.Grant.Network.Kind() != 'n' {
			granted["network"] = p.Grant.Network
		}
		if len(p.Grant.Files) > 0 && p.Grant.Files.Kind() != 'n' {
			granted["fileSystem"] = p.Grant.Files
		}
		return map[string]any{"permissions": granted, "scope": map[bool]string{true: "session", false: "turn"}[session]}
	case "mcpServer/elicitation/request":
		if needsContent(p.Schema) { // a form, and nobody to fill it in
			return codexNo(method, false)
		}
		return map[string]any{"action": "accept", "content": map[string]any{}, "_meta": nil}
	default:
		return map[string]any{"decision": "accept"}
	}
}

// needsContent reports whether a form has fields that must be filled in.
func needsContent(schema jsontext.Value) bool {
	var s struct {
		Required []string `json:"required"`
	}
	return json.Unmarshal(schema, &s, lenient) == nil && len(s.Required) > 0
}

// codexNo refuses what a request asks for; stop ends the turn too.
func codexNo(method string, stop bool) map[string]any {
	switch method {
	case "item/permissions/requestApproval":
		return map[string]any{"permissions": map[string]any{}, "scope": "turn"}
	case "mcpServer/elicitation/request":
		return map[string]any{"action": map[bool]string{true: "cancel", false: "decline"}[stop], "content": nil, "_meta": nil}
	default:
		return map[string]any{"decision": map[bool]string{true: "cancel", false: "decline"}[stop]}
	}
}

// question passes the model's own questions on to people.
func (t *codexTalk) question(id string, p codexParams) {
	if len(p.Questions) == 0 {
		t.rpc.refuse(id, "there is no question in it")
		return
	}
	if t.job.Policy.Unattended {
		answers := map[string]any{}
		for _, q := range p.Questions {
			answers[q.ID] = map[string]any{"answers": []string{"There is nobody to ask. Decide yourself, and say what you assumed."}}
		}
		t.rpc.reply(id, map[string]any{"answers": answers})
		return
	}
	q := Question{Kind: AskQuestions}
	for _, one := range p.Questions {
		c := Choice{ID: one.ID, Header: one.Header, Text: one.Question, Other: one.Other, Secret: one.Secret}
		for _, o := range one.Options {
			c.offer(o.Label, api.OptionAbout{Description: o.Description})
		}
		q.Choices = append(q.Choices, c.settled())
		q.Text = strings.TrimSpace(q.Text + "\n" + one.Question)
	}
	t.questions.ask(questionAnswer{id: id, asked: q})
}

// answered takes what people said: to a question, to a hook's too, or as the next turn.
func (t *codexTalk) answered(a questionAnswer) (done bool, err error) {
	if a.next {
		if !a.more || t.stopping != nil {
			return true, t.stopping
		}
		t.say(a.said)
		return false, nil
	}
	if a.err != nil { // parked, or the conversation ends
		switch {
		case a.hook != nil:
			a.hook <- hookDenial("Nobody has answered yet. Ask again, word for word, when the work goes on.")
		case a.asked.Kind == AskQuestions:
			t.rpc.refuse(a.id, "nobody has answered yet")
		default:
			t.rpc.reply(a.id, codexNo(a.method, true))
		}
		if t.stopping == nil {
			return t.interrupt(a.err), nil
		}
		return false, nil
	}
	t.host.Alive()
	if a.answer.Approved && a.answer.ForSession {
		t.judge.grant(a.actions)
	}
	switch {
	case a.asked.Kind == AskQuestions:
		answers := map[string]any{}
		for _, c := range a.asked.Choices {
			answers[c.ID] = map[string]any{"answers": []string{a.answer.Choices[c.ID]}}
		}
		t.rpc.reply(a.id, map[string]any{"answers": answers})
	case a.hook != nil && a.answer.Approved:
		a.hook <- []byte("{}")
	case a.hook != nil:
		a.hook <- hookDenial(strings.TrimSpace("This was declined. " + a.answer.Text))
	case a.answer.Approved:
		t.rpc.reply(a.id, codexYes(a.method, a.params, a.answer.ForSession))
	default:
		t.rpc.reply(a.id, codexNo(a.method, false))
		if a.answer.Text != "" {
			t.explain(fmt.Sprintf("A person declined this: %s\nThey said: %s", clip(a.asked.Text, 300), a.answer.Text))
		}
	}
	return false, nil
}

// hooked decides on a tool call before it runs, if rules cover it; what they leave open is
// left to the sandbox and the approvals.
func (t *codexTalk) hooked(call hookCall) {
	var in struct {
		Tool  string         `json:"tool_name"`
		Cwd   string         `json:"cwd"`
		Input jsontext.Value `json:"tool_input"`
	}
	var args struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(call.input, &in, lenient) != nil || in.Tool == "" || json.Unmarshal(in.Input, &args, lenient) != nil {
		call.answer <- hookDenial("The tool call can't be read.")
		return
	}
	if t.stopping != nil || t.blocked != nil {
		call.answer <- hookDenial("The session is being ended.")
		return
	}
	t.alive()
	var actions []toolAction
	text := args.Command
	switch {
	case in.Tool == "apply_patch":
		for _, name := range patched(args.Command) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(or(in.Cwd, t.job.Dir), name)
			}
			actions = append(actions, t.judge.write("edit", name))
		}
	case args.Command != "":
		text = cmdline.Unwrap(args.Command)
		actions = t.judge.command("shell", text, in.Cwd, false)
	default:
		actions, text = t.judge.claudeActions(in.Tool, in.Input), in.Tool+" "+string(in.Input)
	}
	ruling, at := t.judge.ruled("", actions)
	switch ruling {
	case Deny, DenyStop:
		t.host.Denied(at, ruling)
		call.answer <- hookDenial(refusal(at))
		if ruling == DenyStop {
			t.block(at)
		}
	case Ask:
		t.hookings++
		t.questions.ask(questionAnswer{
			id: fmt.Sprintf("hook %d", t.hookings), hook: call.answer, actions: actions, asked: Question{Kind: AskApproval, Action: at, Standing: t.judge.proposals(actions), Text: text},
		})
	default:
		call.answer <- []byte("{}")
	}
}

func hookDenial(why string) []byte {
	b, err := json.Marshal(map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": why,
	}})
	if err != nil {
		return nil // no answer refuses too
	}
	return b
}

// patched are the files that a patch in Codex's form names.
func patched(patch string) []string {
	var out []string
	for line := range strings.Lines(patch) {
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if name, found := strings.CutPrefix(strings.TrimSpace(line), head); found {
				out = append(out, strings.TrimSpace(name))
			}
		}
	}
	return out
}
