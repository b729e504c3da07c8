package agent

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// The words by which programs say what their provider refuses. The protocol has codes for none of
// it.
var (
	acpSignedOut = regexp.MustCompile(`(?i)\b401\b|\b403\b|unauthori[sz]ed|authenticat|invalid api[ _-]?key|invalid x-api-key|api[ _-]key (?:is )?(?:not|missing|required|invalid)|not (?:logged|signed) in|permission_denied`)
	acpLimited   = regexp.MustCompile(`(?i)\b429\b|rate.?limit|usage limit|quota|resource.?exhausted|too many requests|limit reached|credit|insufficient (?:funds|balance)|billing`)
	acpBroke     = regexp.MustCompile(`(?i)credit|insufficient|billing`) // doesn't end by itself
)

// acpAnswer is one of the answers that a program offers.
type acpAnswer struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// acpAsked is a request of the program that waits for a person.
type acpAsked struct {
	answers []acpAnswer // of a permission
	form    bool        // it is a form
}

// asked answers a request of the program, at once or when a person has answered.
func (t *acpTalk) asked(id, method string, params jsontext.Value) {
	switch method {
	case "session/request_permission":
		t.permission(id, params)
	case "elicitation/create":
		t.form(id, params)
	default: // files and terminals among them: none are offered
		t.rpc.refuse(id, "this request is unknown here: "+clip(method, 100))
	}
}

// permission decides on something that the program doesn't do by itself.
func (t *acpTalk) permission(id string, params jsontext.Value) {
	var p struct {
		Session string         `json:"sessionId"`
		Call    jsontext.Value `json:"toolCall"`
		Answers []acpAnswer    `json:"options"`
	}
	var u acpCallUpdate
	if json.Unmarshal(params, &p, lenient) != nil || json.Unmarshal(p.Call, &u, lenient) != nil {
		t.rpc.refuse(id, "the parameters can't be read")
		return
	}
	a := acpAsked{answers: p.Answers}
	if t.stopping != nil || t.blocked != nil || !t.turning {
		t.drop(id, a)
		return
	}
	c := t.wanted(u)
	actions, text := t.actions(c)
	ruling, at := t.judge.verdict(c.id, actions)
	switch {
	case ruling == Allow && a.option("allow_once") == "":
		// Another answer would stay in the program's memory, where no rule reaches it.
		t.host.Notice(t.name + " offers no permission for just once: it is refused. " + clip(text, 300))
		t.drop(id, a)
	case ruling == Allow:
		t.pick(id, a.option("allow_once"))
	case ruling == Ask:
		if t.asks[id].answers == nil {
			t.asks[id] = a
			t.questions.ask(questionAnswer{id: id, call: c.id, actions: actions, asked: Question{
				Kind: AskApproval, Action: at, Standing: t.judge.proposals(actions), Text: or(or(text, at.What), "Something that the program doesn't name."),
			}})
		}
	default:
		t.host.Denied(at, ruling)
		t.refuseOnce(id, a)
		if ruling == DenyStop {
			t.block(at)
			return
		}
		t.refused = append(t.refused, refusal(at))
	}
}

// wanted is the tool call that a permission is asked for: as it was told of before, with what the
// request adds. It is in the transcript before the question is.
func (t *acpTalk) wanted(u acpCallUpdate) *acpCall {
	c := t.calls[u.ID]
	if c == nil || c.ended {
		t.round()
		c = &acpCall{id: u.ID}
		if u.ID != "" {
			if t.calls[u.ID] == nil {
				t.order = append(t.order, u.ID)
			}
			t.calls[u.ID] = c
		}
	}
	status := c.status
	c.merge(u)
	c.status = or(status, u.Status)
	if u.ID != "" {
		t.begin(c)
	}
	return c
}

