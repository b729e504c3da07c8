package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"stint/api"
)

// composer is the form that answers one open prompt. The inbox and the session's page draw the
// same one.
type composer struct {
	session api.SessionID
	prompt  *api.Prompt
	from    string     // inbox, or "" for the session's page: where the answer leads back to
	typed   url.Values // what was refused, typed values kept
	errors  map[string]string
	now     time.Time
	by      api.UserID // who looks at it
}

// standing are what this person may approve from now on.
func (c composer) standing() []string {
	if a := c.prompt.Action; a != nil && a.StandingBy == c.by && c.by != 0 {
		return a.Standing
	}
	return nil
}

// standingLabel is the button that approves one of them.
func standingLabel(i int, what string) string {
	if i == 0 {
		return "Approve exactly this from now on"
	}
	return "Approve " + api.Visible(api.Excerpt(what, 200)) + " from now on"
}

// answerForm is an answer that was refused.
type answerForm struct {
	prompt  api.PromptID
	session api.SessionID
	typed   url.Values
	errors  map[string]string
	refused string // why it came too late; "" = it can be corrected
	said    string // what was typed, in one text
}

// composerOf is the form for a session's open prompt, with what was typed for it if that was
// refused.
func composerOf(s api.Session, from string, refused answerForm, now time.Time, by api.UserID) composer {
	c := composer{session: s.ID, prompt: s.Prompted, from: from, typed: url.Values{}, now: now, by: by}
	if refused.prompt == s.Prompted.ID && refused.typed != nil {
		c.typed, c.errors = refused.typed, refused.errors
	}
	return c
}

// late reports whether the answer came after the prompt was closed.
func (f answerForm) late() bool { return f.refused != "" }

// The answers to an approval.
const (
	verdictOnce    = "once"
	verdictSession = "session"
	verdictDeny    = "deny"

	verdictStanding = "standing" // and the number of what is approved from now on

	otherOption = "other"
)

func (c composer) id() string { return "answer-" + c.prompt.ID.String() }

// field is a field's id in the page, where there may be several forms.
func (c composer) field(name string) string { return c.prompt.ID.String() + "-" + name }

func (c composer) input(name, label, hint, complaint string) Input {
	return Input{ID: c.field(name), Name: name, Label: label, Hint: hint, Value: c.typed.Get(name), Error: sentence(c.errors[complaint])}
}

// question is one of several, with what was typed for it.
type question struct {
	api.Choice
	field  string   // its radios' and field's names begin with this
	picked []string // the numbers of the picked options, or other
	own    string
	wrong  string
}

func (c composer) questions() []question {
	out := make([]question, 0, len(c.prompt.Choices))
	for i, q := range c.prompt.Choices {
		n := strconv.Itoa(i)
		out = append(out, question{Choice: q, field: "q" + n, picked: c.typed["q"+n], own: c.typed.Get("own" + n), wrong: sentence(c.errors["choices."+q.ID])})
	}
	return out
}

func (q question) ownField() string { return "own" + strings.TrimPrefix(q.field, "q") }

// picks reports whether an option is picked: its number, or other.
func (q question) picks(option string) bool {
	return slices.Contains(q.picked, option) || option == otherOption && len(q.picked) == 0 && q.own != ""
}

// box is the kind of control by which options are picked.
func (q question) box() string {
	if q.Several {
		return "checkbox"
	}
	return "radio"
}

func (q question) kind() string {
	if q.Secret {
		return "password"
	}
	return "text"
}

// label is a question's name: its text, or its id if it has none.
func (q question) label() string {
	if q.Text == "" {
		return q.ID
	}
	return PlainText(q.Text)
}

