package server_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stint/api"
	"stint/server/servertest"
)

// Programs share tasks with people by the same verbs, and their answers are the API's.
func TestMCP_Tasks(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		t.Run(version, func(t *testing.T) {
			d := newFixture(t, servertest.Options{Clock: still})
			a := assistantOf(t, d.Server, version)
			for tool, path := range map[string]string{"list_tasks": "tasks", "next_task": "tasks/next"} {
				if got, want := a.call(tool, nil), string(d.Do("GET", path, nil).Body); got != want || strings.Contains(got, "null") {
					t.Errorf("%s answers %s, and the API %s", tool, got, want)
				}
			}
			made := called[api.Task](a, "create_task", m{"title": "Mend the <roof> & door", "priority": "p1", "labels": []string{"home"}})
			one := m{"task": made.Key}
			called[api.TaskComment](a, "comment_task", with(one, m{"text": "Bring a ladder."}))
			called[api.Task](a, "update_task", with(one, m{"description": "Before winter.", "labels": nil}))
			held := called[api.TaskHeld](a, "claim", with(one, m{"leaseSeconds": 600}))
			if held.Task.State != api.TaskInProgress {
				t.Errorf("a claim answers %+v", held)
			}
			called[api.TaskHeld](a, "renew", one)
			called[api.TaskHeld](a, "extend", with(one, m{"addSeconds": 60}))
			at := "tasks/" + made.Key
			for tool, path := range map[string]string{"get_task": at, "briefing": at + "/briefing"} {
				if got, want := a.call(tool, one), string(d.Do("GET", path, nil).Body); got != want {
					t.Errorf("%s answers %s, and the API %s", tool, got, want)
				}
			}
			other := assistantOf(t, d.As(d.AddUser("default", api.Member)), version)
			said := other.refused(api.CodeAlreadyClaimed, "claim", one)
			refusal := d.As(d.AddUser("default", api.Member)).Refused(409, api.CodeAlreadyClaimed, "POST", at+"/claim", m{})
			if refusal.Holder == "" || !strings.Contains(said, "Holder: "+refusal.Holder) || !strings.Contains(said, "Until: "+refusal.ExpiresAt.String()) || !strings.Contains(said, "Next: ") {
				t.Errorf("another is told %s", said)
			}
			other.refused(api.CodeNotClaimHolder, "release", one)
			called[api.TaskReleased](a, "release", one)
			if got := called[api.Dispatched](a, "dispatch_task", with(one, m{"agent": "tidy", "print": true})); got.Session != nil {
				t.Errorf("print starts %+v", got)
			}
			if got := called[api.Dispatched](a, "dispatch_task", with(one, m{"agent": "tidy", "idempotencyKey": "d1"})); got.Session == nil {
				t.Errorf("dispatch answers %+v", got)
			}
			viewer := assistantOf(t, d.As(d.AddUser("default", api.Viewer)), version)
			viewer.call("get_task", one)
			viewer.refused(api.CodeForbidden, "comment_task", with(one, m{"text": "x"}))
			d.stranger()
			assistantOf(t, d.As(d.AddUser("elsewhere", api.Owner)), version).refused(api.CodeNotFound, "get_task", one)
		})
	}
}

// What somebody holds is dispatched only by force, which is an admin's, as over REST.
func TestMCP_DispatchByForce(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	holder := d.As(d.AddUser("default", api.Member))
	key := servertest.Must[api.Task](holder, 201, "POST", "tasks", m{"title": "Mend it", "state": "in_progress"}).Key
	held := m{"task": key, "agent": "tidy"}
	admin := assistantOf(t, d.As(d.AddUser("default", api.Admin)), stateless)
	admin.refused(api.CodeAlreadyClaimed, "dispatch_task", held)
	assistantOf(t, d.As(d.AddUser("default", api.Member)), stateless).refused(api.CodeForbidden, "dispatch_task", with(held, m{"force": true}))
	got := called[api.Dispatched](admin, "dispatch_task", with(held, m{"force": true}))
	if got.Session == nil || got.Task.Lease == nil || got.Task.Lease.SessionID != got.Session.ID {
		t.Errorf("by force it answers %+v", got)
	}
	log := servertest.Must[api.List[api.Event]](d.Server, 200, "GET", "tasks/"+key+"/events", nil)
	if !slices.ContainsFunc(log.Items, func(e api.Event) bool { return e.Type == api.EventTaskDispatched && e.Data["forced"] == true }) {
		t.Errorf("the log has %+v", log.Items)
	}
}

