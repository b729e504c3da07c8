// Package agent drives the programs that are agents: it speaks their protocols over their
// standard streams and turns what they say into the parts of a session. Each program has its
// own set of files.
//
// It must not know of claims, leases, the coordinator, journals or processes: the worker
// starts what [Agent.Command] says under its guardian, hands over the two streams, is notified
// through [Host], and ends the process afterwards. An adapter decides nothing that [Policy]
// doesn't, and no text that people, webhooks or the agent itself wrote is ever part of such a
// decision. contract 10.2-10.4
package agent

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"stint/api"
)

// The causes for which a conversation is cut short. Both come from [Host] or as the cause of
// the conversation's context.
var (
	// ErrParked: nobody answered in time; the conversation is resumed, by its agent session,
	// when somebody has. contract 6.5
	ErrParked = errors.New("the question is parked until somebody answers")
	// ErrStopped: a person asked the session to stop; the current turn is the last.
	ErrStopped = errors.New("a person asked the session to stop")
)

// The codes of [Result.Failure] (contract 10.2).
const (
	CodeCrashed     = "AGENT_CRASHED"
	CodeExitNonzero = "AGENT_EXIT_NONZERO"
	CodeUsageLimit  = "USAGE_LIMIT"
	CodeNotSignedIn = "AGENT_NOT_SIGNED_IN"
	CodePolicy      = "POLICY_BLOCKED"
	CodeTurnTimeout = "TURN_TIMEOUT" // also: the rounds of one turn are used up
	CodeSpendLimit  = "SPEND_LIMIT"
)

// Agent is one kind of program. Its methods are safe for concurrent use.
type Agent interface {
	// Command returns what to start for a job: arguments, additions to the environment, and
	// files that must exist first. Nothing that people wrote is part of it. An error is a
	// *Refusal.
	Command(Job) (Command, error)
	// Converse holds the conversation with the started program until there is no further turn,
	// the program has ended, or ctx has. When ctx ends it interrupts the turn by the
	// protocol's own means and returns within [Job.Grace]; the caller then ends the process.
	// It closes neither stream. The conversation's failure is in the result; err is ctx's
	// cause, [ErrParked] or what the host returned.
	Converse(ctx context.Context, pipes Pipes, job Job, host Host) (Result, error)
	// Held says how far a policy really holds, an entry for each area.
	Held() []Hold
}

// Refusal is the error of a job that must not be started.
type Refusal struct{ api.Failure }

// Error is the failure's message.
func (r *Refusal) Error() string { return r.Message }

// For returns the adapter for a type of agent, false for types that have none.
func For(kind api.AgentType) (Agent, bool) {
	switch kind {
	case api.TypeClaudeCode:
		return Claude{}, true
	case api.TypeCodex:
		return Codex{}, true
	case api.TypeACP:
		return ACP{}, true
	default:
		return nil, false
	}
}

// Permissions says how an agent's own requests for more rights are handled where the policy
// says nothing else.
type Permissions string

// The permissions of contract 10.2.
const (
	Approval   Permissions = "approval"   // a person is asked
	Autonomous Permissions = "autonomous" // granted inside the sandbox, refused beyond it
)

// Job is one conversation to hold. Everything except Turn comes from the worker's owner or the
// agent's admins.
type Job struct {
	Executable  []string // argv to start with; empty = the program's own name, looked up in PATH
	Dir         string   // absolute; exists
	Env         []string // the exact environment before additions, as NAME=value
	Hook        []string // argv that runs [HookMain]; empty = the program has none
	Tools       []string // argv of the server of Stint's tools, which has Env; empty = the program gets none
	StateDir    string   // the adapter's own folder, kept between jobs, outside Dir
	Hidden      []string // absolute paths that the agent must not read: the worker's and the coordinator's own
	System      string   // trusted text for the agent's system channel
	Turn        string   // what people wrote, fenced and labelled by the caller
	Files       []File   // that came with it; the text names them
	FilesDir    string   // absolute; where all files of people's are, which the agent may read; "" = there are none
	Session     string   // agent session to resume; "" = begin a new one
	Begin       string   // UUID for a new one, fresh for each start; not every program lets us choose
	Model       string   // "" = the program's own choice
	Effort      string   // how much the model is to think; "" = the program's own choice
	PlanMode    bool     // it only looks and plans: the policy is narrowed to that
	MaxTurns    int      // model rounds in one turn; 0 = 200
	Permissions Permissions
	Policy      Policy
	// Approvals are the standing ones; nil = there are none, and none are offered.
	Approvals Approvals
	// Uses says what of its user's, and of the work folder's, the program may take.
	Uses Uses
	// Used is what earlier conversations of the agent session have reported, for programs that
	// tell of each alone; zero for a new one.
	Used api.Usage
	// AnswerLimit bounds the wait for each answer of the program; 0 = 30 s.
	AnswerLimit time.Duration
	// Grace bounds the interrupt when the conversation is cut short; 0 = 10 s.
	Grace time.Duration

	talks string // where Claude Code keeps all conversations, links resolved, "" where they may be read
}

// Command is what the worker starts.
type Command struct {
	Argv  []string
	Env   []string          // additions, NAME=value; they win
	Files map[string]string // files to write first, path below StateDir -> content, mode 0600
	Links map[string]string // symbolic links to make first, path below StateDir -> absolute target
	// Notes are sentences for people about what it is started with; the worker shows them with
	// the session.
	Notes []string
	// Unheld are sentences for people about what the policy asks for and nothing here
	// enforces. The worker shows them with the session. If it is empty, the policy holds as
	// docs/agents.md says.
	Unheld []string
}

