package mcp

// tool is a row of the table below: an operation of the OpenAPI document as programs call it.
type tool struct {
	name, title, description string

	operation string // its id in the document
	scope     Scope
	also      Scope // another scope that it takes; "" = none
	hints     hints

	without []string // arguments of the operation that programs can't give
	held    int      // seconds that the call is held at most, and by default; 0 = it isn't
	guard   guard    // looked at before the call; nil = none
	filled  *filled  // arguments of the operation that the tool finds out itself; nil = none
}

// hints say what a tool does, for those who decide whether a program may call it.
type hints struct {
	reads      bool // it changes nothing
	destroys   bool // it may end or remove something
	idempotent bool // calling it again with the same arguments changes nothing more
	open       bool // what it starts acts outside Stint: an agent works
}

var (
	reads = hints{reads: true, idempotent: true}
	ends  = hints{destroys: true, idempotent: true}
	works = hints{open: true}
)

var tools = append(sessionTools, taskTools...)

var sessionTools = []tool{
	{
		name: "list_agents", title: "List agents", operation: "listAgents", scope: ScopeRead, hints: reads,
		description: "Lists the agents of the workspace, newest first: what can be run, when it runs by itself, and whether it is paused.",
	},
	{
		name: "run_agent", title: "Run an agent", operation: "createSession", scope: ScopeRun, hints: works,
		description: "Starts a session of an agent, named by its slug or id, and answers the session at once. " +
			"Wait for it with wait_session, read what it says with read_output. " +
			"With the same idempotencyKey and the same arguments a repeated call answers the first session and starts nothing.",
	},
	{
		name: "list_sessions", title: "List sessions", operation: "listSessions", scope: ScopeRead, hints: reads,
		description: "Lists sessions, newest first, filtered by agent, status, phase, what started them, text, or time.",
	},
	{
		name: "get_session", title: "Show a session", operation: "showSession", scope: ScopeRead, hints: reads, without: []string{"wait"},
		description: "Shows a session: its status, what it waits for, its open question, its result, usage and error.",
	},
	{
		name: "wait_session", title: "Wait for a session", operation: "showSession", scope: ScopeRead, hints: reads, held: 50,
		description: "Waits until a session has ended or asks a person, at most as many seconds as wait says, and answers the session as it is then. " +
			"If its phase is still pending or running, call it again.",
	},
	{
		name: "read_output", title: "Read a session's output", operation: "readOutput", scope: ScopeRead, hints: reads,
		description: "Reads what a session's agent said and printed, as text, at most 32 KiB a call. " +
			"Call it again with the cursor of the answer for what follows; more says whether it is there already.",
	},
	{
		name: "say", title: "Say something to an agent", operation: "postMessage", scope: ScopeRun, hints: works,
		description: "Sends a message to the agent of a session, which takes it in between its turns. " +
			"If the conversation has ended, the message starts a new session of it.",
	},
	{
		name: "stop_session", title: "Stop a session", operation: "stopSession", scope: ScopeRun, hints: ends,
		description: "Asks a session to end after the agent's current turn. One that still waits is cancelled.",
	},
	{
		name: "cancel_session", title: "Cancel a session", operation: "cancelSession", scope: ScopeRun, hints: ends,
		description: "Ends a session at once; what its agent is doing is killed. With onlyPending it is refused once the session runs.",
	},
	{
		name: "retry_session", title: "Retry a session", operation: "retrySession", scope: ScopeRun, hints: works,
		description: "Runs an ended session once more, in the same conversation, or queues one that lost its worker.",
	},
	{
		name: "report_progress", title: "Report progress", operation: "addActivity", scope: ScopeRun, hints: hints{},
		filled: ownProgress, without: []string{"claimId", "instanceId"},
		description: "For an agent that Stint runs: notes on the timeline of its own session how far it is, for people to see. " +
			"With the same key a repeated call notes nothing more.",
	},
	{
		name: "list_inbox", title: "List what needs a person", operation: "showInbox", scope: ScopeRead, hints: reads,
		description: "Lists all that waits for a person: questions of agents, failed sessions, sessions without a worker, paused agents.",
	},
	{
		name: "answer_prompt", title: "Answer a question", operation: "answerPrompt", scope: ScopeRun, hints: hints{}, guard: noApproval,
		without: []string{"approved", "forSession", "standing"},
		description: "Answers the open question of a session, once: with text, or with choices by the ids of its questions. " +
			"An approval can't be given here: only a person gives it, on the session's page.",
	},
	{
		name: "list_schedules", title: "List schedules", operation: "listSchedules", scope: ScopeRead, hints: reads,
		description: "Lists the agents that run by themselves, with their schedule in words and their next slot.",
	},
	{
		name: "preview_schedule", title: "Preview a schedule", operation: "previewSchedule", scope: ScopeRead, hints: reads,
		description: "Says what a schedule means in words, and its next slots. Five-field cron, @daily and its kin, and @every 90m.",
	},
	{
		name: "list_workers", title: "List workers", operation: "listWorkers", scope: ScopeRead, hints: reads,
		description: "Lists the workers that run sessions, whether each is online, and how much it runs.",
	},
	{
		name: "status", title: "Show how things stand", operation: "showStatus", scope: ScopeRead, hints: reads,
		description: "Shows how many sessions there are in each status, all agents and workers, and what needs a person.",
	},
}
