package engine_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

func TestLanding_AForgottenWorkerIsAskedNothing(t *testing.T) {
	c := changed(t, api.LandMerge)
	c.put(c.report("one", "a.go"))
	c.end()
	l := c.ask(api.LandInput{Verb: api.VerbMerge})
	if err := c.DeleteWorker(context.Background(), c.Owner, c.k.ID); err != nil {
		t.Fatal(err)
	}
	got := c.see()
	if got.Landing.ID != l.ID || got.Landing.State != api.LandRefused || len(got.Verbs) > 0 || !strings.Contains(got.Why, "forgotten") {
		t.Errorf("got %+v", got)
	}
	c.Check()
}

// A request that waits is refused when whoever made it loses the right to it. What its worker had
// begun before, it may still answer.
func TestLanding_AskedByWhoMayNoLonger(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode api.Mode
		to   api.Role // "" = none
		over bool
	}{
		{"an admin becomes a member, cloud", api.Cloud, api.Member, true},
		{"an admin becomes an owner, cloud", api.Cloud, api.Owner, false},
		{"an admin leaves, cloud", api.Cloud, "", true},
		{"an admin becomes a member, local", api.Local, api.Member, false},
		{"an admin becomes a viewer, local", api.Local, api.Viewer, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := withOwner(t)
			who, ben := joined(t, w, api.Admin, "ben")
			owner := w.Owner
			if tt.mode == api.Local {
				w.Owner = ben // of agent, session and worker
			}
			c := changedIn(w, api.LandMerge, func(in *api.AgentInput) { in.Mode = tt.mode })
			c.put(c.report("one", "a.go"))
			c.end()
			l, err := c.RequestLanding(t.Context(), ben, c.claim.SessionID, api.LandInput{Verb: api.VerbMerge})
			if err != nil {
				t.Fatal(err)
			}
			if tt.to != "" {
				_, err = w.SetRole(t.Context(), owner, who.UserID, tt.to)
			} else {
				_, err = w.RemoveMember(t.Context(), owner, who.UserID)
			}
			if err != nil {
				t.Fatal(err)
			}
			asked, err := c.Worker0()
			if err != nil || (asked.Landing == nil) != tt.over {
				t.Errorf("the worker is asked for %+v, %v", asked.Landing, err)
			}
			got := c.see().Landing
			if want := map[bool]api.LandState{true: api.LandRefused, false: api.LandPending}[tt.over]; got.State != want || (got.Code == api.LandRightLost) != tt.over {
				t.Errorf("it is %+v", got)
			}
			if tt.over && got.Detail != "ben asked for this, and may no longer land these changes." {
				t.Errorf("it says %q", got.Detail)
			}
			if _, err := c.tell(l, api.LandReport{State: api.LandRefused, LandOutcome: api.LandOutcome{Code: api.LandRightLost}}); api.CodeOf(err) != api.CodeInvalid {
				t.Errorf("a worker says so: %v", err)
			}
			done, err := c.tell(l, api.LandReport{State: api.LandDone, LandOutcome: api.LandOutcome{Commit: "cccc"}})
			if err != nil || done.State != api.LandDone || done.Commit != "cccc" || done.Code != "" {
				t.Errorf("the worker had begun it: %+v, %v", done, err)
			}
			c.Check()
		})
	}
}

// A right that went without its requests, as in a directory of an earlier version, is missed where
// the worker asks.
func TestLanding_NoWorkerIsAskedByWhoMayNot(t *testing.T) {
	w, _ := withOwner(t)
	who, ben := joined(t, w, api.Admin, "ben")
	c := changedIn(w, api.LandMerge, func(in *api.AgentInput) { in.Mode = api.Cloud })
	c.put(c.report("one", "a.go"))
	c.end()
	if _, err := c.RequestLanding(t.Context(), ben, c.claim.SessionID, api.LandInput{Verb: api.VerbMerge}); err != nil {
		t.Fatal(err)
	}
	if asked, err := c.Worker0(); err != nil || asked.Landing == nil {
		t.Errorf("the worker is asked for %+v, %v", asked.Landing, err)
	}
	damage(t, w, "UPDATE members SET role = 'member' WHERE user_id = "+strconv.FormatInt(int64(who.UserID), 10))
	if asked, err := c.Worker0(); err != nil || asked.Landing != nil {
		t.Errorf("the worker is asked for %+v, %v", asked.Landing, err)
	}
}

// Each worker has a workspace of its own for a conversation: what waits in one isn't another's,
// and is landed there.
func TestLanding_EachWorkersWorkspaceWaitsForItself(t *testing.T) {
	c := changed(t, api.LandMerge, func(in *api.AgentInput) {
		in.Mode, in.Type, in.Run.Command = api.Cloud, api.TypeClaudeCode, nil
	})
	one := *c
	c.put(c.report("one", "a.go"))
	c.end()
	goOn := func(k *enginetest.Worker) *change {
		t.Helper()
		posted, err := c.PostMessage(t.Context(), c.Owner, c.claim.SessionID, api.MessageInput{Text: "Go on."})
		if err != nil {
			t.Fatal(err)
		}
		next := *c
		next.k, next.claim = k, k.Claim(posted.Session.ID)
		next.put(next.report("next", "b.go"))
		next.end()
		return &next
	}
	two := goOn(c.Worker(c.agent, func(in *api.WorkerInput) { in.Land, in.Types = api.LandMerge, []api.AgentType{c.agent.Type} }))
	if a, b := one.see(), two.see(); !a.Waits || !b.Waits || c.unlanded() != 2 || !slices.Contains(a.Verbs, api.VerbMerge) || !slices.Contains(b.Verbs, api.VerbMerge) {
		t.Errorf("of two workers wait %v (%v, %s) and %v (%v, %s)", a.Waits, a.Verbs, a.Why, b.Waits, b.Verbs, b.Why)
	}
	three := goOn(c.k)
	if a, b, d := one.see(), two.see(), three.see(); a.Waits || !b.Waits || !d.Waits || c.unlanded() != 2 || !strings.Contains(a.Why, "A later session") {
		t.Errorf("after the first worker went on wait %v (%s), %v and %v", a.Waits, a.Why, b.Waits, d.Waits)
	}
	if _, err := one.tell(two.ask(api.LandInput{Verb: api.VerbMerge}), api.LandReport{State: api.LandDone}); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("the other worker answers: %v", err)
	}
	c.Check()
}
