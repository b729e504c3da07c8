package api

import "strings"

// The kinds of prompts (contract 6.5).
const (
	PromptText      = "text"
	PromptApproval  = "approval"
	PromptQuestions = "questions"
)

// The ways in which a prompt is closed.
const (
	PromptAnswered  = "answered"
	PromptWithdrawn = "withdrawn" // by the worker that opened it
	PromptCancelled = "cancelled" // with its session or turn
)

// Prompt is a question to a person.
type Prompt struct {
	ID         PromptID     `json:"id"`
	SessionID  SessionID    `json:"sessionId"`
	Kind       string       `json:"kind"` // text, approval, questions
	Text       string       `json:"text"`
	Action     *AskedAction `json:"action,omitzero"`  // of an approval
	Choices    []Choice     `json:"choices,omitzero"` // of questions
	DeadlineAt Time         `json:"deadlineAt,omitzero"`
	Default    *Answer      `json:"default,omitzero"` // what the deadline answers
	CreatedAt  Time         `json:"createdAt"`
	ClosedAt   Time         `json:"closedAt,omitzero"`
	ClosedBy   string       `json:"closedBy,omitzero"`
	Resolution string       `json:"resolution,omitzero"` // answered, withdrawn, cancelled
	Answer     *Answer      `json:"answer,omitzero"`
}

// Repeats reports whether the text only repeats what the action or the questions say.
func (p *Prompt) Repeats() bool {
	text := strings.TrimSpace(p.Text)
	if p.Action != nil {
		return text == "" || text == strings.TrimSpace(p.Action.What)
	}
	var asked []string
	for _, c := range p.Choices {
		asked = append(asked, strings.TrimSpace(c.Text))
	}
	return len(asked) > 0 && text == strings.Join(asked, "\n")
}

// AskedAction is what an approval is asked for, in full.
type AskedAction struct {
	Area string `json:"area"` // filesystem, shell, network, workspace, side_effects
	What string `json:"what"` // the exact command, path, address or change
	Tool string `json:"tool"`
	Why  string `json:"why,omitzero"` // the agent's own words; no decision depends on them
	// Standing are what may be approved from now on, the narrowest first; in all but the first *
	// stands for one word.
	Standing []string `json:"standing,omitzero"`
	// StandingBy is who may: the owner of the session's worker. In what a worker sends it is
	// ignored.
	StandingBy UserID `json:"standingBy,omitzero"`
}

// Choice is one of the questions of a prompt.
type Choice struct {
	ID      string        `json:"id"`
	Header  string        `json:"header,omitzero"` // what it is about, in a word or two
	Text    string        `json:"text"`
	Options []string      `json:"options,omitzero"` // none = any text
	About   []OptionAbout `json:"about,omitzero"`   // the options, in their order; none = nothing is said of them
	Several bool          `json:"several,omitzero"` // several options may be taken: the answer has one a line
	Other   bool          `json:"other,omitzero"`   // any text besides the options
	Secret  bool          `json:"secret,omitzero"`  // only the claim that asked gets the answer
}

// OptionAbout is what the agent says about an option.
type OptionAbout struct {
	Description string `json:"description,omitzero"`
	Preview     string `json:"preview,omitzero"` // what it would look like: plain text
}

// Of is what is said about the option of a number.
func (c Choice) Of(i int) OptionAbout {
	if i < len(c.About) {
		return c.About[i]
	}
	return OptionAbout{}
}

// Taken are the options, or the lines of other text, that an answer takes.
func (c Choice) Taken(said string) (taken []string) {
	if !c.Several {
		return []string{said}
	}
	for line := range strings.SplitSeq(said, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			taken = append(taken, line)
		}
	}
	return taken
}

// Answer is what a person said to a prompt: approved for an approval, choices by their ids for
// questions, text for the rest, where it may also give a reason.
type Answer struct {
	Text       string            `json:"text,omitzero"`
	Approved   *bool             `json:"approved,omitzero"`
	ForSession bool              `json:"forSession,omitzero"` // approved for the rest of the session
	Standing   string            `json:"standing,omitzero"`   // approved from now on, one of the action's; only by the worker's owner
	Choices    map[string]string `json:"choices,omitzero"`
}

// PromptInput opens a prompt in a PATCH under a claim.
type PromptInput struct {
	Kind            string       `json:"kind"` // empty = text
	Text            string       `json:"text"`
	Action          *AskedAction `json:"action"`
	Choices         []Choice     `json:"choices"`
	DeadlineSeconds int64        `json:"deadlineSeconds"` // 0 = none
	Default         *Answer      `json:"default"`         // needed with a deadline
}

// AnswerInput is a person's answer to the open prompt.
type AnswerInput struct {
	PromptID PromptID `json:"promptId"`
	Answer
}
