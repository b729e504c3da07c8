package engine_test

import (
	"regexp"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// What breaks a promise about time is named, with how far off it is.
func TestCheck_SaysWhatIsWrongWithALease(t *testing.T) {
	w := enginetest.Open(t)
	a := w.Agent(func(in *api.AgentInput) { in.MaxConcurrent = 2 })
	k := w.Worker(a, func(in *api.WorkerInput) { in.MaxConcurrent = 2 })
	long := k.Claim(w.New(a).ID)
	slow := w.New(a).ID
	k.Claim(slow)
	if _, err := w.CancelSession(t.Context(), w.Owner, slow, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	damage(t, w, "UPDATE claims SET expires_at = expires_at + 864000000000 WHERE session_id = "+number(long.SessionID),
		"UPDATE claims SET drain_by = drain_by + 864000000000 WHERE session_id = "+number(slow))
	w.Restart()
	found := must[[]engine.Violation](t)(w.Engine.Check(t.Context()))
	for rule, detail := range map[string]string{
		"no lease is longer than the longest":                          `^claim \d+ runs 86\d{4} s more$`,
		"a closed claim is drained before its worker would be offline": `^claim \d+ drains in 86\d{4} s$`,
	} {
		said := ""
		for _, v := range found {
			if v.Rule == rule {
				said = v.Detail
			}
		}
		if !regexp.MustCompile(detail).MatchString(said) {
			t.Errorf("that %q is broken is reported by %q", rule, said)
		}
	}
}
