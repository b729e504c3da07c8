package agent_test

import (
	"slices"
	"testing"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// What people say to a running turn of Claude Code is taken in when the program repeats it; what it
// takes in after its turn is a turn that it begins by itself, and to the host the same one.
func TestClaude_SaidToARunningTurn(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{}
	var begun, late string
	r, err := agenttest.Converse(t.Context(), t, agent.Claude{}, agent.Job{Begin: agent.NewID(), Turn: "go"}, host, func(p *agenttest.Peer) {
		user := func(l agenttest.Line) bool { return l.Text("type") == "user" }
		begun = p.HearUntil(user).Text("uuid")
		host.Urge(agent.Said{ID: "m1", Text: "one"})
		first := p.HearUntil(user)
		if first.Text("message", "content") != "one" {
			t.Errorf("it hears %v", first)
		}
		host.Urge(agent.Said{ID: "m2", Text: "two"})
		late = p.HearUntil(user).Text("uuid")
		p.Say(obj{"type": "user", "uuid": first.Text("uuid"), "isReplay": true, "message": obj{"role": "user", "content": "one"}},
			obj{"type": "assistant", "message": obj{"id": "a", "content": []any{obj{"type": "text", "text": "first"}}}},
			obj{"type": "result", "subtype": "success", "result": "first", "user_message_uuids": []string{begun, first.Text("uuid")}},
			obj{"type": "user", "uuid": late, "isReplay": true, "message": obj{"role": "user", "content": "two"}},
			obj{"type": "assistant", "message": obj{"id": "b", "content": []any{obj{"type": "text", "text": "second"}}}},
			obj{"type": "result", "subtype": "success", "result": "second", "user_message_uuids": []string{late}})
		p.Wait()
	})
	if err != nil || r.Failure != nil {
		t.Fatalf("result %+v (%+v), %v", r, r.Failure, err)
	}
	seen := host.Seen()
	if !slices.Equal(seen.Took, []string{"m1", "m2"}) || r.Text != "second" {
		t.Errorf("it took %q and said %q", seen.Took, r.Text)
	}
	if got := seen.Transcript(api.ItemText, api.ItemStatus, api.ItemTurnEnd); got != "status: took m1\ntext: first\nstatus: took m2\ntext: second\nturn_end\n" {
		t.Errorf("the transcript is\n%s", got)
	}
}

// What people say to a running turn of Codex is taken in when its item shows; what Codex refuses
// wasn't, and what is open at the end of the turn is in doubt.
func TestCodex_SaidToARunningTurn(t *testing.T) {
	t.Parallel()
	host := &agenttest.Host{}
	r, err := agenttest.Converse(t.Context(), t, agent.Codex{}, agent.Job{Dir: t.TempDir(), Turn: "go"}, host, func(p *agenttest.Peer) {
		answer := func(method string, result obj) agenttest.Line {
			l := p.HearUntil(func(l agenttest.Line) bool { return l.Text("method") == method })
			if result == nil {
				p.Say(obj{"id": l["id"], "error": obj{"code": -32600, "message": "no active turn to steer"}})
			} else {
				p.Say(obj{"id": l["id"], "result": result})
			}
			return l
		}
		answer("initialize", obj{})
		answer("thread/start", obj{"thread": obj{"id": "t1"}})
		answer("turn/start", obj{"turn": obj{"id": "u1"}})
		for i, id := range []string{"m1", "m2", "m3"} {
			host.Urge(agent.Said{ID: id, Text: "text of " + id})
			result := obj{"turnId": "u1"}
			if i == 1 {
				result = nil
			}
			asked := answer("turn/steer", result)
			if asked.Text("params", "expectedTurnId") != "u1" || asked.Text("params", "clientUserMessageId") != id {
				t.Errorf("it is steered by %v", asked)
			}
			if i == 0 {
				p.Say(obj{"method": "item/completed", "params": obj{"threadId": "t1", "turnId": "u1", "item": obj{"type": "userMessage", "id": "i", "clientId": id}}})
			}
		}
		p.Say(obj{"method": "turn/completed", "params": obj{"threadId": "t1", "turn": obj{"id": "u1", "status": "completed"}}})
		p.Wait()
	})
	if err != nil || r.Failure != nil {
		t.Fatalf("result %+v (%+v), %v", r, r.Failure, err)
	}
	if got := host.Seen().Took; !slices.Equal(got, []string{"m1", "not m2"}) {
		t.Errorf("it took %q", got)
	}
}
