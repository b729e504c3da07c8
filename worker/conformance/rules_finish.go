package conformance

import (
	"net/http"
	"time"
)

var finishRules = []rule{
	{"finish.complete", "Complete ends the session with its result; the same again is answered 200.", "4.5", func(t *trial) {
		c := t.worker().running()
		body := doc{"result": "fine", "outcome": "done", "usage": doc{"turns": 3}}
		for range 3 {
			got := c.do("complete", body)
			t.check(text(got, "session.status") == "complete", "complete answered the session %v", at(got, "session.status"))
		}
		got := t.look(c.session)
		t.check(text(got, "result") == "fine" && text(got, "outcome") == "done", "the result is %v, the outcome %v", got["result"], got["outcome"])
		_, ended := instant(got, "endedAt")
		t.check(ended, "endedAt is %v", got["endedAt"])
	}},
	{"finish.another_outcome", "After one outcome another is refused and changes nothing.", "4.5", func(t *trial) {
		c := t.worker().running()
		c.do("complete", doc{"result": "fine"})
		t.refused(409, "outcome_conflict", http.MethodPost, c.verb("fail"), c.proof(doc{"code": "X"}))
		t.refused(409, "outcome_conflict", http.MethodPost, c.verb("release"), c.proof())
		t.refused(409, "outcome_conflict", http.MethodPost, c.verb("complete"), c.proof(doc{"result": "better"}))
		got := t.look(c.session)
		t.check(text(got, "status") == "complete" && text(got, "result") == "fine", "the session is %v with the result %v", got["status"], got["result"])
	}},
	{"finish.fail", "Fail ends the session in error, with the code and the message.", "4.5", func(t *trial) {
		c := t.worker().running()
		for range 2 {
			c.do("fail", doc{"code": "AGENT_EXIT_NONZERO", "message": "exit 3"})
		}
		got := t.look(c.session)
		t.check(text(got, "status") == "error" && text(got, "error.code") == "AGENT_EXIT_NONZERO" && text(got, "error.message") == "exit 3", "the session is %v with %v", got["status"], got["error"])
	}},
	{"finish.release", "Release gives the session back, claimable at once; with notBefore it waits.", "4.5", func(t *trial) {
		w := t.worker()
		c := w.running()
		for range 2 {
			c.do("release", doc{"reason": "busy"})
		}
		t.wants(c.session, "queued")
		c = w.claim(c.session)
		c.do("release", t.later())
		got := t.look(c.session)
		t.check(text(got, "status") == "pending" && text(got, "waitingFor.code") == "not_before", "the session is %v and waits for %v", got["status"], got["waitingFor"])
	}},
	{"finish.ends_the_claim", "After its finish a claim writes nothing any more.", "2.2", func(t *trial) {
		c := t.worker().running()
		c.do("complete")
		before := t.state(c.session)
		for _, write := range writes[:5] {
			a := t.call(write.method, c.verb(write.verb), c.proof(write.body))
			t.check(a.status == 409, "%s", a.says())
		}
		t.check(t.state(c.session) == before, "an ended session changed from %v to %v", before, t.state(c.session))
	}},
	{"finish.claims_the_next", "A finish may claim the next session in the same request.", "4.5", func(t *trial) {
		w := t.worker()
		c := w.running()
		next := t.session()
		got := c.do("complete", doc{"claimNext": doc{"workerIds": []string{w.id}, "requestId": t.word("r")}})
		t.check(text(got, "claim.sessionId") == next && text(got, "claim.claimId") != "", "with %s waiting the finish answered the claim %v", next, got["claim"])
		t.wants(next, "active")
	}},
	{"cancel.ends_the_claim", "Cancel is terminal at once, and the holder's writes are refused.", "2.5", func(t *trial) {
		c := t.worker().running()
		t.ok(http.MethodPost, "sessions/"+c.session+"/cancel", nil)
		e := t.refused(409, "claim_not_active", http.MethodPost, c.verb("renew"), c.proof())
		t.check(text(e, "sessionStatus") == "cancelled", "the refusal says that the session is %v", e["sessionStatus"])
		t.refused(409, "claim_not_active", http.MethodPost, c.verb("complete"), c.proof())
		t.wants(c.session, "cancelled")
	}},
	{"stop.waits_for_the_holder", "Stop leaves a running session to its holder, who may still complete it.", "2.5", func(t *trial) {
		c := t.worker().running()
		t.ok(http.MethodPost, "sessions/"+c.session+"/stop", nil)
		t.wants(c.session, "active")
		c.do("complete", doc{"outcome": "stopped_by_user"})
		t.wants(c.session, "complete")
	}},
}