// answerFrom reads the form of a prompt. What can't be read is named as the engine names it.
func answerFrom(p *api.Prompt, form url.Values) (api.Answer, map[string]string) {
	a, bad := api.Answer{}, map[string]string{}
	text := lines(form.Get("text"))
	switch p.Kind {
	case api.PromptApproval:
		a.Text = strings.TrimSpace(text)
		yes := true
		no := false
		switch form.Get("verdict") {
		case verdictOnce:
			a.Approved = &yes
		case verdictSession:
			a.Approved, a.ForSession = &yes, true
		case verdictDeny:
			a.Approved = &no
		default:
			if n, err := strconv.Atoi(strings.TrimPrefix(form.Get("verdict"), verdictStanding)); err == nil && p.Action != nil && n >= 0 && n < len(p.Action.Standing) {
				a.Approved, a.Standing = &yes, p.Action.Standing[n]
				break
			}
			bad["approved"] = "press one of the buttons: nothing was decided"
		}
	case api.PromptQuestions:
		a.Choices = map[string]string{}
		for i, q := range p.Choices {
			n := strconv.Itoa(i)
			said, wrong := choiceFrom(q, form["q"+n], lines(form.Get("own"+n)))
			if wrong != "" {
				bad["choices."+q.ID] = wrong
			}
			if said != "" {
				a.Choices[q.ID] = said
			}
		}
	default:
		a.Text = text
	}
	return a, bad
}

func choiceFrom(q api.Choice, picked []string, own string) (said, wrong string) {
	var taken []string
	other := len(q.Options) == 0 || len(picked) == 0
	for _, one := range picked {
		n, err := strconv.Atoi(one)
		switch {
		case one == otherOption || len(q.Options) == 0:
			other = true
		case err != nil || n < 0 || n >= len(q.Options):
			return "", "is none of its options"
		default:
			taken = append(taken, q.Options[n])
		}
	}
	written := strings.TrimSpace(own) != ""
	switch {
	case q.Several:
		if written && q.Other {
			taken = append(taken, own)
		}
		return strings.Join(taken, "\n"), ""
	case other:
		return own, ""
	case written && q.Other:
		return "", "has an option and a text of your own: keep one of them"
	}
	return taken[0], ""
}

// typedWords is what was typed, for people whose answer came too late. Secrets
// are left out.
func typedWords(p *api.Prompt, form url.Values) string {
	if p.Kind != api.PromptQuestions {
		return strings.TrimSpace(lines(form.Get("text")))
	}
	var out []string
	for i, q := range p.Choices {
		n := strconv.Itoa(i)
		said, _ := choiceFrom(q, form["q"+n], form.Get("own"+n))
		if said == "" || q.Secret {
			continue
		}
		out = append(out, q.Text+" → "+said)
	}
	return strings.Join(out, "\n")
}

// answer passes on a person's answer. An incomplete one comes back with what was typed; so
// does one that came too late, with who was first.
func (v *visit) answer() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	var prompt api.PromptID
	if prompt.UnmarshalText([]byte(v.r.PostForm.Get("prompt"))) != nil {
		return api.Refuse(api.CodeNotFound, "There is no such question.")
	}
	if _, err := v.web.engine.Session(v.r.Context(), v.caller, id); err != nil {
		return err
	}
	if prompt == 0 {
		var missing api.Invalid
		missing.Add("promptId", "is missing: name the question that you answer")
		return missing.Err()
	}
	p, err := v.web.engine.Prompt(v.r.Context(), v.caller, id, prompt)
	if err != nil {
		return err
	}
	form := v.r.PostForm
	refused := answerForm{prompt: prompt, session: id, typed: form}
	answer, bad := answerFrom(&p, form)
	if len(bad) == 0 || !p.ClosedAt.IsZero() {
		_, err = v.web.engine.AnswerPrompt(v.r.Context(), v.caller, id, api.AnswerInput{PromptID: prompt, Answer: answer})
		if err == nil {
			return v.to(v.backFrom(id), "Answered")
		}
		f := failureOf(err)
		switch {
		case f.status == http.StatusConflict:
			refused.refused, refused.said = f.text, typedWords(&p, form)
			return v.refuseAnswer(f.status, refused)
		case f.status != http.StatusUnprocessableEntity:
			return err
		}
		var ok bool
		if bad, ok = fieldErrors(err); !ok {
			return err
		}
	}
	refused.errors = bad
	return v.refuseAnswer(http.StatusUnprocessableEntity, refused)
}

