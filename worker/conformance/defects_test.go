package conformance_test

import (
	"maps"
	"net/http"
	"strings"
	"time"
)

// defects are the broken coordinators. It is a constant table.
var defects = []defect{
	{
		name: "lets a second process in", rule: "register.refuses_a_second_process",
		in: func(m *memory, k *talk) {
			if k.method != http.MethodPost || k.verb != "workers" {
				return
			}
			name := textOf(k.sent, "name")
			if last := m.texts[name]; last != "" {
				k.sent["previousInstanceId"] = last
			}
			m.texts[name] = textOf(k.sent, "instanceId")
		},
	},
	{
		name: "forgets the claims of the process before", rule: "register.takes_claims_over",
		out: func(_ *memory, k *talk) {
			if k.verb == "workers" && k.answer["claims"] != nil {
				k.answer["claims"] = []any{}
			}
		},
	},
	{
		name: "answers a former process", rule: "register.supersedes",
		in: func(m *memory, k *talk) {
			if k.verb == "workers" {
				m.texts["name "+textOf(k.sent, "name")] = textOf(k.sent, "instanceId")
			}
			if k.verb == "heartbeat" && m.texts["worker "+k.worker] != "" {
				k.sent["instanceId"] = m.texts["worker "+k.worker]
			}
		},
		out: func(m *memory, k *talk) {
			if w := inner(k.answer, "worker"); k.verb == "workers" && w != nil {
				m.texts["worker "+textOf(w, "id")] = m.texts["name "+textOf(w, "name")]
			}
		},
	},
	{
		name: "makes a deleted record anew", rule: "register.deleted_id",
		in: func(_ *memory, k *talk) {
			if k.verb == "workers" && k.sent != nil {
				delete(k.sent, "workerId")
			}
		},
	},
	{
		name: "calls every claim renewed", rule: "beat.tells_cancel_and_stop",
		out: func(_ *memory, k *talk) {
			if k.verb == "heartbeat" {
				each(k.answer, "claims", func(c object) { c["state"] = "renewed" })
			}
		},
	},
	{
		name: "renews nothing by a beat", rule: "beat.renews",
		in: func(m *memory, k *talk) {
			if k.verb != "heartbeat" {
				return
			}
			m.seen[textOf(k.sent, "instanceId")] = object{"claimIds": k.sent["claimIds"]}
			delete(k.sent, "claimIds")
		},
		out: func(m *memory, k *talk) {
			if k.verb != "heartbeat" {
				return
			}
			var claims []any
			ids, _ := m.seen[textOf(k.sent, "instanceId")]["claimIds"].([]any)
			for _, id := range ids {
				state := "renewed"
				if id == "clm_nonsense" {
					state = "lost"
				}
				claims = append(claims, object{"claimId": id, "state": state})
			}
			k.answer["claims"] = claims
		},
	},
	{
		name: "takes any fact", rule: "beat.coarse_facts",
		in: func(_ *memory, k *talk) {
			if k.verb == "heartbeat" || k.verb == "workers" {
				for _, fact := range []string{"hostname", "user", "platform", "version"} {
					delete(k.sent, fact)
				}
			}
		},
	},
	{
		name: "answers the beats of a deleted worker", rule: "delete.is_404_from_then_on",
		out: func(_ *memory, k *talk) {
			if k.verb == "heartbeat" && k.status == http.StatusNotFound {
				instead(k, object{"claims": []any{}})
			}
		},
	},
	{
		name: "lists what waits as claimable", rule: "poll.lists",
		out: func(_ *memory, k *talk) {
			each(k.answer, "items", func(item object) {
				if item["claimable"] != nil {
					item["claimable"] = true
				}
			})
		},
	},
	{
		name: "mixes trusted and untrusted", rule: "claim.answer",
		out: func(_ *memory, k *talk) {
			if trusted := inner(k.answer, "trusted"); trusted != nil {
				trusted["prompt"] = inner(k.answer, "untrusted")["prompt"]
			}
		},
	},
	{
		name: "lets two win", rule: "claim.race_has_one_winner",
		out: func(m *memory, k *talk) {
			switch {
			case k.verb != "claim":
			case k.status == http.StatusOK:
				m.seen[k.session] = k.answer
			case code(k) == "already_claimed" && m.seen[k.session] != nil:
				instead(k, maps.Clone(m.seen[k.session]))
			}
		},
	},
	{
		name: "names no holder", rule: "claim.race_has_one_winner",
		out: func(_ *memory, k *talk) { delete(k.answer, "holder") },
	},
	{
		name: "grants leases of any length", rule: "claim.lease_bounds",
		out: func(_ *memory, k *talk) {
			if k.answer["cappedToMax"] == true && k.verb == "claim" {
				delete(k.answer, "cappedToMax")
				k.answer["leaseExpiresAt"] = time.Now().Add(2000 * time.Hour).UTC().Format(time.RFC3339)
			}
		},
	},
	{
		name: "has one fence for all", rule: "claim.fence_grows",
		out: func(_ *memory, k *talk) {
			if k.answer["fence"] != nil {
				k.answer["fence"] = 1
			}
		},
	},
	{
		name: "knows no priority", rule: "claim_next.best_first",
		in: func(_ *memory, k *talk) { delete(k.sent, "priority") },
	},
	{
		name: "claims anew for the same request", rule: "claim_next.same_request",
		in: func(_ *memory, k *talk) { delete(k.sent, "requestId") },
	},
	{
		name: "holds no request", rule: "claim_next.holds",
		in: func(_ *memory, k *talk) { delete(k.sent, "wait") },
	},
	{
		name: "shortens a lease by renewing it", rule: "renew.moves_the_end",
		out: func(_ *memory, k *talk) {
			if k.verb == "renew" && k.status == http.StatusOK {
				k.answer["leaseExpiresAt"] = time.Now().Add(10 * time.Second).UTC().Format(time.RFC3339)
			}
		},
	},
	{
		name: "extends without end", rule: "extend.adds_and_caps",
		out: func(_ *memory, k *talk) {
			if k.verb == "extend" && k.answer["cappedToMax"] == true {
				delete(k.answer, "cappedToMax")
				delete(k.answer, "maxLeaseSeconds")
			}
		},
	},
	{
		name: "finds the claim by itself", rule: "write.needs_a_claim",
		in: func(m *memory, k *talk) {
			if k.sent != nil && k.sent["claimId"] == nil && m.texts[k.session] != "" && k.verb != "claim" {
				k.sent["claimId"] = m.texts[k.session]
			}
		},
		out: func(m *memory, k *talk) {
			if k.verb == "claim" {
				m.texts[k.session] = textOf(k.answer, "claimId")
			}
		},
	},
	{
		name: "takes any claim id for the live one", rule: "write.needs_its_own_claim",
		in: func(m *memory, k *talk) {
			if k.sent["claimId"] != nil && m.texts[k.session] != "" {
				k.sent["claimId"] = m.texts[k.session]
			}
		},
		out: func(m *memory, k *talk) {
			if k.verb == "claim" {
				m.texts[k.session] = textOf(k.answer, "claimId")
			}
		},
	},
	{
		name: "doubles items that are sent again", rule: "items.once_in_order",
		in: func(_ *memory, k *talk) { each(k.sent, "items", func(item object) { delete(item, "clientId") }) },
	},
	{
		name: "doubles activities that are sent again", rule: "activities.once",
		in: func(_ *memory, k *talk) {
			if k.verb == "activities" {
				delete(k.sent, "key")
			}
		},
	},
	{
		name: "takes a second answer", rule: "question.is_answered_once",
		out: func(_ *memory, k *talk) {
			if code(k) == "prompt_closed" {
				instead(k, object{})
			}
		},
	},
	{
		name: "closes a parked question", rule: "question.parks",
		in: func(_ *memory, k *talk) { delete(k.sent, "park") },
	},
	{
		name: "refuses a finish that is sent again", rule: "finish.complete",
		out: func(m *memory, k *talk) {
			if k.verb != "complete" || k.status != http.StatusOK {
				return
			}
			if m.count[k.session]++; m.count[k.session] > 1 {
				k.status = http.StatusConflict
			}
		},
	},
	{
		name: "takes another outcome", rule: "finish.another_outcome",
		out: func(_ *memory, k *talk) {
			if code(k) == "outcome_conflict" {
				instead(k, object{})
			}
		},
	},
	{
		name: "leaves a cancelled session to its holder", rule: "cancel.ends_the_claim",
		out: func(_ *memory, k *talk) {
			if k.answer["sessionStatus"] == "cancelled" && k.verb == "renew" {
				instead(k, object{})
			}
		},
	},
	{
		name: "frees no lapsed session", rule: "lapse.frees_the_session",
		in: func(_ *memory, k *talk) {
			if k.verb == "claim" {
				k.sent["leaseSeconds"] = 600
			}
		},
	},
	{
		name: "takes the word of a late writer", rule: "lapse.refuses_the_late_writer",
		out: func(_ *memory, k *talk) {
			if code(k) == "claim_not_active" && k.verb == "complete" {
				instead(k, object{})
			}
		},
	},
	{
		name: "keeps a late result each time", rule: "lapse.keeps_the_late_result",
		out: func(_ *memory, k *talk) {
			if k.verb != "items" || k.method != http.MethodGet {
				return
			}
			items, _ := k.answer["items"].([]any)
			for _, item := range items {
				if o, ok := item.(object); ok && o["kind"] == "late_result" {
					items = append(items, o)
				}
			}
			k.answer["items"] = items
		},
	},
	{
		name: "tells a signal once", rule: "signal.told_until_acknowledged",
		out: func(m *memory, k *talk) {
			for _, o := range []object{k.answer, inner(k.answer, "worker")} {
				sig := inner(o, "pendingSignal")
				if sig == nil || k.verb == "control-signal" {
					continue
				}
				if m.count[textOf(sig, "id")]++; m.count[textOf(sig, "id")] > 1 {
					delete(o, "pendingSignal")
				}
			}
		},
	},
	{
		name: "takes any acknowledgement", rule: "signal.stale_acknowledgement",
		out: func(_ *memory, k *talk) {
			if code(k) == "stale_signal" {
				instead(k, object{})
			}
		},
	},
	{
		name: "goes on after a pause", rule: "signal.pause_holds",
		in: func(_ *memory, k *talk) {
			if k.verb == "control-signal" && k.sent["signal"] == "pause" {
				k.sent["signal"] = "restart"
			}
		},
		out: func(_ *memory, k *talk) {
			for _, o := range []object{k.answer, inner(k.answer, "worker")} {
				if sig := inner(o, "pendingSignal"); sig != nil && sig["signal"] == "restart" {
					sig["signal"] = "pause"
				}
			}
		},
	},
	{
		name: "refuses in HTML", rule: "wire.problems",
		out: func(_ *memory, k *talk) {
			if k.status >= 400 {
				k.header.Set("Content-Type", "text/html")
			}
		},
	},
	{
		name: "overlooks unknown members", rule: "wire.strict_json",
		in: func(_ *memory, k *talk) { delete(k.sent, "colour") },
	},
	{
		name: "tells no time", rule: "wire.server_time",
		out: func(_ *memory, k *talk) {
			if !strings.HasPrefix(k.verb, "agt_") {
				k.header.Del("Stint-Server-Time")
			}
		},
	},
}