// Pipes are the program's standard streams; its stderr is the worker's.
type Pipes struct {
	In  io.Writer // each write is whole lines
	Out io.Reader
}

// Host is the worker's side of a conversation. Its methods may be called from any goroutine of
// the adapter; they return soon, except Ask, Next, and Item, which waits while the reporting
// of earlier items is behind.
type Host interface {
	// Began says by which id the conversation can be resumed. It returns when that is stored
	// durably; the first turn doesn't begin before.
	Began(agentSession string) error
	// Item appends a line of the transcript.
	Item(Item)
	// Notice shows people what the program says about itself, and is no sign of progress.
	Notice(text string)
	// Alive notes real progress: the stall clock starts again. Network retries are not
	// progress, nor is a tool that merely keeps running: between a tool_call and its
	// tool_result the tool's own limit counts. Item does it too.
	Alive()
	// Plan replaces the session's plan, as a Markdown task list.
	Plan(markdown string)
	// Usage reports totals of the agent session, including earlier conversations, as the
	// program counts them; only Turns counts just this conversation's. The program may have
	// forgotten what a killed predecessor used.
	Usage(api.Usage)
	// Denied says that the policy refused something, in words for people.
	Denied(Action, Ruling)
	// ToolsFailed says that tools which the agent was to have did not start, in words for
	// people. The conversation goes on.
	ToolsFailed(why string)
	// Ask puts a question to a person and waits for the answer: the only place where a
	// conversation waits for people. An error ends the question unanswered: the cause of ctx,
	// or [ErrParked]. After ErrParked the agent is asked to repeat the question, word for
	// word, when it resumes.
	Ask(ctx context.Context, q Question) (Answer, error)
	// Urged has a token when people may have said something to the running turn. Programs whose
	// turns take nothing in leave it alone: it goes into the next turn.
	Urged() <-chan struct{}
	// Urgent takes the next of what people said to the running turn, noted as given; false when
	// there is nothing.
	Urgent() (Said, bool)
	// Took says that the program has taken in what Urgent returned, or that it certainly hasn't
	// and won't. What a turn has left open goes into the next one, which is told of the doubt.
	Took(id string, in bool)
	// Next is called after each finished turn with the agent's last words: from then on the
	// turn counts as done, whatever happens to the conversation. It returns the next turn,
	// made of what people wrote meanwhile, or false when the conversation is over.
	Next(ctx context.Context, said string) (turn Said, more bool)
}

// Said is what people said, fenced and labelled by the host.
type Said struct {
	ID    string // the host's, of what is said to a running turn
	Text  string
	Files []File // that came with it; the text names them
}

// Item is a line of the transcript.
type Item struct {
	Kind   api.ItemKind // text, tool_call, tool_result, thinking, status, turn_end
	Tool   string       // of tool_call and tool_result: the tool's name
	CallID string       // pairs a tool_result with its tool_call
	Failed bool         // of tool_result
	Text   string
}

// QuestionKind is the form of a question (contract 6.5).
type QuestionKind string

// The kinds of questions.
const (
	AskApproval  QuestionKind = "approval"
	AskQuestions QuestionKind = "questions"
	AskText      QuestionKind = "text"
)

// Question is what an agent wants to know.
type Question struct {
	Kind   QuestionKind
	Text   string // the question; the exact command or change in full
	Action Action // of an approval
	Why    string // the agent's own reason for it, if it gave one
	// Standing are the approvals that a person may give from now on, the narrowest first.
	Standing []Standing
	Choices  []Choice
}

// Choice is one of several questions asked at once.
type Choice struct {
	ID      string
	Header  string // what it is about, in a word or two
	Text    string
	Options []string // empty = any text
	About   []api.OptionAbout
	Several bool // several options may be taken: the answer has one a line
	Other   bool // any text besides the options
	Secret  bool // not shown in the transcript
}

// offer adds an option with what is said about it.
func (c *Choice) offer(label string, about api.OptionAbout) {
	c.Options, c.About = append(c.Options, label), append(c.About, about)
}

// settled leaves out what says nothing, and several where an option has no line of its own.
func (c Choice) settled() Choice {
	if !slices.ContainsFunc(c.About, func(a api.OptionAbout) bool { return a != api.OptionAbout{} }) {
		c.About = nil
	}
	c.Several = c.Several && !slices.ContainsFunc(c.Options, func(o string) bool { return strings.Contains(o, "\n") || strings.TrimSpace(o) != o })
	return c
}

// taken are the options that an answer takes.
func (c Choice) taken(said string) []string { return api.Choice{Several: c.Several}.Taken(said) }

// Answer is what a person said.
type Answer struct {
	Approved   bool              // of an approval
	ForSession bool              // approved for the rest of the session
	Text       string            // reason of a refusal, or the answer to a text question
	Choices    map[string]string // by [Choice.ID]
}

// Result is how a conversation ended.
type Result struct {
	Text    string       // the agent's last words
	Failure *api.Failure // nil when the conversation ended well
	// ResetAt is when a usage limit ends, if the program named it; it may be just past.
	ResetAt time.Time
	// Retriable says that another try may succeed; for a usage limit, that the limit ends by
	// itself.
	Retriable bool
	// Unknown says that the program doesn't know the agent session to resume: only a new one
	// can continue.
	Unknown bool
	// Running is what the program was still running when its last turn ended, such as a
	// command in the background; it ends with the program.
	Running []string
	Usage   api.Usage
}