// actions are what a tool call would do, and its text for people. What it is about is taken from
// its input, else from what it shows; where neither says it, only rules for a whole area allow it.
func (t *acpTalk) actions(c *acpCall) (actions []toolAction, text string) {
	tool := c.tool()
	vague := func(area Area) []toolAction {
		return []toolAction{{Action: Action{area, clip(c.text(), 4000), tool}, unseen: true}}
	}
	text = c.text()
	switch c.kind {
	case "execute":
		command := c.command()
		if command == "" && acpTitled(t.job) {
			command = c.title
		}
		if command == "" {
			return vague(Shell), text
		}
		in := c.in()
		return t.judge.command(tool, command, or(in.Cwd, in.WorkDir), false), command
	case "edit", "delete", "move":
		for _, file := range c.files() {
			actions = append(actions, t.judge.write(tool, file))
		}
		if len(actions) == 0 {
			actions = []toolAction{{Action: Action{Filesystem, "/", tool}}}
		}
		return actions, text
	case "read", "search":
		files := c.files()
		for _, file := range files {
			actions = append(actions, t.judge.read(tool, file)...)
		}
		if len(files) == 0 && c.kind == "read" {
			return vague(Filesystem), text
		}
		return actions, text
	case "fetch":
		in := c.in()
		for _, what := range []string{in.URL, in.URI, in.Query} { // whichever the program reads
			if what != "" {
				actions = append(actions, toolAction{Action: Action{Network, what, tool}})
			}
		}
		if len(actions) == 0 {
			return vague(Network), text
		}
		return actions, text
	case "think":
		return nil, text
	}
	return t.others(c, tool), text
}

// others are what a tool call does that is none of the protocol's kinds: a tool server's, or
// something of the program's own.
func (t *acpTalk) others(c *acpCall, tool string) []toolAction {
	for _, head := range []string{"mcp__" + toolServer + "__", toolServer + "__", toolServer + "_"} {
		if name, ours := strings.CutPrefix(c.name, head); ours && len(t.job.Tools) > 0 {
			return []toolAction{{Action: Action{Workspace, name, tool}, contained: true}} // the coordinator decides what a run's own token may do there
		}
	}
	if in := c.in(); c.command() != "" {
		return t.judge.command(tool, c.command(), or(in.Cwd, in.WorkDir), false)
	}
	out := []toolAction{{Action: Action{SideEffects, strings.TrimSpace(tool + " " + clip(c.about(), 4000)), tool}}}
	for _, file := range c.files() {
		if d := t.judge.write(tool, file); d.forbidden {
			out = append(out, d)
		}
	}
	return out
}

// about is what a call says besides its tool's name.
func (c *acpCall) about() string {
	if input := strings.TrimSpace(string(c.input)); input != "" && input != "{}" {
		return input
	}
	if c.title != c.name {
		return c.title
	}
	return ""
}

// acpTitled reports whether a program's title of a command is the command itself, word by word.
func acpTitled(job Job) bool {
	p, _ := api.ACPProgramOf(job.Executable)
	return p.Name == "gemini"
}

func (a acpAsked) option(kind string) string {
	for _, o := range a.answers {
		if o.Kind == kind {
			return o.ID
		}
	}
	return ""
}

func (t *acpTalk) pick(id, option string) {
	delete(t.asks, id)
	t.rpc.reply(id, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}})
}

// refuseOnce refuses something this once. A program that only offers to remember the refusal is
// told that nobody decided.
func (t *acpTalk) refuseOnce(id string, a acpAsked) {
	if option := a.option("reject_once"); option != "" {
		t.pick(id, option)
		return
	}
	t.drop(id, a)
}

// drop answers a request that nobody decided about.
func (t *acpTalk) drop(id string, a acpAsked) {
	delete(t.asks, id)
	if a.form {
		t.rpc.reply(id, map[string]any{"action": "cancel"})
		return
	}
	t.rpc.reply(id, map[string]any{"outcome": map[string]any{"outcome": "cancelled"}})
}

