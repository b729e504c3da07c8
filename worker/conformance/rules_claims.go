package conformance

import (
	"net/http"
	"net/url"
	"time"
)

// shortly is long enough for the instants on the wire, which are given in milliseconds.
const shortly = 30 * time.Millisecond

func (t *trial) later() doc {
	return doc{"notBefore": time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)}
}

// polled finds a session in the worker's poll; nil when it isn't listed.
func (w worker) polled(session, query string) doc {
	got := w.t.ok(http.MethodGet, w.path()+"/sessions?instanceId="+w.instance+query, nil)
	for _, item := range list(got, "items") {
		if text(item, "session.id") == session {
			return item
		}
	}
	return nil
}

var pollRules = []rule{
	{"poll.lists", "A poll lists what the worker may claim, and what waits at a gate as not claimable and with the gate.", "5.4", func(t *trial) {
		w := t.worker()
		ready, held := t.session(), t.session(t.later())
		item := w.polled(ready, "")
		t.check(item != nil && item["claimable"] == true, "of a session that is ready the poll says %v", item)
		item = w.polled(held, "")
		t.check(item != nil && item["claimable"] == false && text(item, "session.waitingFor.code") == "not_before", "of a session with notBefore the poll says %v", item)
		c := w.claim(ready)
		t.check(w.polled(ready, "") == nil, "the poll lists a session that is claimed")
		c.do("release")
	}},
	{"poll.holds", "A poll with wait is held until there is something to claim.", "5.4", func(t *trial) {
		w := t.worker()
		made := make(chan string, 1)
		go func() {
			defer close(made)
			defer func() { _ = recover() }() // if the poll finds nothing, it says so
			t.pause(300 * time.Millisecond)
			made <- t.session()
		}()
		begun := time.Now()
		got := t.ok(http.MethodGet, w.path()+"/sessions?wait=30&instanceId="+w.instance, nil)
		took := time.Since(begun)
		items := list(got, "items")
		t.check(len(items) > 0 && items[0]["claimable"] == true && text(items[0], "session.id") == <-made, "the held poll answered %v", got["items"])
		t.check(took >= 250*time.Millisecond && took < 15*time.Second, "it was held for %v", took)
	}},
}

