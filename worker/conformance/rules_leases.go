package conformance

import (
	"net/http"
	"time"
)

var leaseRules = []rule{
	{"renew.moves_the_end", "A renewal sets the lease's end to now and its length, and never shortens it.", "4.4", func(t *trial) {
		c := t.worker().running(doc{"leaseSeconds": 120})
		t.pause(shortly)
		got := c.do("renew")
		t.check(t.expiry(got).After(t.expiry(c.doc)), "the renewal didn't move the end: %v, before it %v", got["leaseExpiresAt"], c.doc["leaseExpiresAt"])
		length := t.expiry(got).Sub(t.serverTime(got))
		t.check(length > 119*time.Second && length < 121*time.Second, "a renewed lease of 120 s ends after %v", length)
		long := t.expiry(c.do("extend", doc{"addSeconds": 600}))
		t.check(!t.expiry(c.do("renew")).Before(long), "a renewal shortened an extended lease")
		t.check(!t.expiry(t.look(c.session)).Before(long), "the record shows a shortened lease")
	}},
	{"extend.adds_and_caps", "extend adds seconds to the lease, up to the maximum, and says when it was capped.", "4.4", func(t *trial) {
		c := t.worker().running(doc{"leaseSeconds": 120})
		got := c.do("extend", doc{"addSeconds": 300})
		added := t.expiry(got).Sub(t.expiry(c.doc))
		t.check(added > 298*time.Second && added < 302*time.Second && got["cappedToMax"] != true, "300 s more moved the end by %v, capped %v", added, got["cappedToMax"])
		got = c.do("extend", doc{"addSeconds": 10_000_000})
		most, ok := whole(got, "maxLeaseSeconds")
		t.check(got["cappedToMax"] == true && ok, "10 million seconds more are answered with cappedToMax %v", got["cappedToMax"])
		left := t.expiry(got).Sub(t.serverTime(got))
		t.check(left <= time.Duration(most)*time.Second+time.Second, "the lease ends after %v, the maximum is %d s", left, most)
	}},
	{"write.renews", "Every accepted write keeps the lease alive.", "4.4", func(t *trial) {
		w := t.worker()
		part := time.Duration(t.kit.lease) * time.Second * 6 / 10
		held := map[string]claim{"activities": w.running(t.short()), "items": w.running(t.short()), "": w.running(t.short())}
		idle := w.running(t.short())
		for range 2 { // together longer than a lease
			t.pause(part)
			held["activities"].do("activities", doc{"type": "progress", "text": "half"})
			held["items"].do("items", doc{"items": []doc{{"kind": "text", "text": "a line"}}})
			held[""].patch(doc{"plan": "1. look"})
		}
		for verb, c := range held {
			a := t.call(http.MethodPost, c.verb("renew"), c.proof())
			t.check(a.status == http.StatusOK, "with writes to %q in between, after longer than a lease %s", verb, a.says())
		}
		t.refused(409, "claim_not_active", http.MethodPost, idle.verb("renew"), idle.proof())
	}},
}

// state is what a write could change in a session.
func (t *trial) state(session string) [4]any {
	s := t.look(session)
	items := t.ok(http.MethodGet, "sessions/"+session+"/items", nil)
	acts := t.ok(http.MethodGet, "sessions/"+session+"/activities", nil)
	return [4]any{text(s, "status"), text(s, "plan"), len(list(items, "items")), len(list(acts, "items"))}
}

// writes are the verbs that need a claim, with a body that would be fine.
var writes = []struct {
	method, verb string
	body         doc
}{
	{http.MethodPost, "renew", nil},
	{http.MethodPost, "extend", doc{"addSeconds": 60}},
	{http.MethodPost, "activities", doc{"type": "progress", "text": "x"}},
	{http.MethodPost, "items", doc{"items": []doc{{"kind": "text", "text": "x"}}}},
	{http.MethodPatch, "", doc{"plan": "x"}},
	{http.MethodPost, "complete", doc{"result": "x"}},
	{http.MethodPost, "fail", doc{"code": "X"}},
	{http.MethodPost, "release", doc{"reason": "x"}},
}

