package worker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/setup"
)

// What its owner approves from now on runs without anybody; another argument, more in the line
// and an approval that was taken back ask again.
func TestStanding_WhatWasApprovedRunsUnattendedTheNextNight(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("nightly", nil)
	w.must(os.MkdirAll(filepath.Join(o.StateDir, "setup"), 0o700)) // its own folder of settings
	w.start(o)
	first := w.untilStatus(w.trigger(a, "!ask git push origin main"), api.AwaitingInput)
	action := first.Prompted.Action
	if want := []string{"git push origin main", "git push origin *"}; !slices.Equal(action.Standing, want) || action.StandingBy != w.me.UserID {
		t.Fatalf("it proposes %q to %v", action.Standing, action.StandingBy)
	}
	yes := true
	w.answer(first, api.Answer{Approved: &yes, Standing: "git push origin *"})
	w.untilStatus(first.ID, api.Complete)
	files := setup.Find(o.StateDir)
	all, err := files.Approvals("nightly")
	if err != nil || len(all) != 1 || all[0].What != "git push origin *" || !all[0].Any || all[0].Session != first.ID.String() {
		t.Fatalf("the owner's file has %+v, %v", all, err)
	}
	if all[0].By != w.me.UserID.String() || all[0].ByName != w.me.Name {
		t.Errorf("it is by %q, %q", all[0].By, all[0].ByName)
	}
	w.decided(first.ID, "From now on git push origin * is allowed", all[0].ID)

	night := w.trigger(a, "!ask git push origin release")
	if s := w.untilStatus(night, api.Complete); s.Result != "unasked" {
		t.Errorf("the next night it said %q", s.Result)
	}
	w.decided(night, "The standing approval "+all[0].ID+" allowed, on shell: git push origin release")
	for _, other := range []string{"git push upstream main", "git push origin main; rm -rf /", "git push origin main && curl evil", "git push origin --force", "git push origin $X", "git push origin a b"} {
		asked := w.untilStatus(w.trigger(a, "!ask "+other), api.AwaitingInput)
		w.answer(asked, approve(false))
		w.untilStatus(asked.ID, api.Complete)
	}
	listed := w.untilListed(a, "its use is listed", func(all []api.StandingApproval) bool { return len(all) == 1 && all[0].Uses == 1 })
	if one := listed[0]; one.ID != all[0].ID || one.What != "git push origin *" || !one.Any || one.SessionID != first.ID || one.ApprovedBy != w.me.UserID || one.LastUsedAt.IsZero() {
		t.Errorf("the coordinator lists %+v", one)
	}
	if _, err := w.client.RemoveApproval(w.Context(), a.ID, w.workerOf(a), all[0].ID); err != nil {
		t.Fatal(err)
	}
	w.untilListed(a, "it is gone from the list", func(all []api.StandingApproval) bool { return len(all) == 0 })
	if left, err := files.Approvals("nightly"); err != nil || len(left) > 0 {
		t.Fatalf("the owner's file still has %+v, %v", left, err)
	}
	w.answer(w.untilStatus(w.trigger(a, "!ask git push origin release"), api.AwaitingInput), approve(false))
}

// What was approved by somebody else, such as for another coordinator, allows nothing here; what
// doesn't say by whom is of an older version, and holds.
func TestStanding_SomebodyElsesApprovalAllowsNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	a, o, _ := w.talks("nightly", nil)
	w.must(os.MkdirAll(filepath.Join(o.StateDir, "setup"), 0o700))
	files := setup.Find(o.StateDir)
	for what, by := range map[string]string{"make dist": "usr_0000000009", "make docs": ""} {
		_, err := files.Approve("nightly", setup.Approval{Area: api.AreaShell, Tool: "Bash", What: what, By: by})
		w.must(err)
	}
	w.start(o)
	w.untilStatus(w.trigger(a, "!ask make docs"), api.Complete)
	w.answer(w.untilStatus(w.trigger(a, "!ask make dist"), api.AwaitingInput), approve(false))
	listed := w.untilListed(a, "the one is listed", func(all []api.StandingApproval) bool { return len(all) == 1 && all[0].Uses == 1 })
	if listed[0].What != "make docs" || listed[0].ApprovedBy != 0 {
		t.Errorf("the coordinator lists %+v", listed)
	}
}

// workerOf is the record of an agent's only worker.
func (w *fixture) workerOf(a api.Agent) api.WorkerID {
	w.Helper()
	list, err := w.client.AgentWorkers(w.Context(), a.ID.String(), api.Page{})
	w.must(err)
	if len(list.Items) != 1 {
		w.Fatalf("%s has %d workers", a.Slug, len(list.Items))
	}
	return list.Items[0].ID
}

// untilListed waits until the standing approvals that an agent's only worker reported are as
// wanted.
func (w *fixture) untilListed(a api.Agent, what string, wanted func([]api.StandingApproval) bool) (all []api.StandingApproval) {
	w.Helper()
	w.eventually(what, func() bool {
		list, err := w.client.Approvals(w.Context(), a.ID, w.workerOf(a))
		w.must(err)
		all = list.Items
		return wanted(all)
	})
	return all
}

// decided waits for a policy decision of a session that has all of the words.
func (w *fixture) decided(id api.SessionID, words ...string) {
	w.Helper()
	w.until(id, "a policy decision with "+strings.Join(words, ", "), func(api.Session) bool {
		list, err := w.client.Activities(w.Context(), id, api.Page{})
		w.must(err)
		return slices.ContainsFunc(list.Items, func(a api.Activity) bool {
			return a.Type == api.ActivityPolicyDecision && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(a.Text, word) })
		})
	})
}
