package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// turnedDown is what every door refuses, and how.
type turnedDown struct {
	question
	status int
	code   api.Code
	field  string // that is named; "" = none
	says   string // what is in the way, or what helps
	exit   exit
}

// making is a task that can't be made because of one field.
func making(name, field, says string, value any, flags ...string) turnedDown {
	body := m{"title": "One", field: value}
	q := question{name: name, method: "POST", path: "tasks", body: body, tool: "create_task", takes: body}
	if title, ok := body["title"].(string); ok && flags != nil {
		q.args = append([]string{"task", "create", title}, flags...)
	}
	return turnedDown{q, 422, api.CodeInvalid, field, says, exitUsage}
}

// verb is a verb on a task that is refused.
func verb(verb, tool, ref string, body m, line []string, row turnedDown) turnedDown {
	row.name, row.method, row.path, row.body = verb+" "+ref, "POST", "tasks/"+ref+"/"+verb, body
	row.args, row.tool, row.takes = line, tool, m{"task": ref}
	for k, v := range body {
		row.takes[k] = v
	}
	return row
}

func refusedFields() []turnedDown {
	long, huge := strings.Repeat("x", 201), strings.Repeat("x", 200<<10)
	rows := []turnedDown{
		making("an over-long title", "title", "at most 200 fit", long, []string{}...),
		making("no title", "title", "is missing", "", []string{}...),
		making("a description of 200 KiB", "description", "at most 131072 fit", huge, "--description", "-"),
		making("a wrong state word", "state", "todo, in_progress, blocked, review or done", "doing", "--state", "doing"),
		making("a wrong priority", "priority", "p1 is the most urgent", "p4", "--priority", "p4"),
		making("an unknown assignee", "assignee", "an agent's slug, or me", "nobody", "--assignee", "nobody"),
		making("an assignee of another workspace", "assignee", "names nobody", "usr_0000000001", "--assignee", "usr_0000000001"),
		making("an unknown blocker", "blockedBy", `"T-99", which is no task`, []string{"T-99"}, "--blocked-by", "T-99"),
		making("a link that executes", "links", "https://", []m{{"url": "javascript:alert(1)", "title": ""}}, "--link", "javascript:alert(1)"),
		making("a slug that means something else", "slug", "choose another", "next", "--slug", "next"),
	}
	rows[8].field = "links[0].url"
	rows[0].args, rows[1].args = words("task create", long), words("task create", "")
	rows[2].stdin = huge
	slug := making("a slug that is taken", "slug", "choose another", "third", "--slug", "third")
	slug.status, slug.code, slug.exit = 409, api.CodeSlugTaken, exitConflict
	body := making("a description of 1 MiB", "description", "over 1 MiB", strings.Repeat("x", 1<<20), "--description", "-")
	body.stdin, body.status, body.code, body.field = strings.Repeat("x", 1<<20), 413, api.CodeTooLarge, ""
	edit := func(name, ref string, body m, line []string, field, says string) turnedDown {
		takes := m{"task": ref}
		for k, v := range body {
			takes[k] = v
		}
		return turnedDown{question{name: name, method: "PATCH", path: "tasks/" + ref, body: body, args: line, tool: "update_task", takes: takes}, 422, api.CodeInvalid, field, says, exitUsage}
	}
	stale := edit("a stale version", "T-4", m{"title": "New", "version": 1}, words("task edit T-4 --title New --version 1"), "version", "read the task again")
	stale.status, stale.code, stale.exit = 409, api.CodeStaleVersion, exitConflict
	return append(
		rows, slug, body, stale,
		edit("a circle", "T-1", m{"blockedBy": []string{"third"}}, words("task edit T-1 --blocked-by third"), "blockedBy", "that would be a circle"),
		edit("a task that waits for itself", "T-1", m{"blockedBy": []string{"T-1"}}, words("task edit T-1 --blocked-by T-1"), "blockedBy", "names the task itself"),
		edit("two fields at once", "T-1", m{"state": "doing", "priority": "p0"}, words("task edit T-1 --state doing --priority p0"), "priority", "p1, p2 or p3"),
		turnedDown{question{name: "an empty comment", method: "POST", path: "tasks/T-1/comments", body: m{"text": " "}, args: words("task comment T-1", " "), tool: "comment_task", takes: m{"task": "T-1", "text": " "}}, 422, api.CodeInvalid, "text", "write the comment", exitUsage},
		turnedDown{question{name: "a list of a wrong state", method: "GET", path: "tasks?state=doing", args: words("task list --state doing"), tool: "list_tasks", takes: m{"state": []string{"doing"}}}, 422, api.CodeInvalid, "state", "todo, in_progress, blocked, review, done", exitUsage},
	)
}

func refusedLeases() []turnedDown {
	short := turnedDown{status: 400, code: api.CodeInvalidLease, field: "leaseSeconds", says: "from 60 to 86400", exit: exitUsage}
	none := turnedDown{status: 400, code: api.CodeInvalidLease, field: "addSeconds", says: "1 or more", exit: exitUsage}
	text := turnedDown{status: 400, code: api.CodeMalformed, field: "leaseSeconds", says: "a whole number, written in digits"}
	added := text
	added.field = "addSeconds"
	return []turnedDown{
		verb("claim", "claim", "T-1", m{"leaseSeconds": 0}, words("claim T-1 --lease 0"), short),
		verb("claim", "claim", "T-1", m{"leaseSeconds": -5}, words("claim T-1 --lease -5"), short),
		verb("claim", "claim", "T-1", m{"leaseSeconds": "2h"}, nil, text), // which the command line reads
		verb("claim", "claim", "T-1", m{"leaseSeconds": 90.5}, nil, text),
		verb("extend", "extend", "T-1", m{"addSeconds": 0}, words("extend T-1 0"), none),
		verb("extend", "extend", "T-1", m{"addSeconds": -5}, words("extend T-1 -- -5"), none),
		verb("extend", "extend", "T-1", m{"addSeconds": "2h"}, nil, added),
	}
}

