package server_test

import (
	"strings"
	"testing"

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
			a.refused(api.CodeMalformed, "dispatch_task", with(one, m{"force": true}))
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
