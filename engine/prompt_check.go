package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stint/api"
)

// checkPrompt says what is wrong with a prompt that a worker opens, and fills in its kind.
func checkPrompt(v *api.Invalid, in *api.PromptInput) {
	if in.Kind == "" {
		in.Kind = api.PromptText
	}
	mended(&in.Text)
	v.CheckText("prompt.text", in.Text, maxPromptText)
	if in.Text == "" {
		v.Add("prompt.text", "is missing")
	}
	if !slices.Contains([]string{api.PromptText, api.PromptApproval, api.PromptQuestions}, in.Kind) {
		v.Add("prompt.kind", "must be text, approval or questions")
		return
	}
	if in.Action != nil {
		mended(&in.Action.What, &in.Action.Why)
		v.CheckText("prompt.action.what", in.Action.What, maxPromptText)
		v.CheckText("prompt.action.why", in.Action.Why, maxActivityText)
		v.CheckLine("prompt.action.tool", in.Action.Tool)
		v.CheckLine("prompt.action.area", in.Action.Area)
		in.Action.StandingBy = 0
		if len(in.Action.Standing) > maxStanding {
			v.Add("prompt.action.standing", fmt.Sprintf("has more than %d", maxStanding))
		}
		for i := range in.Action.Standing {
			mended(&in.Action.Standing[i])
			v.CheckText(fmt.Sprintf("prompt.action.standing[%d]", i), in.Action.Standing[i], maxPromptText)
		}
		if in.Kind != api.PromptApproval {
			v.Add("prompt.action", "belongs to an approval")
		}
	}
	checkChoices(v, in)
	if in.Default != nil {
		mended(&in.Default.Text)
		for id, said := range in.Default.Choices {
			mended(&said)
			in.Default.Choices[id] = said
		}
	}
	switch {
	case in.DeadlineSeconds < 0 || in.DeadlineSeconds > maxSeconds:
		v.Add("prompt.deadlineSeconds", fmt.Sprintf("must be 0 to %d seconds; 0 means none", maxSeconds))
	case in.DeadlineSeconds > 0 && in.Default == nil:
		v.Add("prompt.default", "is missing: say what counts when the deadline comes")
	case in.DeadlineSeconds == 0 && in.Default != nil:
		v.Add("prompt.deadlineSeconds", "is missing: a default counts at a deadline")
	case in.Default != nil:
		addAnswer(v, &api.Prompt{Kind: in.Kind, Choices: in.Choices}, *in.Default, "prompt.default.")
		if in.Default.Approved != nil && *in.Default.Approved {
			v.Add("prompt.default.approved", "must be false: only a person approves")
		}
	}
}

const (
	maxChoices  = 20
	maxHeader   = 200 // bytes
	maxStanding = 4   // standing approvals that a question proposes
)

func checkChoices(v *api.Invalid, in *api.PromptInput) {
	if in.Kind != api.PromptQuestions {
		if len(in.Choices) > 0 {
			v.Add("prompt.choices", "belong to a prompt of kind questions")
		}
		return
	}
	if len(in.Choices) == 0 || len(in.Choices) > maxChoices {
		v.Add("prompt.choices", fmt.Sprintf("must hold 1 to %d questions", maxChoices))
		return
	}
	seen := map[string]bool{}
	for i := range in.Choices {
		q := &in.Choices[i]
		field := fmt.Sprintf("prompt.choices[%d].", i)
		if q.ID == "" || seen[q.ID] {
			v.Add(field+"id", "must be there and differ from the others'")
		}
		seen[q.ID] = true
		v.CheckText(field+"id", q.ID, 200)
		v.CheckLine(field+"id", q.ID)
		mended(&q.Text, &q.Header)
		v.CheckText(field+"text", q.Text, maxActivityText)
		v.CheckText(field+"header", q.Header, maxHeader)
		checkOptions(v, field, q)
	}
}

func checkOptions(v *api.Invalid, field string, q *api.Choice) {
	if len(q.Options) > maxChoices {
		v.Add(field+"options", fmt.Sprintf("has more than %d options", maxChoices))
	}
	for j := range q.Options {
		mended(&q.Options[j])
		v.CheckText(fmt.Sprintf("%soptions[%d]", field, j), q.Options[j], maxActivityText)
		if q.Several && q.Options[j] != strings.TrimSpace(strings.ReplaceAll(q.Options[j], "\n", " ")) {
			v.Add(fmt.Sprintf("%soptions[%d]", field, j), "must be one line without spaces around it where several may be taken")
		}
	}
	switch {
	case len(q.About) > len(q.Options):
		v.Add(field+"about", "says something about more options than there are")
	case q.Several && (len(q.Options) == 0 || q.Secret):
		v.Add(field+"several", "goes with options that are no secret")
	}
	for j := range q.About {
		mended(&q.About[j].Description, &q.About[j].Preview)
		v.CheckText(fmt.Sprintf("%sabout[%d].description", field, j), q.About[j].Description, maxActivityText)
		v.CheckText(fmt.Sprintf("%sabout[%d].preview", field, j), q.About[j].Preview, maxActivityText)
	}
}

// checkAnswer says what is missing in an answer, field by field; prefix is put
// before their names.
func checkAnswer(p *api.Prompt, a api.Answer, prefix string) error {
	var v api.Invalid
	addAnswer(&v, p, a, prefix)
	return v.Err()
}

func addAnswer(v *api.Invalid, p *api.Prompt, a api.Answer, prefix string) {
	if p.Kind != api.PromptApproval && (a.Approved != nil || a.ForSession || a.Standing != "") {
		v.Add(prefix+"approved", "answers an approval; this is a prompt of kind "+p.Kind)
	}
	if p.Kind != api.PromptQuestions && len(a.Choices) > 0 {
		v.Add(prefix+"choices", "answer questions; this is a prompt of kind "+p.Kind)
	}
	switch p.Kind {
	case api.PromptApproval:
		if a.Approved == nil {
			v.Add(prefix+"approved", "is missing: true or false")
		}
		if a.ForSession && (a.Approved == nil || !*a.Approved) {
			v.Add(prefix+"forSession", "goes with approved: true")
		}
		switch {
		case a.Standing == "":
		case a.Approved == nil || !*a.Approved:
			v.Add(prefix+"standing", "goes with approved: true")
		case p.Action == nil || !slices.Contains(p.Action.Standing, a.Standing):
			v.Add(prefix+"standing", "is none that the question proposes")
		}
	case api.PromptQuestions:
		left := maps.Clone(a.Choices)
		for _, q := range p.Choices {
			said, there := left[q.ID]
			delete(left, q.ID)
			field := prefix + "choices." + q.ID
			switch {
			case !there || strings.TrimSpace(said) == "":
				v.Add(field, "is missing: answer “"+q.Text+"”")
			case len(q.Options) > 0 && !q.Other && slices.ContainsFunc(q.Taken(said), func(one string) bool { return !slices.Contains(q.Options, one) }):
				v.Add(field, fmt.Sprintf("is none of its options %q%s", q.Options, map[bool]string{true: ", one a line"}[q.Several]))
			}
			v.CheckText(field, said, maxPromptText)
			v.CheckWritten(field, said)
		}
		for _, id := range slices.Sorted(maps.Keys(left)) {
			v.Add(prefix+"choices."+id, "is no question of this prompt")
		}
	default:
		if strings.TrimSpace(a.Text) == "" {
			v.Add(prefix+"text", "is missing: write an answer")
		}
	}
}