// A task's briefing is a resource: what REST answers, to whom REST answers it.
func TestMCP_Briefing(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		t.Run(version, func(t *testing.T) {
			d := newFixture(t, servertest.Options{})
			made := servertest.Must[api.Task](d.Server, 201, "POST", "tasks", m{"title": "Mend the <roof>", "slug": "roof", "description": "Before *winter*."})
			servertest.Must[api.TaskComment](d.Server, 201, "POST", "tasks/roof/comments", m{"text": "Bring a ladder."})
			a := assistantOf(t, d.Server, version)
			list, err := a.ListResourceTemplates(t.Context(), nil)
			if err != nil || !slices.ContainsFunc(list.ResourceTemplates, func(r *sdk.ResourceTemplate) bool { return r.URITemplate == "stint://tasks/{task}/briefing" }) {
				t.Errorf("the templates are %+v, %v", list, err)
			}
			want := servertest.Must[api.Briefing](d.Server, 200, "GET", "tasks/roof/briefing", nil).Text
			if !strings.Contains(want, "Bring a ladder.") {
				t.Fatalf("the briefing is %s", want)
			}
			viewer := assistantOf(t, d.As(d.AddUser("default", api.Viewer)), version)
			for name, who := range map[string]*assistant{made.Key: a, "roof": a, made.ID.String(): viewer, "%54-1": viewer} {
				if got := briefing(who, name); got != want {
					t.Errorf("%s is %q and not %q", name, got, want)
				}
			}
			d.stranger()
			foreign := assistantOf(t, d.As(d.AddUser("elsewhere", api.Owner)), version)
			for name, who := range map[string]*assistant{"T-99": a, "no-such": a, made.Key: foreign} {
				if got := briefing(who, name); !strings.HasPrefix(got, "not_found: There is no such task here.") || !strings.Contains(got, "list_tasks") || !strings.HasSuffix(got, `{"uri":"stint://tasks/`+name+`/briefing"}`) {
					t.Errorf("%s is told %q", name, got)
				}
			}
		})
	}
}

// briefing reads the resource of a task's briefing, or says why it can't be read.
func briefing(a *assistant, task string) string {
	a.tb.Helper()
	uri := "stint://tasks/" + task + "/briefing"
	r, err := a.ReadResource(a.tb.Context(), &sdk.ReadResourceParams{URI: uri})
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return refused.Message + string(refused.Data)
	}
	if err != nil {
		a.tb.Fatal(err)
	}
	if c := r.Contents[0]; c.URI != uri || c.MIMEType != "text/markdown" {
		a.tb.Errorf("it is %s of type %s", c.URI, c.MIMEType)
	}
	return r.Contents[0].Text
}

// outcome is what becomes of a call: its answer, or the code of its refusal.
func (a *assistant) outcome(tool string, args m) (answer, code string) {
	a.tb.Helper()
	r, err := a.CallTool(a.tb.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.tb.Fatalf("%s %v: %v", tool, args, err)
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		code, _, _ = strings.Cut(text, ":")
		return "", code
	}
	return text, "+"
}

