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
