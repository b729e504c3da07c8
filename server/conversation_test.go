package server_test

import (
	"strings"

	"stint/api"
	"stint/server/servertest"
)

// conversationsAnswer has a conversation over the wire: an agent asks for approval, gets
// messages between turns, goes on and is handed over again.
func conversationsAnswer(d *fixture, viewer *servertest.Server) {
	s := d.Server
	talker := servertest.Must[api.Agent](s, 201, "POST", "agents", m{
		"slug": "talker", "type": "claude_code", "maxConcurrent": 9, "sessionSpendLimitMicros": 5_000_000,
		"run": m{"workFolder": "/tmp", "model": "small", "rules": []m{{"area": "shell", "pattern": "git push*", "ruling": "deny"}}},
	})
	if talker.SessionSpendLimitMicros != 5_000_000 || len(talker.Run.Rules) != 1 {
		d.tb.Errorf("the agent is %+v", talker)
	}
	s.Refused(422, api.CodeInvalid, "PATCH", "agents/talker", m{"run": m{"rules": []m{{"area": "moon", "ruling": "maybe"}}}})
	w := servertest.Must[api.Registered](s, 201, "POST", "agents/talker/workers", m{"name": "t", "instanceId": instance, "types": []string{"claude_code"}, "maxConcurrent": 9}).Worker
	for _, under := range []string{"sessions/", "agents/talker/sessions/"} {
		made := servertest.Must[api.Session](s, 201, "POST", "agents/talker/sessions", m{"prompt": "Tidy."})
		at := "agents/talker/workers/" + w.ID.String() + "/sessions/" + made.ID.String()
		c := servertest.Must[api.Claim](s, 200, "POST", at+"/claim", m{"instanceId": instance})
		if c.Conversation == nil {
			d.tb.Fatal("the claim tells of no conversation")
		}
		one := under + made.ID.String()
		asked := servertest.Must[api.Session](s, 200, "PATCH", at, with(proof(c), m{"status": "awaiting_input", "prompt": m{
			"kind": "approval", "text": "May I?", "action": m{"area": "shell", "what": "rm -r build", "tool": "Bash"},
		}})).Prompted
		prompt := one + "/prompts/" + asked.ID.String()
		if p := servertest.Must[api.Prompt](s, 200, "GET", prompt+"?wait=0", nil); p.Action == nil || p.Action.What != "rm -r build" {
			d.tb.Errorf("the prompt is %+v", p)
		}
		s.Refused(422, api.CodeInvalid, "POST", one+"/answer", m{"promptId": asked.ID.String(), "text": "yes"})
		servertest.Must[api.Session](s, 200, "POST", one+"/answer", m{"promptId": asked.ID.String(), "approved": true})
		if p := servertest.Must[api.Prompt](s, 200, "GET", prompt, nil); p.Answer == nil || !*p.Answer.Approved {
			d.tb.Errorf("the answered prompt is %+v", p)
		}
		asked = servertest.Must[api.Session](s, 200, "PATCH", at, with(proof(c), m{"status": "awaiting_input", "prompt": m{
			"kind": "questions", "text": "Sign in", "choices": []m{{"id": "pw", "text": "Password?", "secret": true}},
		}})).Prompted
		servertest.Must[api.Session](s, 200, "POST", one+"/answer", m{"promptId": asked.ID.String(), "choices": m{"pw": "hunter2"}})
		prompt = one + "/prompts/" + asked.ID.String()
		if p := servertest.Must[api.Prompt](s, 200, "GET", prompt, nil); p.Answer.Choices["pw"] != "(kept secret)" {
			d.tb.Errorf("everybody is told %+v", p.Answer)
		}
		if p := servertest.Must[api.Prompt](s, 200, "GET", prompt, nil, servertest.With(api.ClaimHeader, c.ClaimID.String())); p.Answer.Choices["pw"] != "hunter2" {
			d.tb.Errorf("the claim is told %+v", p.Answer)
		}
		for _, none := range []string{(api.ClaimID{Key: c.ClaimID.Key}).String(), "mine"} {
			s.Refused(409, api.CodeClaimNotActive, "GET", prompt, nil, servertest.With(api.ClaimHeader, none))
		}
		said := servertest.Must[api.Posted](s, 200, "POST", one+"/messages", m{"text": "And the attic.", "clientId": "m1"})
		s.Refused(422, api.CodeInvalid, "POST", one+"/messages", m{"text": ""})
		if got := servertest.Must[api.Messages](s, 200, "GET", one+"/messages", nil); len(got.Items) != 1 || got.Items[0].ID != said.Message.ID {
			d.tb.Errorf("the messages are %+v", got)
		}
		now := servertest.Must[api.Posted](s, 200, "POST", one+"/messages", m{"text": "Not the attic.", "now": true}).Message
		if got := servertest.Must[api.Messages](s, 200, "GET", one+"/messages?wait=1&after="+said.Message.ID.String(), nil); !now.Now || len(got.Items) != 1 || got.Items[0].ID != now.ID {
			d.tb.Errorf("after the first the messages are %+v", got)
		}
		servertest.Must[api.Session](s, 200, "PATCH", at, with(proof(c), m{"taken": []string{now.ID.String()}}))
		s.Refused(422, api.CodeInvalid, "PATCH", at, with(proof(c), m{"taken": []string{api.MessageID(1).String()}}))
		attachments(d, under)
		servertest.Must[api.ItemsAnswer](s, 200, "POST", at+"/items", with(proof(c), m{"items": []m{
			{"kind": "tool_call", "tool": "Bash", "callId": "1", "text": "rm -r build"}, {"kind": "tool_result", "tool": "Bash", "callId": "1", "failed": true, "text": "no"},
		}}))
		s.Refused(422, api.CodeInvalid, "POST", at+"/items", with(proof(c), m{"items": []m{{"kind": "tool_call", "text": "x"}}}))
		got := servertest.Must[api.Session](s, 200, "PATCH", at, with(proof(c), m{"turnEnded": true, "lastConsumed": said.Message.ID.String(), "usage": m{"costMicros": 6_000_000}}))
		if got.SpendExceeded == "" {
			d.tb.Error("nobody says that the limit is reached")
		}
		thread := "threads/" + c.Session.ThreadID.String()
		viewer.Refused(404, api.CodeNotFound, "GET", thread, nil) // it is the owner's local one
		s.Refused(403, api.CodeStateNotYours, "PATCH", thread, m{"state": "active"})
		s.Refused(409, api.CodeConflict, "PATCH", thread, m{"state": "pending"})
		s.Refused(422, api.CodeInvalid, "PATCH", thread, m{"state": "maybe"})
		servertest.Must[api.Finished](s, 200, "POST", at+"/complete", proof(c))
		if got := servertest.Must[api.Thread](s, 200, "GET", thread, nil); got.State != api.ThreadCompleted {
			d.tb.Errorf("the thread is %+v", got)
		}
		servertest.Must[api.Posted](s, 201, "POST", one+"/messages", m{"text": "More."})
		if got := servertest.Must[api.ThreadChanged](s, 200, "PATCH", thread, m{"state": "completed"}); !got.Changed || got.Thread.State != api.ThreadFailed {
			d.tb.Errorf("stopping what waited answered %+v", got)
		}
		if got := servertest.Must[api.ThreadChanged](s, 200, "PATCH", thread, m{"state": "pending"}); !got.Changed {
			d.tb.Errorf("handing over again answered %+v", got)
		}
		servertest.Must[api.ThreadChanged](s, 200, "PATCH", thread, m{"state": "completed"})
	}
	// A command takes no messages.
	cmd := d.addSession().ID.String()
	s.Refused(409, api.CodeConflict, "POST", "sessions/"+cmd+"/messages", m{"text": "x"})
	s.Refused(409, api.CodeConflict, "POST", "agents/tidy/sessions/"+cmd+"/messages", m{"text": "x"})
}

