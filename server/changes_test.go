package server_test

import (
	"stint/api"
	"stint/server/servertest"
)

// changesAnswer lands the changes of a session, and sends a review of them.
func changesAnswer(d *fixture) {
	d.tb.Helper()
	s := d.Server
	servertest.Must[api.Agent](s, 201, "POST", "agents", m{"slug": "editor", "type": "claude_code", "run": m{}})
	w := servertest.Must[api.Registered](s, 201, "POST", "agents/editor/workers", m{"name": "e", "instanceId": instance, "types": []string{"claude_code"}, "land": "merge"}).Worker
	id := servertest.Must[api.Session](s, 201, "POST", "agents/editor/sessions", m{"prompt": "Do it."}).ID.String()
	at := "agents/editor/workers/" + w.ID.String()
	c := servertest.Must[api.Claim](s, 200, "POST", at+"/sessions/"+id+"/claim", m{"instanceId": instance})
	state := m{"place": "worktree", "branch": "stint/x", "baseBranch": "main", "remote": "example.org", "commits": []m{}, "commitCount": 1, "unpushed": 1, "dirty": false}
	report := with(proof(c), m{
		"snapshot": "one", "state": state, "fileCount": 1, "added": 1, "removed": 0, "last": true,
		"files": []m{{"path": "a.go", "change": "added", "added": 1, "removed": 0, "patch": "@@ -0,0 +1 @@\n+one\n"}},
	})
	servertest.Must[api.ChangesNoted](s, 200, "POST", at+"/sessions/"+id+"/changes", report)
	s.Refused(422, api.CodeInvalid, "POST", at+"/sessions/"+id+"/changes", with(report, m{"snapshot": ""}))
	s.Refused(409, api.CodeConflict, "POST", "sessions/"+id+"/landings", m{"verb": "merge"})
	servertest.Must[api.Finished](s, 200, "POST", at+"/sessions/"+id+"/complete", proof(c))
	s.Refused(409, api.CodeClaimNotActive, "POST", at+"/sessions/"+id+"/changes", report)
	servertest.Must[api.Changes](s, 200, "GET", "sessions/"+id+"/changes", nil)

	land := "sessions/" + id + "/landings"
	s.Refused(422, api.CodeInvalid, "POST", land, m{"verb": "explode"})
	one := servertest.Must[api.Landing](s, 201, "POST", land, m{"verb": "push"}).ID.String()
	servertest.Must[api.Landing](s, 200, "GET", land+"/"+one, nil)
	servertest.Must[api.Landing](s, 200, "DELETE", land+"/"+one, nil)
	s.Refused(409, api.CodeConflict, "DELETE", land+"/"+one, nil)
	two := servertest.Must[api.Landing](s, 201, "POST", land, m{"verb": "merge"}).ID.String()
	answer := m{"instanceId": instance, "state": "done", "commit": "abc", "now": state}
	servertest.Must[api.Landing](s, 200, "POST", at+"/landings/"+two, answer)
	s.Refused(422, api.CodeInvalid, "POST", at+"/landings/"+two, with(answer, m{"state": "pending"}))
	s.Refused(409, api.CodeConflict, "POST", at+"/landings/"+two, with(answer, m{"state": "refused"}))

	review := "sessions/" + id + "/review"
	said := servertest.Must[api.ReviewComment](s, 201, "POST", review, m{"path": "a.go", "line": 1, "text": "Why?"})
	s.Refused(422, api.CodeInvalid, "POST", review, m{"text": ""})
	servertest.Must[list](s, 200, "GET", review, nil)
	if a := s.Do("DELETE", review+"/"+said.ID.String(), nil); a.Status != 204 {
		d.tb.Errorf("a comment is removed by %d %s", a.Status, a.Body)
	}
	s.Refused(409, api.CodeConflict, "POST", review+"/send", m{})
	servertest.Must[api.ReviewComment](s, 201, "POST", review, m{"text": "Well done."})
	s.Refused(422, api.CodeInvalid, "POST", review+"/send", m{"text": "a\x00b"})
	servertest.Must[api.Posted](s, 200, "POST", review+"/send", m{})
	// A command takes no messages, and so no review.
	other := d.addSession().ID.String()
	s.Refused(409, api.CodeConflict, "POST", "sessions/"+other+"/review", m{"text": "x"})
}