func refusedStates(elsewhere string) []turnedDown {
	held := turnedDown{status: 409, code: api.CodeAlreadyClaimed, says: "holds T-4 until 2026-03-28 14:00:00 UTC", exit: exitConflict}
	notMine := held
	notMine.status, notMine.code = 403, api.CodeNotClaimHolder
	notNow := held
	notNow.code = api.CodeClaimNotActive
	nobody := turnedDown{status: 409, code: api.CodeClaimNotActive, says: "claim it again", exit: exitConflict}
	done := turnedDown{status: 409, code: api.CodeTaskDone, says: "open it again", exit: exitConflict}
	missing := turnedDown{status: 404, code: api.CodeNotFound, says: "no such task", exit: exitNotFound}
	rows := []turnedDown{
		verb("claim", "claim", "held", m{}, words("claim held"), held),
		verb("dispatch", "dispatch_task", "held", m{"agent": "review"}, words("dispatch held --agent review"), held),
		verb("release", "release", "T-4", m{}, words("release T-4"), notMine),
		verb("renew", "renew", "T-4", m{}, words("renew T-4"), notNow),
		verb("extend", "extend", "T-4", m{"addSeconds": 60}, words("extend T-4 60"), notNow),
		verb("renew", "renew", "T-1", m{}, words("renew T-1"), nobody),
		verb("claim", "claim", "T-5", m{}, words("claim T-5"), done),
		verb("dispatch", "dispatch_task", "T-5", m{"agent": "review"}, words("dispatch T-5 --agent review"), done),
		verb("dispatch", "dispatch_task", "T-2", m{"agent": "review"}, words("dispatch T-2 --agent review"), turnedDown{status: 409, code: api.CodeTaskBlocked, says: "waits for T-1", exit: exitConflict}),
		verb("dispatch", "dispatch_task", "T-1", m{"agent": "nobody"}, words("dispatch T-1 --agent nobody"), turnedDown{status: 422, code: api.CodeInvalid, field: "agent", says: `"nobody", which is no agent`, exit: exitUsage}),
	}
	for _, v := range []struct {
		verb, tool string
		line       []string
		body       m
	}{
		{"claim", "claim", words("claim T-99"), m{}},
		{"renew", "renew", words("renew T-99"), m{}},
		{"extend", "extend", words("extend T-99 60"), m{"addSeconds": 60}},
		{"release", "release", words("release T-99"), m{}},
		{"dispatch", "dispatch_task", words("dispatch T-99 --agent review"), m{"agent": "review"}},
	} {
		rows = append(rows, verb(v.verb, v.tool, "T-99", v.body, v.line, missing))
	}
	read := func(name, path, tool, ref string, line []string) turnedDown {
		row := missing
		row.question = question{name: name, method: "GET", path: path, args: line, tool: tool, takes: m{"task": ref}}
		return row
	}
	inProgress := held
	inProgress.question = question{name: "in progress, though it is held", method: "PATCH", path: "tasks/held", body: m{"state": "in_progress"}, args: words("task edit held --state in_progress"), tool: "update_task", takes: m{"task": "held", "state": "in_progress"}}
	forbidden := verb("claim", "claim", "T-1", m{}, words("claim T-1"), turnedDown{status: 403, code: api.CodeForbidden, says: "you need the role member", exit: exitNotAllowed})
	forbidden.who = "viewer"
	foreign := read("a task of another workspace", "tasks/"+elsewhere, "get_task", elsewhere, words("task show "+elsewhere))
	return append(rows, inProgress, forbidden, foreign,
		read("an unknown task", "tasks/T-99", "get_task", "T-99", words("task show T-99")),
		read("the briefing of an unknown one", "tasks/nothing/briefing", "briefing", "nothing", words("briefing nothing")))
}

// Whatever is wrong has its own answer, which names the field and the mend or who is in the way,
// and it is the same by every door (contract 7.3, 9.2).
func TestTasks_TheSameRefusalByEveryDoor(t *testing.T) {
	t.Parallel()
	d := newDoors(t)
	for _, row := range slices.Concat(refusedFields(), refusedLeases(), refusedStates(d.elsewhere)) {
		status, body, code := d.everywhere(row.question)
		if row.args == nil {
			code = row.exit
		}
		var said api.Error
		d.must(json.Unmarshal([]byte(body), &said, json.RejectUnknownMembers(false)))
		if status != row.status || said.Code != row.code || code != row.exit {
			t.Errorf("%s is answered %d %s, the command ends with %d; want %d %s and %d", row.name, status, body, code, row.status, row.code, row.exit)
		}
		i := slices.IndexFunc(said.Fields, func(f api.FieldError) bool { return f.Field == row.field })
		if (i >= 0) != (row.field != "") {
			t.Errorf("%s names the fields %v, want %q", row.name, said.Fields, row.field)
		}
		if !strings.Contains(body, strings.ReplaceAll(row.says, `"`, `\"`)) {
			t.Errorf("%s: nothing says %q: %s", row.name, row.says, body)
		}
		if holder := row.says == "holds T-4 until 2026-03-28 14:00:00 UTC"; holder != (said.Holder != "") || holder && !said.ExpiresAt.Equal(still().Add(2*3600e9)) {
			t.Errorf("%s names the holder %q until %s", row.name, said.Holder, said.ExpiresAt)
		}
	}
}