// A run's token acts on its own task and session and on nothing else, whatever the tool; somebody
// of another workspace sees no task at all.
func TestMCP_ARunActsOnItsOwnTaskAlone(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		t.Run(version, func(t *testing.T) {
			d := newFixture(t, servertest.Options{})
			for _, title := range []string{"Its own", "Another's"} {
				servertest.Must[api.Task](d.Server, 201, "POST", "tasks", m{"title": title})
			}
			started := servertest.Must[api.Dispatched](d.Server, 201, "POST", "tasks/T-1/dispatch", m{"agent": "tidy"})
			run := assistantOf(t, d.As(d.claim(started.Session.ID).RunToken), version)
			d.stranger()
			foreign := assistantOf(t, d.As(d.AddUser("elsewhere", api.Owner)), version)
			for _, row := range []struct {
				tool               string
				args               m
				own, other, abroad string // what becomes of it for the run on its task, on another, and for the stranger
			}{
				{"get_task", nil, "+", "not_found", "not_found"},
				{"briefing", nil, "+", "not_found", "not_found"},
				{"comment_task", m{"text": "Half of it."}, "+", "not_found", "not_found"},
				{"renew", nil, "+", "not_found", "not_found"},
				{"extend", m{"addSeconds": 60}, "+", "not_found", "not_found"},
				{"claim", nil, "user_token_required", "user_token_required", "not_found"},
				{"release", nil, "user_token_required", "user_token_required", "not_found"},
				{"update_task", m{"state": "done"}, "user_token_required", "user_token_required", "not_found"},
				{"update_task", m{"assignee": "me"}, "user_token_required", "user_token_required", "not_found"},
				{"dispatch_task", m{"agent": "tidy", "force": true}, "user_token_required", "user_token_required", "not_found"},
			} {
				for key, want := range map[string]string{"T-1": row.own, "T-2": row.other} {
					if _, got := run.outcome(row.tool, with(row.args, m{"task": key})); got != want {
						t.Errorf("%s of %s by the run: %s, not %s", row.tool, key, got, want)
					}
					if _, got := foreign.outcome(row.tool, with(row.args, m{"task": key})); got != row.abroad {
						t.Errorf("%s of %s by a stranger: %s", row.tool, key, got)
					}
				}
			}
			if text := briefing(run, "T-1"); !strings.Contains(text, "Its own") {
				t.Errorf("the run reads %q", text)
			}
			if text := briefing(run, "T-2"); !strings.HasPrefix(text, "not_found: ") {
				t.Errorf("the run reads %q", text)
			}
			if got := called[api.List[api.Task]](run, "list_tasks", nil); len(got.Items) != 1 || got.Items[0].Key != "T-1" {
				t.Errorf("the run sees %+v", got.Items)
			}
			for _, tool := range []string{"next_task", "create_task"} {
				if _, got := run.outcome(tool, map[string]m{"create_task": {"title": "x"}}[tool]); got != "user_token_required" {
					t.Errorf("%s by the run: %s", tool, got)
				}
			}
			for _, tool := range []string{"list_tasks", "next_task"} {
				if got := called[list](foreign, tool, nil); len(got.Items) != 0 {
					t.Errorf("%s shows a stranger %+v", tool, got.Items)
				}
			}
			one := called[api.Task](assistantOf(t, d.Server, version), "get_task", m{"task": "T-1"})
			if one.State == api.TaskDone || one.Comments != 1 || one.Lease == nil || one.Lease.SessionID != started.Session.ID {
				t.Errorf("its task is %+v", one)
			}
		})
	}
}

// A run's agent reports on its own session, once for each key; for anybody else there is none.
func TestMCP_ARunReportsItsProgress(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	c := d.running()
	run := assistantOf(t, d.As(c.RunToken), stateless)
	first := called[api.Activity](run, "report_progress", m{"text": "Half of it.", "key": "k"})
	if again := called[api.Activity](run, "report_progress", m{"text": "Half of it.", "key": "k"}); again.ID != first.ID || first.Type != api.ActivityProgress {
		t.Errorf("it notes %+v, then %+v", first, again)
	}
	for _, args := range []m{{"text": "x", "session": d.addSession().ID.String()}, {"text": "x", "type": "completed"}} {
		run.refused(api.CodeMalformed, "report_progress", args)
	}
	assistantOf(t, d.Server, stateless).refused(api.CodeForbidden, "report_progress", m{"text": "x"})
	notes := servertest.Must[api.List[api.Activity]](d.Server, 200, "GET", "sessions/"+c.SessionID.String()+"/activities", nil)
	if n := len(slices.DeleteFunc(notes.Items, func(a api.Activity) bool { return a.Text != "Half of it." })); n != 1 {
		t.Errorf("its timeline has it %d times", n)
	}
}

// A word that has a page of its own beside the tasks or the sessions names none of them, in no
// tool: it would make another call.
func TestMCP_AWordOfAnotherPathNamesNothing(t *testing.T) {
	d := newFixture(t, servertest.Options{})
	a := assistantOf(t, d.Server, stateless)
	for _, word := range []string{"next", "counts", ".", ".."} {
		for _, tool := range []string{"get_task", "briefing", "claim", "release", "update_task"} {
			a.refused(api.CodeNotFound, tool, m{"task": word})
		}
	}
	for _, word := range []string{"counts", ".."} {
		a.refused(api.CodeNotFound, "get_session", m{"session": word})
	}
	if told := a.InitializeResult().Instructions; !strings.Contains(told, "next_task") || !strings.Contains(told, "dispatch_task") {
		t.Errorf("a model is told nothing of tasks: %s", told)
	}
}
