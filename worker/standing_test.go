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
	if gone, err := files.Revoke("nightly", all[0].ID); err != nil || len(gone) != 1 {
		t.Fatalf("took back %+v, %v", gone, err)
	}
	w.answer(w.untilStatus(w.trigger(a, "!ask git push origin release"), api.AwaitingInput), approve(false))
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