var claimRules = []rule{
	{"claim.answer", "A claim is answered with its id, a fence, the lease's end, the server's time, and trusted and untrusted parts apart.", "4.2", func(t *trial) {
		w := t.worker()
		const prompt = "The prompt of a person."
		c := w.claim(t.session(doc{"prompt": prompt, "untrustedContext": "what a web page said"}), doc{"leaseSeconds": 120})
		length := t.expiry(c.doc).Sub(t.serverTime(c.doc))
		t.check(length > 119*time.Second && length < 121*time.Second, "a lease of 120 s ends after %v", length)
		fence, ok := whole(c.doc, "fence")
		t.check(ok && fence >= 1, "the fence is %v", c.doc["fence"])
		offline, ok := whole(c.doc, "offlineAfterSeconds")
		t.check(ok && offline > 0, "offlineAfterSeconds is %v", c.doc["offlineAfterSeconds"])
		t.check(text(c.doc, "untrusted.prompt") == prompt && text(c.doc, "untrusted.context") == "what a web page said", "the untrusted part is %v", c.doc["untrusted"])
		t.check(text(c.doc, "trusted.instructions") == "Be exact.", "the trusted part is %v", c.doc["trusted"])
		for name, v := range with(c.doc["trusted"].(doc)) {
			t.check(v != prompt && v != "what a web page said", "the trusted part has a person's words in %s", name)
		}
		t.check(text(c.doc, "sessionId") == c.session && text(c.doc, "workerId") == w.id, "the claim is on %v for %v", c.doc["sessionId"], c.doc["workerId"])
		t.wants(c.session, "active")
	}},
	{"claim.race_has_one_winner", "Of racing claims exactly one wins; the others are told the holder and the lease's end.", "4.1", func(t *trial) {
		const n = 8
		var workers [n]worker
		for i := range workers {
			workers[i] = t.worker()
		}
		for range 3 {
			session := t.session()
			won := ""
			for i, a := range t.together(n, func(i int) response {
				return t.call(http.MethodPost, workers[i].at(session, "claim"), doc{"instanceId": workers[i].instance})
			}) {
				if a.status == http.StatusOK {
					t.check(won == "", "two workers hold session %s", session)
					won = workers[i].name
					continue
				}
				t.check(a.status == 409 && text(a.body, "code") == "already_claimed", "%s", a.says())
			}
			t.check(won != "", "nobody got session %s", session)
			loser := t.worker()
			e := t.refused(409, "already_claimed", http.MethodPost, loser.at(session, "claim"), doc{"instanceId": loser.instance})
			t.check(text(e, "holder") == won, "the holder is %s, and said to be %v", won, e["holder"])
			_, ok := instant(e, "expiresAt")
			t.check(ok, "expiresAt is %v", e["expiresAt"])
		}
	}},
	{"claim.again_is_the_same", "The same process claiming its session again gets the same claim.", "4.2", func(t *trial) {
		w := t.worker()
		c := w.running()
		again := w.claim(c.session)
		t.check(again.id == c.id && at(again.doc, "fence") == at(c.doc, "fence"), "the second answer is the claim %s, the first was %s", again.id, c.id)
	}},
	{"claim.lease_bounds", "A lease over the maximum is capped and says so; one under the minimum or no whole number is refused.", "4.2", func(t *trial) {
		w := t.worker()
		c := w.running(doc{"leaseSeconds": 10_000_000})
		most, ok := whole(c.doc, "maxLeaseSeconds")
		t.check(c.doc["cappedToMax"] == true && ok, "a lease of 10 million seconds is answered with cappedToMax %v, maxLeaseSeconds %v", c.doc["cappedToMax"], c.doc["maxLeaseSeconds"])
		length := t.expiry(c.doc).Sub(t.serverTime(c.doc))
		t.check(length <= time.Duration(most)*time.Second+time.Second, "the capped lease lasts %v, the maximum is %d s", length, most)
		s := t.session()
		for _, bad := range []any{0, -5, 1.5, "600"} {
			a := t.call(http.MethodPost, w.at(s, "claim"), doc{"instanceId": w.instance, "leaseSeconds": bad})
			t.check(a.status == 400, "with leaseSeconds %v %s", bad, a.says())
		}
	}},
	{"claim.not_ready", "A session that waits at a gate is refused with the gate.", "4.1", func(t *trial) {
		w := t.worker()
		e := t.refused(409, "not_ready", http.MethodPost, w.at(t.session(t.later()), "claim"), doc{"instanceId": w.instance})
		t.check(text(e, "gate") == "not_before", "the gate is %v", e["gate"])
		first := t.session()
		e = t.refused(409, "not_ready", http.MethodPost, w.at(t.session(doc{"after": first}), "claim"), doc{"instanceId": w.instance})
		t.check(text(e, "gate") == "after", "the gate is %v", e["gate"])
	}},
	{"claim.not_eligible", "A worker that doesn't fit is refused with the reason, and gets nothing from claim-next.", "4.1", func(t *trial) {
		w := t.worker(doc{"labels": []string{"other"}})
		e := t.refused(409, "worker_not_eligible", http.MethodPost, w.at(t.session(), "claim"), doc{"instanceId": w.instance})
		t.check(text(e, "gate") == "worker_labels", "the reason is %v", e["gate"])
		a := t.call(http.MethodPost, "claim-next", doc{"workerIds": []string{w.id}, "instanceId": w.instance})
		t.check(a.status == http.StatusNoContent, "%s", a.says())
	}},
	{"claim.worker_limit", "A worker gets no more claims than its maxConcurrent.", "4.1", func(t *trial) {
		w := t.worker(doc{"maxConcurrent": 1})
		c := w.running()
		e := t.refused(409, "worker_not_eligible", http.MethodPost, w.at(t.session(), "claim"), doc{"instanceId": w.instance})
		t.check(text(e, "gate") == "worker_full", "the reason is %v", e["gate"])
		c.do("complete")
		w.running()
	}},
	{"claim.terminal", "A session that has ended can't be claimed.", "4.1", func(t *trial) {
		w := t.worker()
		s := t.session()
		t.ok(http.MethodPost, "sessions/"+s+"/cancel", nil)
		t.refused(409, "session_terminal", http.MethodPost, w.at(s, "claim"), doc{"instanceId": w.instance})
	}},
	{"claim.fence_grows", "Each claim on a session has a greater fence than the one before, and another id.", "4.2", func(t *trial) {
		w := t.worker()
		s := t.session()
		last, ids := int64(0), map[string]bool{}
		for range 4 {
			c := w.claim(s)
			fence, _ := whole(c.doc, "fence")
			t.check(fence > last, "fence %d comes after %d", fence, last)
			t.check(!ids[c.id], "the claim id %s comes twice", c.id)
			last, ids[c.id] = fence, true
			c.do("release")
		}
	}},
	{"claim_next.best_first", "claim-next takes the highest priority first, then the oldest.", "4.2", func(t *trial) {
		w := t.worker()
		low, high, second := t.session(), t.session(doc{"priority": 5}), t.session()
		for _, want := range []string{high, low, second} {
			got := t.ok(http.MethodPost, "claim-next", doc{"workerIds": []string{w.id}, "instanceId": w.instance})
			t.check(text(got, "sessionId") == want, "of %s, with priority 5 %s, and %s it took %v, not %s", low, high, second, got["sessionId"], want)
		}
		a := t.call(http.MethodPost, "claim-next", doc{"workerIds": []string{w.id}, "instanceId": w.instance})
		t.check(a.status == http.StatusNoContent, "with nothing left %s", a.says())
	}},
	{"claim_next.same_request", "The same requestId is answered with the same claim.", "4.2", func(t *trial) {
		w := t.worker()
		t.session()
		t.session()
		in := doc{"workerIds": []string{w.id}, "instanceId": w.instance, "requestId": t.word("r")}
		one, two := t.ok(http.MethodPost, "claim-next", in), t.ok(http.MethodPost, "claim-next", in)
		t.check(text(one, "claimId") != "" && text(one, "claimId") == text(two, "claimId"), "one request got the claims %v and %v", one["claimId"], two["claimId"])
		other := t.ok(http.MethodPost, "claim-next", with(in, doc{"requestId": t.word("r")}))
		t.check(text(other, "claimId") != text(one, "claimId"), "another request got the same claim")
	}},
	{"claim_next.holds", "claim-next with wait is held until a session comes, and answers 204 when none does.", "4.2", func(t *trial) {
		w := t.worker()
		in := doc{"workerIds": []string{w.id}, "instanceId": w.instance, "wait": 1}
		a := t.call(http.MethodPost, "claim-next", in)
		t.check(a.status == http.StatusNoContent && a.took >= 900*time.Millisecond, "with nothing to claim, after %v %s", a.took, a.says())
		go func() {
			defer func() { _ = recover() }() // if the request gets nothing, it says so
			t.pause(300 * time.Millisecond)
			t.session()
		}()
		a = t.call(http.MethodPost, "claim-next", with(in, doc{"wait": 30}))
		t.check(a.status == http.StatusOK && a.took < 15*time.Second, "after %v %s", a.took, a.says())
	}},
}