// answered takes what people said: to a question, or as the next turn.
func (t *acpTalk) answered(a questionAnswer) (done bool, err error) {
	if a.next {
		if !a.more || t.stopping != nil {
			return true, t.stopping
		}
		t.say(a.said)
		return false, nil
	}
	asked := t.asks[a.id]
	if a.err != nil { // parked, or the conversation ends
		t.drop(a.id, asked)
		if t.stopping == nil {
			return t.interrupt(a.err), nil
		}
		return false, nil
	}
	t.host.Alive()
	switch {
	case a.asked.Kind == AskQuestions:
		t.filled(a, asked)
	case a.answer.Approved && asked.option("allow_once") == "":
		t.host.Notice(t.name + " offers no permission for just once: it is refused. " + clip(a.asked.Text, 300))
		t.drop(a.id, asked)
	case a.answer.Approved:
		if a.answer.ForSession {
			t.judge.grant(a.actions)
		}
		t.pick(a.id, asked.option("allow_once"))
	default:
		t.refuseOnce(a.id, asked)
		words := "A person declined this: " + clip(a.asked.Text, 300)
		if a.answer.Text != "" {
			words += "\nThey said: " + a.answer.Text
		}
		t.refused = append(t.refused, words)
	}
	return false, nil
}

// form passes questions of the program on to people: those of its forms that consist of texts and
// choices.
func (t *acpTalk) form(id string, params jsontext.Value) {
	var p struct {
		Mode    string `json:"mode"`
		Message string `json:"message"`
		Schema  struct {
			Fields   jsontext.Value `json:"properties"`
			Required []string       `json:"required"`
		} `json:"requestedSchema"`
	}
	if json.Unmarshal(params, &p, lenient) != nil || p.Mode != "" && p.Mode != "form" || t.stopping != nil || t.blocked != nil {
		t.rpc.reply(id, map[string]any{"action": "cancel"})
		return
	}
	choices, plain := acpFields(p.Schema.Fields)
	if !plain || t.job.Policy.Unattended {
		t.rpc.reply(id, map[string]any{"action": "decline"})
		return
	}
	q := Question{Kind: AskQuestions, Text: p.Message, Choices: choices}
	t.asks[id] = acpAsked{form: true}
	t.questions.ask(questionAnswer{id: id, asked: q})
}

// acpOptions are the values that a field of a form may have.
type acpOptions struct {
	Enum  []string   `json:"enum"`
	OneOf []acpValue `json:"oneOf"`
	AnyOf []acpValue `json:"anyOf"` // of several
}

type acpValue struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

func (o acpOptions) offer(c *Choice) {
	for _, value := range o.Enum {
		c.offer(value, api.OptionAbout{})
	}
	for _, v := range slices.Concat(o.OneOf, o.AnyOf) {
		about := api.OptionAbout{}
		if v.Title != v.Const {
			about.Description = v.Title
		}
		c.offer(v.Const, about)
	}
}

// acpFields are the questions of a form; plain is false for one that has other fields than texts.
func acpFields(properties jsontext.Value) (choices []Choice, plain bool) {
	fields, ok := members(properties)
	if !ok || len(fields) == 0 {
		return nil, false
	}
	for _, f := range fields {
		var s struct {
			acpOptions
			Type   string     `json:"type"`
			Title  string     `json:"title"`
			About  string     `json:"description"`
			Format string     `json:"format"`
			Items  acpOptions `json:"items"`
		}
		if json.Unmarshal(f.value, &s, lenient) != nil {
			return nil, false
		}
		c := Choice{ID: f.name, Text: or(s.About, or(s.Title, f.name)), Secret: s.Format == "password"}
		if s.About != "" && s.Title != f.name {
			c.Header = s.Title
		}
		options := s.acpOptions
		if s.Type == "array" {
			options, c.Several = s.Items, true
		}
		options.offer(&c)
		if c = c.settled(); s.Type != "string" && !c.Several || c.Several && len(c.Options) == 0 {
			return nil, false
		}
		choices = append(choices, c)
	}
	return choices, true
}

// filled answers a form.
func (t *acpTalk) filled(a questionAnswer, asked acpAsked) {
	content := map[string]any{}
	for _, c := range a.asked.Choices {
		content[c.ID] = a.answer.Choices[c.ID]
		if c.Several {
			content[c.ID] = c.taken(a.answer.Choices[c.ID])
		}
	}
	delete(t.asks, a.id)
	t.rpc.reply(a.id, map[string]any{"action": "accept", "content": content})
}