var lapseRules = []rule{
	{"lapse.frees_the_session", "A lease that isn't renewed lapses: another worker claims the session, nobody has to do anything.", "4.6", func(t *trial) {
		c := t.worker().running(t.short())
		c.lapse()
		again := t.worker().claim(c.session)
		was, _ := whole(c.doc, "fence")
		now, _ := whole(again.doc, "fence")
		t.check(now > was, "the fence was %d and is %d", was, now)
	}},
	{"lapse.waits_for_a_claim", "A session is refused while its lease runs, and granted to the first who asks when that is over.", "4.1", func(t *trial) {
		c := t.worker().running(t.short())
		w := t.worker()
		ask := func() response {
			return t.call(http.MethodPost, w.at(c.session, "claim"), doc{"instanceId": w.instance})
		}
		a := ask()
		t.check(a.status == 409 && text(a.body, "code") == "already_claimed", "%s", a.says())
		t.within(time.Duration(t.kit.lease)*time.Second+graceLimit, "the claim is granted", func() bool {
			a = ask()
			return a.status == http.StatusOK
		})
		now, end := t.serverTime(a.body), t.expiry(c.doc)
		t.check(!now.Before(end), "a lease until %v was taken away at %v", end, now)
	}},
	{"lapse.cannot_be_renewed", "A lapsed lease can't be renewed.", "4.4", func(t *trial) {
		c := t.worker().running(t.short())
		c.lapse()
		t.refused(409, "claim_not_active", http.MethodPost, c.verb("renew"), c.proof())
		claims := list(c.beat(doc{"claimIds": []string{c.id}}), "claims")
		t.check(len(claims) == 1 && text(claims[0], "state") == "lost", "of a lapsed claim the beat says %v", claims)
	}},
	{"lapse.refuses_the_late_writer", "Once another worker has the session, the one before writes nothing, and is told who holds it.", "4.3", func(t *trial) {
		late := t.worker().running(t.short())
		late.lapse()
		c := t.worker().claim(late.session)
		t.refuseAll(late.worker, late.session, 409, "claim_not_active", late.proof())
		e := t.refused(409, "claim_not_active", http.MethodPost, late.verb("complete"), late.proof(doc{"result": "late"}))
		t.check(text(e, "holder") == c.name, "the holder is %s, and said to be %v", c.name, e["holder"])
		c.do("complete", doc{"result": "in time"})
		t.check(text(t.look(c.session), "result") == "in time", "the result is %v", t.look(c.session)["result"])
	}},
	{"lapse.keeps_the_late_result", "A result that comes too late is kept on the thread, once, and not applied.", "10.8", func(t *trial) {
		late := t.worker().running(t.short())
		late.lapse()
		c := t.worker().claim(late.session)
		c.do("complete", doc{"result": "in time"})
		path := "threads/" + text(late.doc, "session.threadId") + "/late-results"
		for range 2 {
			t.ok(http.MethodPost, path, late.proof(doc{"result": "late"}))
		}
		stored := 0
		for _, item := range list(t.ok(http.MethodGet, "sessions/"+late.session+"/items?after=0", nil), "items") {
			if text(item, "kind") == "late_result" {
				stored++
			}
		}
		t.check(stored == 1, "the late result was sent twice and is there %d times", stored)
		t.check(text(t.look(c.session), "result") == "in time", "the late result was applied")
	}},
	{"lapse.handed_in_again", "The last holder may claim a lapsed session again to finish it, also where the agent is paused.", "4.1", func(t *trial) {
		w := t.worker()
		c := w.running(t.short())
		c.lapse()
		t.ok(http.MethodPost, "agents/"+t.agent()+"/pause", doc{})
		w.beat(doc{"drained": []string{c.id}})
		other := t.worker()
		t.refused(409, "not_ready", http.MethodPost, other.at(c.session, "claim"), doc{"instanceId": other.instance})
		w.claim(c.session, doc{"finishOf": c.id}).do("complete", doc{"result": "done"})
		t.wants(c.session, "complete")
	}},
}
