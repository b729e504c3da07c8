package server_test

import (
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