func (v *visit) backFrom(id api.SessionID) string {
	if v.r.PostForm.Get("from") == "inbox" {
		return "/inbox"
	}
	return sessionURL(id)
}

func (v *visit) refuseAnswer(status int, refused answerForm) error {
	if refused.typed.Get("from") == "inbox" {
		return v.drawInbox(status, refused)
	}
	return v.drawSession(status, refused)
}

// say passes a message on to the agent of a conversation. If that had ended, it continues in a
// new session.
func (v *visit) say() error {
	id, err := v.sessionID()
	if err != nil {
		return err
	}
	text, key := lines(v.r.PostForm.Get("text")), v.r.PostForm.Get("key")
	now := v.r.PostForm.Get("now") != ""
	files, err := v.filesFrom()
	if err != nil {
		return err
	}
	posted, err := v.web.engine.PostMessage(v.r.Context(), v.caller, id, api.MessageInput{Text: text, ClientID: key, Now: now, Files: files})
	if err != nil {
		f := failureOf(err)
		if bad, is := fieldErrors(err); is && fileFault(bad, files) != "" {
			return v.drawSession(f.status, answerForm{typed: url.Values{"say": {text}, "key": {key}}, errors: map[string]string{"files": fileFault(bad, files)}})
		}
		if f.status == http.StatusUnprocessableEntity || f.status == http.StatusConflict {
			return v.drawSession(f.status, answerForm{typed: url.Values{"say": {text}, "key": {key}}, errors: map[string]string{"say": f.text}})
		}
		return err
	}
	if posted.Session.ID != id {
		return v.to(sessionURL(posted.Session.ID), "It goes on in this new session")
	}
	if now {
		return v.to(sessionURL(id), "Sent; the agent takes it in while it works")
	}
	return v.to(sessionURL(id), "Sent; the agent takes it in between its turns")
}

// steers reports whether a message can be for the turn that runs.
func (p sessionPage) steers() bool { return !p.Session.Status.Terminal() && p.Agent.Type.Steers() }

// defaultWords say what counts when nobody answers in time.
func defaultWords(p *api.Prompt) string {
	d := p.Default
	switch {
	case d == nil:
		return ""
	case p.Kind == api.PromptApproval:
		if d.Text != "" {
			return "denied: " + firstLine(d.Text, 120)
		}
		return "denied"
	case p.Kind == api.PromptQuestions:
		var out []string
		for _, q := range p.Choices {
			said := d.Choices[q.ID]
			if q.Secret {
				said = "(kept secret)"
			}
			out = append(out, fmt.Sprintf("%s: “%s”", firstLine(q.Text, 60), firstLine(said, 60)))
		}
		return strings.Join(out, ", ")
	}
	return "“" + firstLine(d.Text, 120) + "”"
}

// areas are the words for what an action touches.
var areas = map[string]string{
	"filesystem": "Files", "shell": "Shell", "network": "Network", "workspace": "Writes in the workspace", "side_effects": "Commits, pushes and the like",
}

func areaWord(area string) string {
	if word := areas[area]; word != "" {
		return word
	}
	return PlainText(area)
}

// askHead is the title of a prompt's card.
func askHead(p *api.Prompt) string {
	switch p.Kind {
	case api.PromptApproval:
		return "It asks for approval"
	case api.PromptQuestions:
		return "It has " + Count(len(p.Choices), "question", "questions")
	}
	return "It asks"
}

// promptText is the text of a prompt. For an approval, characters that a screen wouldn't show
// are made visible: they may be part of what is approved.
func promptText(p *api.Prompt) string {
	if p.Kind == api.PromptApproval {
		return api.Visible(p.Text)
	}
	return PlainText(p.Text)
}
