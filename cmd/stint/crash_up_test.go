package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/worker/proc"
)

// TestKill_UpLeavesNoAgentAndLosesNoSession kills coordinator and worker, one
// process, with SIGKILL while commands run (contract 4.7, 10.7, 14).
func TestKill_UpLeavesNoAgentAndLosesNoSession(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h := newHome(t)
	w := probes{h, t.TempDir()}
	p := h.serve(shortClocks, "up")
	c := p.client(nil)
	ways := map[string][]string{
		"steady": w.command(polite, 40), "quick": w.command(polite, 3), "deaf": w.command(deaf, 40), escaping: w.command(escaping, 30),
	}
	for slug, command := range ways {
		_, err := c.CreateAgent(t.Context(), map[string]any{
			"slug": slug, "leaseSeconds": 6, "run": map[string]any{"command": command, "workFolder": t.TempDir()},
		})
		h.must(err)
	}
	var all []api.SessionID
	var longest time.Duration
	kill := func() { // while something runs that hasn't been killed yet, if there is such a thing
		before := w.last(all)
		h.until("an agent runs", func() bool { return w.last(all) > before || allEnded(t, c, all) })
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond) // to a random moment
		p.kill()
		p.killed()
		if bad := p.complaints(); len(bad) > 0 {
			t.Errorf("it logged\n%s", strings.Join(bad, "\n"))
		}
		dead := proc.BootNow()
		if r.IntN(2) == 0 {
			w.nobody()
			outlived := w.last(all).Sub(dead)
			longest = max(longest, outlived)
			if limit := hastyStages().Total(); outlived > limit {
				t.Errorf("an agent outlived its worker by %v, and not at most %v", outlived, limit)
			}
		}
		p = h.serve(shortClocks, "up")
		c = p.client(nil)
	}
	n := (kills(t, 10) + 1) / 2
	for round := range n {
		for slug := range ways {
			s, _, err := c.CreateSession(t.Context(), slug, api.SessionInput{Prompt: new(fmt.Sprintf("round %d", round))}, "")
			h.must(err)
			all = append(all, s.ID)
		}
		kill() // no session is killed three times, which would be one too many
		kill()
		h.until("all sessions end", func() bool { return allEnded(t, c, all) })
	}
	for _, id := range all {
		w.apart(id)
		endedOnce(t, c, w, id)
	}
	p.stop()
	w.nobody()
	h.sound(h.data().database())
	t.Logf("%d kills, %d sessions; the longest that an agent outlived its worker was %v", 2*n, len(all), longest)
}

// allEnded reports whether all sessions have ended.
func allEnded(t *testing.T, c *api.Client, all []api.SessionID) bool {
	t.Helper()
	open, err := c.Sessions(t.Context(), api.SessionFilter{
		Statuses: []api.Status{api.Pending, api.Queued, api.Active, api.AwaitingInput, api.Stale},
	}, api.Page{})
	if err != nil {
		t.Fatal(err)
	}
	return len(open.Items) == 0 && len(all) > 0
}

// endedOnce requires a session to be complete, with the result of one process that ended by
// itself, and its outcome to say whether that process left something running (contract 15.4).
func endedOnce(t *testing.T, c *api.Client, w probes, id api.SessionID) {
	t.Helper()
	s, err := c.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	spans := w.spans(id)
	outcome := "success"
	if s.AgentSlug == escaping {
		outcome = api.OutcomeUnfinished
	}
	if s.Status != api.Complete || s.Outcome != outcome || len(spans) == 0 {
		t.Fatalf("session %s (%s) ended as %s, %q and not %q (%+v), with %+v", id, s.AgentSlug, s.Status, s.Outcome, outcome, s.Error, spans)
	}
	var fence int64
	if _, err := fmt.Sscanf(s.Result, "begun %d\ndone %d", &fence, &fence); err != nil {
		t.Fatalf("session %s has the result %q: %v", id, s.Result, err)
	}
	found := false
	for _, one := range spans {
		found = found || one.fence == fence && one.ended == 1
	}
	if last := spans[len(spans)-1]; !found || last.fence != fence {
		t.Errorf("session %s has the result of fence %d, and ran as %+v", id, fence, spans)
	}
	if got := printed(t, c, id); !strings.HasSuffix(got, s.Result) && !strings.HasSuffix(got, s.Result+"\n") {
		t.Errorf("session %s has the result %q and printed %q", id, s.Result, got)
	}
	events, err := c.SessionEvents(t.Context(), id, api.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	completed := 0
	for _, e := range events.Items {
		if e.Type == "session_complete" {
			completed++
		}
	}
	if completed != 1 {
		t.Errorf("session %s was completed %d times", id, completed)
	}
}
