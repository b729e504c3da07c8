package conformance

import (
	"net/http"
	"time"
)

// signal sends the worker a signal and returns the pending signal's id.
func (w worker) signal(kind string) string {
	got := w.t.ok(http.MethodPost, w.path()+"/control-signal", doc{"signal": kind})
	id := text(got, "worker.pendingSignal.id")
	w.t.check(id != "" && text(got, "worker.pendingSignal.signal") == kind, "after %s the pending signal is %v", kind, at(got, "worker.pendingSignal"))
	return id
}

func (w worker) acknowledge(id string) doc {
	return w.t.ok(http.MethodPost, w.path()+"/ack-control-signal", doc{"instanceId": w.instance, "signalId": id})
}

// told is the pending signal's id in each of the answers that carry it.
func (w worker) told() map[string]string {
	return map[string]string{
		"beat":   text(w.beat(), "worker.pendingSignal.id"),
		"poll":   text(w.t.ok(http.MethodGet, w.path()+"/sessions?instanceId="+w.instance, nil), "pendingSignal.id"),
		"record": text(w.t.ok(http.MethodGet, w.path(), nil), "pendingSignal.id"),
	}
}

var signalRules = []rule{
	{"signal.told_until_acknowledged", "A signal is told by every beat, poll and look at the record until it is acknowledged by its id.", "5.3", func(t *trial) {
		w := t.worker()
		for _, kind := range []string{"pause", "resume", "restart", "stop"} {
			id := w.signal(kind)
			for range 2 {
				for where, got := range w.told() {
					t.check(got == id, "the %s tells the signal %q, pending is %s", where, got, id)
				}
			}
			for range 2 { // the answer may have been lost
				w.acknowledge(id)
			}
			for where, got := range w.told() {
				t.check(got == "", "after the acknowledgement the %s tells %s", where, got)
			}
		}
	}},
	{"signal.newer_replaces", "A newer signal replaces the pending one.", "5.3", func(t *trial) {
		w := t.worker()
		first := w.signal("pause")
		second := w.signal("stop")
		t.check(first != second, "two signals have one id")
		for where, got := range w.told() {
			t.check(got == second, "the %s tells the signal %q, pending is %s", where, got, second)
		}
	}},
	{"signal.stale_acknowledgement", "An acknowledgement of any other signal than the pending one is refused, and leaves that pending.", "5.3", func(t *trial) {
		w := t.worker()
		first := w.signal("pause")
		second := w.signal("stop")
		t.refused(409, "stale_signal", http.MethodPost, w.path()+"/ack-control-signal", doc{"instanceId": w.instance, "signalId": first})
		for where, got := range w.told() {
			t.check(got == second, "the %s tells the signal %q, pending is %s", where, got, second)
		}
		w.acknowledge(second)
	}},
	{"signal.pause_holds", "A paused worker gets nothing, from the moment of the signal, until it is resumed; what it runs goes on.", "5.3", func(t *trial) {
		w := t.worker()
		c := w.running()
		s := t.session()
		w.signal("pause")
		e := t.refused(409, "worker_not_eligible", http.MethodPost, w.at(s, "claim"), doc{"instanceId": w.instance})
		t.check(text(e, "gate") == "worker_paused", "the reason is %v", e["gate"])
		a := t.call(http.MethodPost, "claim-next", doc{"workerIds": []string{w.id}, "instanceId": w.instance})
		t.check(a.status == http.StatusNoContent, "%s", a.says())
		c.do("renew")
		c.do("complete")
		w.acknowledge(w.signal("resume"))
		w.claim(s)
	}},
	{"signal.stop_ends_at_the_start", "A stopped worker gets nothing until it registers anew, which ends stopped and a pending stop.", "5.1", func(t *trial) {
		w := t.worker()
		s := t.session()
		w.signal("stop")
		t.refused(409, "worker_not_eligible", http.MethodPost, w.at(s, "claim"), doc{"instanceId": w.instance})
		next := worker{t: t, id: w.id, name: w.name, instance: t.word("boot")}
		got := t.ok(http.MethodPost, t.workersPath(), t.registration(w.name, next.instance, doc{"previousInstanceId": w.instance}))
		t.check(text(got, "worker.desiredState") == "running" && at(got, "worker.pendingSignal") == nil, "after the start it is to be %v, with %v pending", at(got, "worker.desiredState"), at(got, "worker.pendingSignal"))
		next.claim(s)
	}},
	{"signal.held_look", "A look at the record with wait is answered as soon as another signal is pending than the one that the worker knows.", "5.3", func(t *trial) {
		w := t.worker()
		known := w.signal("pause")
		sent := make(chan string, 1)
		go func() {
			defer close(sent)
			defer func() { _ = recover() }() // if the lookup finds nothing, it says so
			t.pause(300 * time.Millisecond)
			sent <- w.signal("resume")
		}()
		begun := time.Now()
		got := t.ok(http.MethodGet, w.path()+"?wait=30&instanceId="+w.instance+"&signal="+known, nil)
		took := time.Since(begun)
		t.check(text(got, "pendingSignal.id") == <-sent, "the held look answered %v", got["pendingSignal"])
		t.check(took >= 250*time.Millisecond && took < 15*time.Second, "it was held for %v", took)
	}},
}
