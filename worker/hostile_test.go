package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stint/api"
	"stint/worker/workertest"
)

// hostileClaims are what a foreign coordinator, or somebody in between, may make of a claim.
// None may have an effect on this machine. contract 10.2
func hostileClaims() map[string]func(claim, trusted, run map[string]any) {
	return map[string]func(claim, trusted, run map[string]any){
		"another-user":      func(_, t, _ map[string]any) { t["runSetBy"] = api.UserID(9).String() },
		"nobody":            func(_, t, _ map[string]any) { delete(t, "runSetBy") },
		"empty-user":        func(_, t, _ map[string]any) { t["runSetBy"] = "" },
		"codex":             func(_, t, _ map[string]any) { t["type"] = "codex" },
		"no-type":           func(_, t, _ map[string]any) { delete(t, "type") },
		"shell-type":        func(_, t, _ map[string]any) { t["type"] = "shell" },
		"relative":          func(_, _, r map[string]any) { r["workFolder"] = "." },
		"no-folder":         func(_, _, r map[string]any) { delete(r, "workFolder") },
		"file-url":          func(_, _, r map[string]any) { r["workFolder"] = "file:///tmp" },
		"no-command":        func(_, _, r map[string]any) { r["command"] = []string{} },
		"empty-command":     func(_, _, r map[string]any) { r["command"] = []string{""} },
		"nul-command":       func(_, _, r map[string]any) { r["command"] = []string{"touch\x00", "/tmp/x"} },
		"nul-argument":      func(_, _, r map[string]any) { r["command"] = []string{"touch", "a\x00b"} },
		"token-env":         func(_, _, r map[string]any) { r["env"] = []string{"STINT_TOKEN"} },
		"assigned-env":      func(_, _, r map[string]any) { r["env"] = []string{"LD_PRELOAD=/tmp/x.so"} },
		"lapsed":            func(c, _, _ map[string]any) { c["leaseExpiresAt"] = "2001-01-01T00:00:00Z" },
		"no-lease":          func(c, _, _ map[string]any) { delete(c, "leaseExpiresAt") },
		"no-time":           func(c, _, _ map[string]any) { delete(c, "serverTime") },
		"offline-at-once":   func(c, _, _ map[string]any) { c["offlineAfterSeconds"] = 0 },
		"offline-in-past":   func(c, _, _ map[string]any) { c["offlineAfterSeconds"] = -9e15 },
		"somebodys-worker":  func(c, _, _ map[string]any) { c["workerId"] = api.WorkerID(9).String() },
		"folder-is-program": func(_, _, r map[string]any) { r["workFolder"] = "/bin/sh" },
	}
}

func TestHostile_ForgedClaimsHaveNoEffect(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	canaries := t.TempDir()
	forgeries := hostileClaims()
	w.proxy.Rule(func(call string, _ int) workertest.Fault {
		if call != "POST claim-next" {
			return workertest.Fault{}
		}
		return workertest.Fault{Rewrite: func(body []byte) []byte {
			var claim map[string]any
			if json.Unmarshal(body, &claim) != nil || claim["trusted"] == nil {
				return body
			}
			trusted := claim["trusted"].(map[string]any)
			forge := forgeries[trusted["agentSlug"].(string)]
			if forge == nil {
				return body
			}
			forge(claim, trusted, trusted["run"].(map[string]any))
			out, err := json.Marshal(claim)
			if err != nil {
				return body
			}
			return out
		}}
	})
	ids := map[string]api.SessionID{}
	for name := range forgeries {
		a := w.agent(name, "touch", filepath.Join(canaries, name))
		ids[name] = w.trigger(a, "")
	}
	o := w.options()
	o.Clocks.Beat = 20 * time.Second // so many records would keep a slow machine busy with beats
	w.start(o)
	for name, id := range ids {
		w.until(id, name+" claimed", func(s api.Session) bool { return s.Fence > 0 })
	}
	// The worker is unharmed.
	w.untilStatus(w.trigger(w.agent("honest", "touch", filepath.Join(canaries, "honest")), ""), api.Complete)
	left, err := os.ReadDir(canaries)
	w.must(err)
	for _, f := range left {
		if f.Name() != "honest" {
			t.Errorf("%s had an effect", f.Name())
		}
	}
	s := w.until(ids["another-user"], "over", func(s api.Session) bool { return s.Status.Terminal() })
	if s.Error == nil || s.Error.Code != CodePolicyBlocked {
		t.Errorf("a run block of somebody else ended with %+v", s.Error)
	}
	acts, err := w.client.Activities(t.Context(), ids["another-user"], api.Page{})
	w.must(err)
	blocked := false
	for _, a := range acts.Items {
		blocked = blocked || a.Type == api.ActivityPolicyDecision
	}
	if !blocked {
		t.Errorf("no policy_decision among %+v", acts.Items)
	}
}

func TestHostile_NonsenseAnswersAreWaitedOut(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	nonsense := []string{"null", "[]", "<html>", `{"claimId":"x"`, `{"sessionId":"wrk_"}`, `{}`, `{"items":[{}]}`, `"ok"`, ""}
	calls := []string{"POST claim-next", "POST workers", "POST heartbeat", "POST renew", "POST complete", "GET whoami", "GET workspaces", "GET agents"}
	w.proxy.Rule(func(call string, n int) workertest.Fault {
		i := slices.Index(calls, call)
		if i < 0 || n >= 3 {
			return workertest.Fault{}
		}
		return workertest.Fault{Rewrite: func([]byte) []byte { return []byte(nonsense[(i+n)%len(nonsense)]) }}
	})
	runs := filepath.Join(t.TempDir(), "runs")
	a := w.agent("steady", "sh", "-c", fmt.Sprintf("echo run >>%s", runs))
	id := w.trigger(a, "")
	w.start(w.options())
	w.untilStatus(id, api.Complete)
	if n := countLines(t, runs); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}