// refuseAll tries each write to a session with an invalid proof.
func (t *trial) refuseAll(w worker, session string, status int, code string, proof doc) {
	before := t.state(session)
	for _, write := range writes {
		t.refused(status, code, write.method, w.at(session, write.verb), with(write.body, proof))
	}
	t.check(t.state(session) == before, "refused writes changed the session from %v to %v", before, t.state(session))
}

var writeRules = []rule{
	{"write.needs_a_claim", "A write without a claim id is refused with 400 and changes nothing.", "4.3", func(t *trial) {
		c := t.worker().running()
		t.refuseAll(c.worker, c.session, 400, "claim_required", doc{"instanceId": c.instance})
	}},
	{"write.needs_its_own_claim", "A write under an unknown claim, or another session's, is refused with 409 and changes nothing.", "4.3", func(t *trial) {
		w := t.worker()
		c, other := w.running(), w.running()
		for _, id := range []string{"clm_nonsense", other.id} {
			t.refuseAll(w, c.session, 409, "claim_not_active", doc{"instanceId": w.instance, "claimId": id})
		}
	}},
	{"write.needs_its_own_worker", "A write under a claim that another worker holds is refused and changes nothing.", "4.3", func(t *trial) {
		c, thief := t.worker().running(), t.worker()
		before := t.state(c.session)
		for _, write := range writes {
			a := t.call(write.method, thief.at(c.session, write.verb), with(write.body, doc{"instanceId": thief.instance, "claimId": c.id}))
			t.check(a.status == 409, "%s", a.says())
		}
		t.check(t.state(c.session) == before, "refused writes changed the session from %v to %v", before, t.state(c.session))
	}},
	{"items.once_in_order", "Items are kept in order, each client id once however often it is sent, and can be read back.", "6.2", func(t *trial) {
		c := t.worker().running()
		batch := []doc{{"kind": "text", "stream": "stdout", "text": "one\n", "clientId": "1"}, {"kind": "text", "stream": "stderr", "text": "two\n", "clientId": "2"}}
		for i := range 3 {
			got := c.do("items", doc{"items": batch})
			last, _ := whole(got, "lastSeq")
			appended, _ := whole(got, "appended")
			t.check(last == 2 && appended == map[bool]int64{true: 2, false: 0}[i == 0], "batch %d of the same two items is answered %v", i+1, got)
		}
		c.do("items", doc{"items": []doc{{"kind": "tool_call", "tool": "sh", "callId": "c1", "text": "ls", "clientId": "3"}}})
		items := list(t.ok(http.MethodGet, "sessions/"+c.session+"/items?after=0", nil), "items")
		t.check(len(items) == 3, "three items were sent and %d are read back", len(items))
		for i, want := range []string{"one\n", "two\n", "ls"} {
			seq, _ := whole(items[i], "seq")
			t.check(text(items[i], "text") == want && seq == int64(i+1), "item %d is %v", i+1, items[i])
		}
	}},
	{"items.kinds", "Items of kinds that are the coordinator's own are refused.", "6.2", func(t *trial) {
		c := t.worker().running()
		for _, kind := range []string{"pending_prompt", "late_result", "message", "gossip"} {
			t.refused(422, "invalid", http.MethodPost, c.verb("items"), c.proof(doc{"items": []doc{{"kind": kind, "text": "x"}}}))
		}
	}},
	{"activities.once", "Activities are of seven types, and the same key twice is one activity.", "6.1", func(t *trial) {
		c := t.worker().running()
		for range 3 {
			c.do("activities", doc{"type": "progress", "text": "half", "key": "a"})
		}
		for _, kind := range []string{"plan_updated", "external_url_updated", "awaiting_input", "completed", "failed", "policy_decision"} {
			c.do("activities", doc{"type": kind, "text": kind})
		}
		t.refused(422, "invalid", http.MethodPost, c.verb("activities"), c.proof(doc{"type": "gossip", "text": "x"}))
		got := list(t.ok(http.MethodGet, "sessions/"+c.session+"/activities", nil), "items")
		t.check(len(got) == 7, "seven activities were added and %d are listed", len(got))
		t.wants(c.session, "active") // whatever an activity says, it doesn't change the status
	}},
	{"patch.reports", "A worker reports plan, link, usage and agent session, and what it leaves out stays.", "6.1", func(t *trial) {
		c := t.worker().running()
		c.patch(doc{"plan": "1. look", "usage": doc{"turns": 2, "inputTokens": 10}})
		got := c.patch(doc{"externalUrl": "https://example.test/1", "agentSessionId": "resume-me"})
		turns, _ := whole(got, "usage.turns")
		t.check(text(got, "plan") == "1. look" && text(got, "externalUrl") == "https://example.test/1" && text(got, "agentSessionId") == "resume-me" && turns == 2, "after two reports the session is %v", got)
		t.refused(422, "invalid", http.MethodPatch, c.verb(""), c.proof(doc{"externalUrl": "javascript:alert(1)"}))
		t.refused(422, "invalid", http.MethodPatch, c.verb(""), c.proof(doc{"status": "complete"}))
	}},
}

