package mcp

// taskTools are the rows of the table about tasks.
var taskTools = []tool{
	{
		name: "list_tasks", title: "List tasks", operation: "listTasks", scope: ScopeRead, hints: reads,
		description: "Lists the tasks that people and agents share, newest first, filtered by state, assignee, holder, label, priority or text. " +
			"assignee is whose a task is, holder who is at work on it now.",
	},
	{
		name: "next_task", title: "Show what to do next", operation: "nextTasks", scope: ScopeRead, hints: reads,
		description: "Lists the tasks that are best done next, in order, each with the reason in one line, and whether somebody is at work on it.",
	},
	{
		name: "get_task", title: "Show a task", operation: "showTask", scope: ScopeRead, hints: reads,
		description: "Shows a task, named by its number such as T-42, its slug or its id: what is to be done, whose it is, who holds it until when, and what it waits for.",
	},
	{
		name: "briefing", title: "Read a task's briefing", operation: "taskBriefing", scope: ScopeRead, hints: reads,
		description: "Reads what an agent is told of a task: title, description, links, comments and recent activity, as Markdown.",
	},
	{
		name: "create_task", title: "Make a task", operation: "createTask", scope: ScopeTasks, hints: hints{},
		description: "Makes a task. In the state in_progress it is claimed for you at once. " +
			"With the same idempotencyKey and the same arguments a repeated call answers the first task and makes no other.",
	},
	{
		name: "update_task", title: "Change a task", operation: "editTask", scope: ScopeTasks, hints: ends,
		description: "Changes the fields that are given; null clears one. With the version that you read, a change that somebody else made meanwhile is not overwritten.",
	},
	{
		name: "comment_task", title: "Comment on a task", operation: "commentTask", scope: ScopeTasks, hints: hints{},
		description: "Writes a comment on a task, in Markdown.",
	},
	{
		name: "claim", title: "Claim a task", operation: "claimTask", scope: ScopeTasks, hints: hints{idempotent: true},
		description: "Takes a task for you, with a lease that says until when. If somebody else holds it, the refusal names them and the end of their lease; one of your own is renewed.",
	},
	{
		name: "renew", title: "Renew a task's lease", operation: "renewTask", scope: ScopeTasks, hints: hints{idempotent: true},
		description: "Lets the lease that you hold on a task begin again. Once it has lapsed, claim the task again.",
	},
	{
		name: "extend", title: "Extend a task's lease", operation: "extendTask", scope: ScopeTasks, hints: hints{},
		description: "Adds seconds to the lease that you hold on a task, up to the maximum.",
	},
	{
		name: "release", title: "Release a task", operation: "releaseTask", scope: ScopeTasks, hints: hints{idempotent: true},
		description: "Gives back a task that is yours, so that others may take it.",
	},
	{
		name: "dispatch_task", title: "Have an agent do a task", operation: "dispatchTask", scope: ScopeTasks, also: ScopeRun, hints: hints{destroys: true, open: true},
		description: "Claims a task and starts a session of an agent with its briefing, both or neither. With print it changes nothing and answers what would start. " +
			"A task that somebody holds, that is done, or that waits for another is refused; with force, an admin's token takes it over from its holder.",
	},
}
