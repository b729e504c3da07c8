package conformance

import (
	"net/http"
	"slices"
	"strings"
)

var workerRules = []rule{
	{"register.makes_a_record", "A first registration answers 201 with the record, online and to run, and the pace of beats.", "5.1", func(t *trial) {
		a := t.call(http.MethodPost, t.workersPath(), t.registration(t.word("w"), t.word("boot")))
		t.check(a.status == http.StatusCreated, "%s", a.says())
		for path, want := range map[string]string{"worker.state": "online", "worker.desiredState": "running", "worker.agentId": t.agent()} {
			t.check(text(a.body, path) == want, "%s is %v, not %s", path, at(a.body, path), want)
		}
		beat, ok := whole(a.body, "beatSeconds")
		t.check(ok && beat > 0, "beatSeconds is %v", a.body["beatSeconds"])
		offline, ok := whole(a.body, "offlineAfterSeconds")
		t.check(ok && offline > beat, "offlineAfterSeconds is %v with beats every %d", a.body["offlineAfterSeconds"], beat)
		t.serverTime(a.body)
	}},
	{"register.finds_by_name", "A process that names its previous instance gets the same record with 200.", "5.1", func(t *trial) {
		w := t.worker()
		a := t.call(http.MethodPost, t.workersPath(), t.registration(w.name, t.word("boot"), doc{"previousInstanceId": w.instance}))
		t.check(a.status == http.StatusOK && text(a.body, "worker.id") == w.id, "%s; the record is %s", a.says(), w.id)
	}},
	{"register.refuses_a_second_process", "A second process under the name of a live one is refused unless it proves to follow it.", "5.1", func(t *trial) {
		w := t.worker()
		for _, proof := range []doc{{}, {"previousInstanceId": t.word("boot")}} {
			t.refused(409, "worker_running", http.MethodPost, t.workersPath(), t.registration(w.name, t.word("boot"), proof))
		}
		w.beat()
	}},
	{"register.takes_claims_over", "A process that follows another takes its live claims over, with their ids.", "5.1", func(t *trial) {
		w := t.worker()
		c := w.running()
		next := worker{t: t, id: w.id, name: w.name, instance: t.word("boot")}
		got := t.ok(http.MethodPost, t.workersPath(), t.registration(w.name, next.instance, doc{"previousInstanceId": w.instance}))
		t.check(slices.ContainsFunc(list(got, "claims"), func(d doc) bool { return text(d, "claimId") == c.id }), "the claim %s is not handed over: %v", c.id, got["claims"])
		c.worker = next
		c.do("renew")
		c.do("complete")
	}},
	{"register.supersedes", "Every call of a process that another has followed is refused.", "5.1", func(t *trial) {
		w := t.worker()
		c := w.running()
		t.ok(http.MethodPost, t.workersPath(), t.registration(w.name, t.word("boot"), doc{"previousInstanceId": w.instance}))
		const code = "instance_superseded"
		t.refused(409, code, http.MethodPost, w.path()+"/heartbeat", doc{"instanceId": w.instance})
		t.refused(409, code, http.MethodGet, w.path()+"/sessions?instanceId="+w.instance, nil)
		t.refused(409, code, http.MethodPost, w.at(t.session(), "claim"), doc{"instanceId": w.instance})
		t.refused(409, code, http.MethodPost, "claim-next", doc{"workerIds": []string{w.id}, "instanceId": w.instance})
		t.refused(409, code, http.MethodPost, c.verb("renew"), c.proof())
		t.refused(409, code, http.MethodPost, c.verb("complete"), c.proof())
		t.wants(c.session, "active")
	}},
	{"register.deleted_id", "A record that was deleted is not made anew for a process that still has its id.", "5.2", func(t *trial) {
		w := t.worker()
		t.ok(http.MethodDelete, w.path(), nil)
		t.refused(404, "not_found", http.MethodPost, t.workersPath(), t.registration(w.name, t.word("boot"), doc{"workerId": w.id}))
	}},
	{"beat.renews", "A beat renews each claim that it lists, and says so, and what became of the others.", "4.4", func(t *trial) {
		w := t.worker()
		one, other := w.running(), w.running()
		before := t.expiry(t.look(other.session))
		t.pause(shortly)
		got := w.beat(doc{"claimIds": []string{one.id, "clm_nonsense"}})
		claims := list(got, "claims")
		t.check(len(claims) == 2, "two claims were listed and the beat answers for %d", len(claims))
		t.check(text(claims[0], "claimId") == one.id && text(claims[0], "state") == "renewed", "of a live claim the beat says %v", claims[0])
		t.check(text(claims[1], "state") == "lost", "of a claim that never was the beat says %v", claims[1])
		t.check(t.expiry(t.look(one.session)).After(t.expiry(one.doc)), "the beat didn't move the lease that it calls renewed")
		t.check(t.expiry(t.look(other.session)).Equal(before), "the beat moved a lease that it didn't list")
	}},
	{"beat.of_another_worker", "A beat renews no claim of another worker.", "4.4", func(t *trial) {
		c := t.worker().running()
		t.pause(shortly)
		got := list(t.worker().beat(doc{"claimIds": []string{c.id}}), "claims")
		t.check(len(got) == 1 && text(got[0], "state") == "lost", "of another's claim the beat says %v", got)
		t.check(t.expiry(t.look(c.session)).Equal(t.expiry(c.doc)), "the beat moved another worker's lease")
	}},
	{"beat.tells_cancel_and_stop", "A beat tells of a claim whose session was cancelled, and of one that is asked to stop.", "2.5", func(t *trial) {
		w := t.worker()
		cancelled, stopped := w.running(), w.running()
		t.ok(http.MethodPost, "sessions/"+cancelled.session+"/cancel", nil)
		t.ok(http.MethodPost, "sessions/"+stopped.session+"/stop", nil)
		claims := list(w.beat(doc{"claimIds": []string{cancelled.id, stopped.id}}), "claims")
		t.check(len(claims) == 2, "two claims were listed and the beat answers for %d", len(claims))
		t.check(text(claims[0], "state") == "cancelled", "of a cancelled session's claim the beat says %v", claims[0])
		t.check(text(claims[1], "state") == "stop_requested", "of a claim that is asked to stop the beat says %v", claims[1])
		lease := stopped.do("renew")
		t.check(lease["stopRequested"] == true, "the renewal doesn't tell of the stop: %v", lease)
	}},
	{"beat.coarse_facts", "A beat or registration that tells more than coarse facts is refused with 422.", "5.2", func(t *trial) {
		w := t.worker()
		for _, fact := range []doc{{"hostname": "annas-laptop"}, {"user": "anna"}, {"platform": "/home/anna"}, {"version": strings.Repeat("x", 500)}} {
			t.refused(422, "invalid", http.MethodPost, w.path()+"/heartbeat", with(doc{"instanceId": w.instance}, fact))
		}
		t.refused(422, "invalid", http.MethodPost, t.workersPath(), t.registration(t.word("w"), t.word("boot"), doc{"hostname": "annas-laptop"}))
	}},
	{"beat.leaves_no_trace", "Beats write no activity and no event.", "5.2", func(t *trial) {
		w := t.worker()
		c := w.running()
		trace := func() int {
			return len(list(t.ok(http.MethodGet, "sessions/"+c.session+"/events?limit=200", nil), "items")) +
				len(list(t.ok(http.MethodGet, "sessions/"+c.session+"/activities?limit=200", nil), "items"))
		}
		before := trace()
		for range 5 {
			w.beat(doc{"claimIds": []string{c.id}})
		}
		t.check(trace() == before, "five beats left %d entries", trace()-before)
	}},
	{"beat.goodbye", "A beat that says goodbye makes the worker offline at once and frees its sessions.", "5.2", func(t *trial) {
		w := t.worker()
		c := w.running()
		w.beat(doc{"goodbye": true})
		got := t.ok(http.MethodGet, w.path(), nil)
		t.check(text(got, "state") == "offline", "after its goodbye the worker is %v", got["state"])
		t.wants(c.session, "stale")
		w.beat(doc{"drained": []string{c.id}})
		t.worker().claim(c.session)
	}},
	{"delete.is_404_from_then_on", "A worker that was deleted is told so by 404, and its sessions are free at once.", "5.2", func(t *trial) {
		w := t.worker()
		c := w.running()
		t.ok(http.MethodDelete, w.path(), nil)
		t.refused(404, "not_found", http.MethodPost, w.path()+"/heartbeat", doc{"instanceId": w.instance})
		t.refused(404, "not_found", http.MethodGet, w.path()+"/sessions?instanceId="+w.instance, nil)
		t.wants(c.session, "stale")
	}},
	{"worker.edits_stay", "What a person changes of a record stays when the process registers again.", "5.1", func(t *trial) {
		w := t.worker()
		t.ok(http.MethodPatch, w.path(), doc{"maxConcurrent": 3, "name": t.word("renamed")})
		got := t.ok(http.MethodPost, t.workersPath(), t.registration(w.name, t.word("boot"), doc{"previousInstanceId": w.instance, "workerId": w.id}))
		most, _ := whole(got, "worker.maxConcurrent")
		t.check(text(got, "worker.id") == w.id && most == 3 && strings.HasPrefix(text(got, "worker.name"), "renamed"), "after the registration the record is %v", got["worker"])
	}},
}