// attachments gives files with a message, reads them back, and has those refused that can't be given.
// Whatever could run in a browser is bytes to be saved.
func attachments(d *fixture, under string) {
	d.tb.Helper()
	made := servertest.Must[api.Session](d.Server, 201, "POST", "agents/talker/sessions", m{"prompt": "Look.", "files": []m{{"name": "notes.txt", "data": []byte("x")}}})
	one := under + made.ID.String()
	picture := "\x89PNG\r\n\x1a\n..."
	given := servertest.Must[api.Posted](d.Server, 200, "POST", one+"/messages", m{"text": "See.", "files": []m{
		{"name": "shot.png", "data": []byte(picture)}, {"name": "a \"b\".svg", "data": []byte("<svg onload='x()'/>")},
	}}).Message
	all := servertest.Must[api.Attachments](d.Server, 200, "GET", one+"/attachments", nil).Items
	if len(all) != 3 || all[0].Name != "notes.txt" || len(given.Files) != 2 || given.Files[0].Type != "image/png" || given.Files[1].Type != "text/plain" || all[len(all)-1] != given.Files[1] {
		d.tb.Errorf("given %+v, listed %+v", given.Files, all)
		return
	}
	for i, want := range []struct{ kind, how, body string }{
		{"image/png", "inline; filename=shot.png", picture}, {"application/octet-stream", `attachment; filename="a \"b\".svg"`, "<svg onload='x()'/>"},
	} {
		a := d.Do("GET", one+"/attachments/"+given.Files[i].ID.String(), nil)
		h := a.Header
		if a.Status != 200 || h.Get("Content-Type") != want.kind || h.Get("Content-Disposition") != want.how || string(a.Body) != want.body ||
			h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			d.tb.Errorf("%s is answered with %d %v %q", given.Files[i].Name, a.Status, h, a.Body)
		}
	}
	d.Refused(404, api.CodeNotFound, "GET", one+"/attachments/att_0000000001", nil)
	d.Refused(422, api.CodeInvalid, "GET", one+"/attachments/"+given.Files[0].ID.String()+"?x=1", nil)
	d.Refused(422, api.CodeInvalid, "GET", one+"/attachments?x=1", nil)
	big := make([]byte, api.MaxFileBytes+1)
	for field, files := range map[string][]m{
		"files[0].name": {{"name": "../x", "data": []byte("x")}}, "files[0].data": {{"name": "big", "data": big}}, "files[1].name": {{"name": "a", "data": []byte("x")}, {"name": "A", "data": []byte("x")}},
	} {
		e := d.Refused(422, api.CodeInvalid, "POST", one+"/messages", m{"text": "x", "files": files})
		if len(e.Fields) != 1 || e.Fields[0].Field != field {
			d.tb.Errorf("refused for %+v, not for %s", e.Fields, field)
		}
	}
}