// ask opens a question.
func (c claim) ask() doc {
	return c.patch(doc{"status": "awaiting_input", "prompt": doc{"kind": "text", "text": "Which one?"}})
}

// answer answers the open question and returns its id.
func (t *trial) answer(session string) (prompt string) {
	prompt = text(t.look(session), "openPrompt.id")
	t.ok(http.MethodPost, "sessions/"+session+"/answer", doc{"promptId": prompt, "text": "The left one."})
	return prompt
}

var questionRules = []rule{
	{"question.is_answered_once", "A question puts the session in awaiting_input; the first answer takes it back to active, a second is refused.", "6.5", func(t *trial) {
		c := t.worker().running()
		c.ask()
		got := t.look(c.session)
		t.check(text(got, "status") == "awaiting_input" && text(got, "openPrompt.text") == "Which one?", "with a question open the session is %v, openPrompt %v", got["status"], got["openPrompt"])
		t.refused(409, "prompt_open", http.MethodPatch, c.verb(""), c.proof(doc{"status": "awaiting_input", "prompt": doc{"kind": "text", "text": "And which next?"}}))
		c.do("renew")
		prompt := t.answer(c.session)
		t.wants(c.session, "active")
		t.refused(409, "prompt_closed", http.MethodPost, "sessions/"+c.session+"/answer", doc{"promptId": prompt, "text": "The right one."})
		c.do("complete")
	}},
	{"question.withdrawn", "The holder may withdraw its question.", "6.1", func(t *trial) {
		c := t.worker().running()
		c.ask()
		c.patch(doc{"status": "active"})
		got := t.look(c.session)
		t.check(text(got, "status") == "active" && got["openPrompt"] == nil, "after the withdrawal the session is %v, openPrompt %v", got["status"], got["openPrompt"])
	}},
	{"question.parks", "A release that parks keeps the question; the session waits unclaimed until the answer.", "4.5", func(t *trial) {
		w := t.worker()
		c := w.running()
		c.ask()
		c.do("release", doc{"park": true})
		got := t.look(c.session)
		t.check(text(got, "status") == "pending" && text(got, "waitingFor.code") == "open_prompt", "a parked session is %v and waits for %v", got["status"], got["waitingFor"])
		t.refused(409, "not_ready", http.MethodPost, w.at(c.session, "claim"), doc{"instanceId": w.instance})
		t.answer(c.session)
		t.wants(c.session, "queued")
		w.claim(c.session).do("complete")
	}},
	{"question.closed_by_release", "A plain release closes the question, and the session can be claimed again.", "6.5", func(t *trial) {
		w := t.worker()
		c := w.running()
		c.ask()
		prompt := text(t.look(c.session), "openPrompt.id")
		c.do("release")
		got := t.look(c.session)
		t.check(text(got, "status") == "queued" && got["openPrompt"] == nil, "after a plain release the session is %v, openPrompt %v", got["status"], got["openPrompt"])
		t.refused(409, "prompt_closed", http.MethodPost, "sessions/"+c.session+"/answer", doc{"promptId": prompt, "text": "Too late."})
	}},
}