var wireRules = []rule{
	{"wire.problems", "Every refusal is application/problem+json with its status, a code and a sentence.", "9.2", func(t *trial) {
		w := t.worker()
		s := t.session()
		for _, a := range []response{
			t.call(http.MethodPost, w.at(s, "claim"), `{"instanceId":`),
			t.call(http.MethodPost, w.at(s, "renew"), doc{"instanceId": w.instance}),
			t.call(http.MethodGet, "agents/"+url.PathEscape(t.word("nobody")), nil),
			t.call(http.MethodPost, w.at(s, "claim"), doc{"instanceId": "another"}),
			t.call(http.MethodPost, t.workersPath(), doc{"name": "", "instanceId": "x"}),
			t.call(http.MethodPost, w.at(s, "claim"), doc{"instanceId": w.instance}, func(r *http.Request) { r.Header.Del("Authorization") }),
			t.call(http.MethodPost, w.at(s, "claim"), "claim", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }),
		} {
			status, _ := whole(a.body, "status")
			t.check(a.status >= 400, "it has to be refused, but %s", a.says())
			t.check(a.header.Get("Content-Type") == "application/problem+json", "%s as %q", a.says(), a.header.Get("Content-Type"))
			t.check(int(status) == a.status && text(a.body, "code") != "" && text(a.body, "detail") != "", "%s", a.says())
		}
	}},
	{"wire.strict_json", "Unknown and repeated members of a body are refused, and nothing is done.", "9.2", func(t *trial) {
		w := t.worker()
		s := t.session()
		for _, body := range []string{
			`{"instanceId":"` + w.instance + `","colour":"red"}`, `{"instanceId":"` + w.instance + `","instanceId":"` + w.instance + `"}`,
			`{"InstanceId":"` + w.instance + `"}`, `[]`, `null`,
		} {
			a := t.call(http.MethodPost, w.at(s, "claim"), body)
			t.check(a.status == 400, "the body %s: %s", body, a.says())
		}
		t.wants(s, "queued")
	}},
	{"wire.needs_sign_in", "Without a token nothing is answered but 401.", "8.2", func(t *trial) {
		w := t.worker()
		nobody := func(r *http.Request) { r.Header.Del("Authorization") }
		for _, a := range []response{
			t.call(http.MethodPost, w.path()+"/heartbeat", doc{"instanceId": w.instance}, nobody),
			t.call(http.MethodGet, w.path()+"/sessions?instanceId="+w.instance, nil, nobody),
			t.call(http.MethodPost, "claim-next", doc{"workerIds": []string{w.id}, "instanceId": w.instance}, nobody),
		} {
			t.check(a.status == 401 && text(a.body, "code") == "unauthenticated", "%s", a.says())
		}
	}},
	{"wire.server_time", "Every answer to a write carries the server's time.", "14", func(t *trial) {
		c := t.worker().running()
		for _, a := range []response{
			t.call(http.MethodPost, c.verb("renew"), c.proof()),
			t.call(http.MethodPost, c.verb("activities"), c.proof(doc{"type": "progress", "text": "half"})),
			t.call(http.MethodPost, c.verb("complete"), c.proof()),
		} {
			_, err := time.Parse(time.RFC3339Nano, a.header.Get("Stint-Server-Time"))
			t.check(a.status/100 == 2 && err == nil, "%s with Stint-Server-Time %q", a.says(), a.header.Get("Stint-Server-Time"))
		}
	}},
}
