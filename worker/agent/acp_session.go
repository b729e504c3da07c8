package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// acpVersion is the version of the protocol that is spoken here.
const acpVersion = 1

// acpAgent is what a program says of itself.
type acpAgent struct {
	Version jsontext.Value `json:"protocolVersion"`
	Can     struct {
		Load   bool `json:"loadSession"`
		Prompt struct {
			Image    bool `json:"image"`
			Embedded bool `json:"embeddedContext"`
		} `json:"promptCapabilities"`
		Sessions struct {
			Resume jsontext.Value `json:"resume"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	Info struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	SignIn []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"authMethods"`
}

// resumes reports whether the program can go on with a conversation without repeating it.
func (a acpAgent) resumes() bool {
	return len(a.Can.Sessions.Resume) > 0 && a.Can.Sessions.Resume.Kind() == '{'
}

// speaks reports whether the program answered with the version that is spoken here.
func (a acpAgent) speaks() bool {
	var version float64
	return json.Unmarshal(a.Version, &version) == nil && version == acpVersion
}

// acpHello is the protocol's first request. Files and terminals aren't offered: the program does
// what it does itself, where its own settings and a wrapper hold.
func acpHello() map[string]any {
	return map[string]any{
		"protocolVersion": acpVersion,
		"clientCapabilities": map[string]any{
			"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false,
		},
		"clientInfo": map[string]any{"name": "stint", "title": "Stint", "version": "1"},
	}
}

func (t *acpTalk) greet() {
	t.rpc.call("initialize", acpHello(), t.startLimit(), func(result jsontext.Value) error {
		if json.Unmarshal(result, &t.agent, lenient) != nil {
			return fail(CodeCrashed, false, "%s answers in a way that the Agent Client Protocol doesn't know.", t.name)
		}
		if !t.agent.speaks() {
			return fail(CodeCrashed, false, "%s speaks version %s of the Agent Client Protocol; the worker speaks version %d.",
				t.name, clip(or(string(t.agent.Version), "unknown"), 50), acpVersion)
		}
		return t.open()
	})
}

// startLimit bounds each answer until the session is open.
func (t *acpTalk) startLimit() time.Duration { return max(acpStart, t.job.answerLimit()) }

// open begins the agent session, or resumes it.
func (t *acpTalk) open() error {
	params := map[string]any{"cwd": t.job.Dir, "mcpServers": acpTools(t.job)}
	method := "session/new"
	if t.job.Session != "" {
		params["sessionId"] = t.job.Session
		switch {
		case t.agent.resumes():
			method = "session/resume"
		case t.agent.Can.Load:
			method, t.replays = "session/load", true
		default:
			return t.forgotten("can't go on with an earlier agent session")
		}
	}
	t.rpc.call(method, params, t.startLimit(), func(result jsontext.Value) error {
		var s acpSession
		if json.Unmarshal(result, &s, lenient) != nil || t.job.Session == "" && s.ID == "" {
			return fail(CodeCrashed, true, "%s began a session that can't be read.", t.name)
		}
		t.session = or(t.job.Session, s.ID)
		return t.choose(s)
	})
	return nil
}

// forgotten is the failure of a conversation that can't be resumed.
func (t *acpTalk) forgotten(why string) *failure {
	f := fail(CodeCrashed, false, "%s %s (%s).", t.name, why, clip(t.job.Session, 100))
	f.unknown = true
	return f
}

// acpSession is a session as the program opens it, with what can be chosen in it.
type acpSession struct {
	ID      string      `json:"sessionId"`
	Options []acpOption `json:"configOptions"`
	Modes   struct {
		Current string      `json:"currentModeId"`
		All     []acpChoice `json:"availableModes"`
	} `json:"modes"`
	Models struct {
		Current string      `json:"currentModelId"`
		All     []acpChoice `json:"availableModels"`
	} `json:"models"` // of programs older than configOptions
}

type acpOption struct {
	ID       string      `json:"id"`
	Category string      `json:"category"`
	Current  string      `json:"currentValue"`
	Options  []acpChoice `json:"options"`
}

type acpChoice struct {
	Value   string      `json:"value"`
	ID      string      `json:"id"`
	ModelID string      `json:"modelId"`
	Name    string      `json:"name"`
	Options []acpChoice `json:"options"` // of a group of choices
}

func (c acpChoice) key() string { return or(c.Value, or(c.ID, c.ModelID)) }

// choose sets the model, the effort and plan mode that the job names, and else the mode in which the program asks, where
// it has one. A program that doesn't have what is named is not started with another.
func (t *acpTalk) choose(s acpSession) error {
	settings := acpSettings(s)
	mode := settings["mode"]
	asking := "default"
	if t.job.PlanMode {
		asking = "plan"
		if !mode.has(asking) {
			return fail(CodeCrashed, false, "%s does not offer a plan mode here: leave plan mode out. %s", t.name, mode.offers())
		}
	}
	if mode.has(asking) && mode.current != asking && (t.job.PlanMode || !t.job.Uses.Settings) {
		t.set(mode, asking)
	}
	for _, c := range []struct{ name, word, want string }{{"model", "the model", t.job.Model}, {"thought_level", "the effort", t.job.Effort}} {
		setting := settings[c.name]
		if c.want == "" || c.want == setting.current {
			continue
		}
		if !setting.has(c.want) {
			return fail(CodeCrashed, false, "%s does not offer %s %q here. %s", t.name, c.word, clip(c.want, 100), setting.offers())
		}
		t.set(setting, c.want)
	}
	if len(t.rpc.open) > 0 {
		return nil // when they are answered it goes on
	}
	return t.settled()
}

// acpSetting is something of a session that can be chosen.
type acpSetting struct {
	method  string
	option  string // the option's id, "" where the method is for just this
	member  string // what its value is called in the request
	current string
	values  []string
}

func (s acpSetting) has(value string) bool { return slices.Contains(s.values, value) }

func (s acpSetting) offers() string {
	if len(s.values) == 0 {
		return "It offers none to choose from: set it in the program's own settings."
	}
	return "It offers: " + clip(strings.Join(s.values, ", "), 500) + "."
}

// acpSettings are the mode, the model and the effort of a session, in the newer or the older form.
func acpSettings(s acpSession) map[string]acpSetting {
	out := map[string]acpSetting{}
	if len(s.Modes.All) > 0 {
		out["mode"] = acpSetting{"session/set_mode", "", "modeId", s.Modes.Current, acpKeys(s.Modes.All)}
	}
	if len(s.Models.All) > 0 {
		out["model"] = acpSetting{"session/set_model", "", "modelId", s.Models.Current, acpKeys(s.Models.All)}
	}
	for _, o := range s.Options {
		if name := or(o.Category, o.ID); name == "mode" || name == "model" || name == "thought_level" {
			out[name] = acpSetting{"session/set_config_option", o.ID, "value", o.Current, acpKeys(o.Options)}
		}
	}
	return out
}

func acpKeys(all []acpChoice) (out []string) {
	for _, c := range all {
		if len(c.Options) > 0 {
			out = append(out, acpKeys(c.Options)...)
			continue
		}
		out = append(out, c.key())
	}
	return out
}

func (t *acpTalk) set(s acpSetting, value string) {
	params := map[string]any{"sessionId": t.session, s.member: value}
	if s.option != "" {
		params["configId"] = s.option
	}
	t.rpc.call(s.method, params, t.startLimit(), func(jsontext.Value) error {
		if len(t.rpc.open) > 0 {
			return nil
		}
		return t.settled()
	})
}

// settled waits until a conversation that is repeated has been.
func (t *acpTalk) settled() error {
	if t.replays {
		t.quiet = time.After(acpQuiet)
		return nil
	}
	return t.opened()
}

// opened begins the first turn.
func (t *acpTalk) opened() error {
	if err := t.host.Began(t.session); err != nil {
		t.lost = err
		return err
	}
	t.say(Said{Text: t.job.Turn, Files: t.job.Files})
	return nil
}

// refusedUs takes the program's refusal of a request of ours.
func (t *acpTalk) refusedUs(method string, e rpcError) error {
	if t.stopping != nil || t.blocked != nil {
		t.closeCalls()
		return t.over()
	}
	text := clip(e.words(), 500)
	switch {
	case e.Code == acpSignIn || acpSignedOut.MatchString(text):
		return fail(CodeNotSignedIn, false, "%s is not signed in for the worker's user. %s%s", t.name, text, t.howToSignIn())
	case method == "session/resume" || method == "session/load":
		return t.forgotten("can't go on with the agent session: " + text)
	case method != "session/prompt":
		return fail(CodeCrashed, e.Code == rpcInternal, "%s refused %s: %s", t.name, method, text)
	}
	t.flush()
	t.closeCalls()
	return t.failed(text, e.Code)
}

// The codes of refusals that mean something.
const (
	acpSignIn     = -32000
	rpcInternal   = -32603
	rpcBadRequest = -32602
)

// words are an error's text, with its details where they say more.
func (e rpcError) words() string {
	var data struct {
		Details string `json:"details"`
		Message string `json:"message"`
	}
	detail := asText(e.Data)
	if detail == "" && json.Unmarshal(e.Data, &data, lenient) == nil {
		detail = or(data.Details, data.Message)
	}
	if detail == "" || strings.Contains(e.Message, detail) {
		return strings.TrimSpace(e.Message)
	}
	return strings.TrimSpace(e.Message + " " + detail)
}

func (t *acpTalk) howToSignIn() string {
	if p, known := api.ACPProgramOf(t.job.Executable); known && p.SignIn != "" {
		return " Sign in with: " + p.SignIn
	}
	if len(t.agent.SignIn) > 0 {
		return " " + clip(or(t.agent.SignIn[0].Description, t.agent.SignIn[0].Name), 200)
	}
	return ""
}

// failed is the failure of a turn that the model or its provider ended. The protocol has no codes
// for them, so their words decide.
func (t *acpTalk) failed(text string, code int64) *failure {
	if acpLimited.MatchString(text) {
		f := fail(CodeUsageLimit, !acpBroke.MatchString(text), "The usage limit of %s's account is reached. %s", t.name, text)
		f.reset = limitEnd(text, time.Now(), time.Local)
		return f
	}
	return fail(CodeCrashed, code != rpcBadRequest, "%s failed. %s", t.name, text)
}
