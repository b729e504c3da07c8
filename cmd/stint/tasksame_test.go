package main

import "testing"

// Every verb on tasks has the same answer by every door, byte for byte: the REST interface, the
// command line with --json and the tools (contract 7.3, 12).
func TestTasks_TheSameAnswerByEveryDoor(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	const title = `Mend the <roof> & "door" ünï ☃`
	one := m{"task": "T-6"}
	for _, a := range []question{
		{
			name: "create", method: "POST", path: "tasks",
			body: m{"title": "Mend it", "description": title, "priority": "p1", "labels": []string{"home", "api"}, "assignee": "me", "links": []m{{"url": "https://example.com/?a=1&b=2", "title": "Plan"}}},
			args: words("task create --description - --priority p1 --label home --label api --assignee me", "Mend it", "--link", "https://example.com/?a=1&b=2 Plan"), stdin: title,
			tool: "create_task", takes: m{"title": "Mend it", "description": title, "priority": "p1", "labels": []string{"home", "api"}, "assignee": "me", "links": []m{{"url": "https://example.com/?a=1&b=2", "title": "Plan"}}},
		},
		{name: "list", method: "GET", path: "tasks?state=todo,in_progress&label=api", args: words("task list --state todo,in-progress --label api"), tool: "list_tasks", takes: m{"state": []string{"todo", "in_progress"}, "label": "api"}},
		{name: "a page of the list", method: "GET", path: "tasks?limit=2", args: words("task list --limit 2"), tool: "list_tasks", takes: m{"limit": 2}},
		{name: "an empty list", method: "GET", path: "tasks?label=nothing", args: words("task list --label nothing"), tool: "list_tasks", takes: m{"label": "nothing"}},
		{name: "show", method: "GET", path: "tasks/third", args: words("task show third"), tool: "get_task", takes: m{"task": "third"}},
		{name: "edit", method: "PATCH", path: "tasks/T-6", body: m{"priority": "p2", "labels": []string{}, "version": 1}, args: words("task edit T-6 --priority p2 --version 1", "--label", ""), tool: "update_task", takes: m{"task": "T-6", "priority": "p2", "labels": []string{}, "version": 1}},
		{name: "comment", method: "POST", path: "tasks/T-6/comments", body: m{"text": "Bring a ladder."}, args: words("task comment T-6 -"), stdin: "Bring a ladder.", tool: "comment_task", takes: m{"task": "T-6", "text": "Bring a ladder."}},
		{name: "next", method: "GET", path: "tasks/next", args: words("next"), tool: "next_task", takes: m{}},
		{name: "claim", method: "POST", path: "tasks/T-6/claim", body: m{"leaseSeconds": 600}, args: words("claim T-6 --lease 10m"), tool: "claim", takes: m{"task": "T-6", "leaseSeconds": 600}},
		{name: "claim again", method: "POST", path: "tasks/T-6/claim", body: m{}, args: words("claim T-6"), tool: "claim", takes: one},
		{name: "renew", method: "POST", path: "tasks/T-6/renew", body: m{}, args: words("renew T-6"), tool: "renew", takes: one},
		{name: "extend", method: "POST", path: "tasks/T-6/extend", body: m{"addSeconds": 7200}, args: words("extend T-6 2h"), tool: "extend", takes: m{"task": "T-6", "addSeconds": 7200}},
		{name: "extend by 1e18 s", method: "POST", path: "tasks/T-6/extend", body: m{"addSeconds": int64(1e18)}, args: words("extend T-6 1000000000000000000"), tool: "extend", takes: m{"task": "T-6", "addSeconds": int64(1e18)}},
		{name: "claim for 1e18 s", method: "POST", path: "tasks/T-6/claim", body: m{"leaseSeconds": int64(1e18)}, args: words("claim T-6 --lease 1000000000000000000"), tool: "claim", takes: m{"task": "T-6", "leaseSeconds": int64(1e18)}},
		{name: "claims", method: "GET", path: "tasks?holder=any", args: words("claims"), tool: "list_tasks", takes: m{"holder": "any"}},
		{name: "one's own claims", method: "GET", path: "tasks?holder=me", args: words("claims --mine"), tool: "list_tasks", takes: m{"holder": "me"}},
		{name: "release", method: "POST", path: "tasks/T-6/release", body: m{}, args: words("release T-6"), tool: "release", takes: one},
		{name: "release again", method: "POST", path: "tasks/T-6/release", body: m{}, args: words("release T-6"), tool: "release", takes: one},
		{name: "briefing", method: "GET", path: "tasks/T-6/briefing", args: words("briefing T-6"), tool: "briefing", takes: one},
		{name: "dispatch, shown", method: "POST", path: "tasks/T-6/dispatch", body: m{"print": true}, args: words("dispatch T-6 --print"), tool: "dispatch_task", takes: m{"task": "T-6", "print": true}},
		{name: "dispatch", method: "POST", path: "tasks/T-6/dispatch", body: m{"agent": "review", "prompt": "Do it."}, args: words("dispatch T-6 --agent review", "--prompt", "Do it."), tool: "dispatch_task", takes: m{"task": "T-6", "agent": "review", "prompt": "Do it."}},
		{name: "close", method: "PATCH", path: "tasks/T-6", body: m{"state": "done"}, args: words("task close T-6"), tool: "update_task", takes: m{"task": "T-6", "state": "done"}},
		{name: "open again", method: "PATCH", path: "tasks/T-6", body: m{"state": "todo"}, args: words("task edit T-6 --state todo"), tool: "update_task", takes: m{"task": "T-6", "state": "todo"}},
		{name: "dispatch by force", method: "POST", path: "tasks/held/dispatch", body: m{"force": true}, args: words("dispatch held --force"), tool: "dispatch_task", takes: m{"task": "held", "force": true}},
	} {
		status, body, code := d.everywhere(a)
		if status/100 != 2 || code != exitDone {
			t.Errorf("%s is answered %d %s, the command ends with %d", a.name, status, body, code)
		}
	}
}
