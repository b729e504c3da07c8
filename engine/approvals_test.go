package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"stint/api"
)

// What a worker reports is listed for its owner alone, and stays until it reports otherwise,
// whatever was asked.
func TestApprovals_AreTheWorkersOwnersAlone(t *testing.T) {
	s := newTalk(t)
	ctx, k := context.Background(), s.k
	one, two := api.Approval{ID: "ok-one", Area: api.AreaShell, Tool: "Bash", What: "make", Uses: 1}, api.Approval{ID: "ok-two", Area: api.AreaShell, Tool: "Bash", What: "git push origin *", Any: true}
	report := func(state string, all ...api.Approval) error {
		return s.w.ReportApprovals(ctx, k.Caller, k.ID, api.ApprovalsReport{InstanceID: k.Instance, State: state, Approvals: all})
	}
	before, err := s.w.LastEvent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second changes nothing
		if err := report("both", one, two); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if got, err := s.w.RemoveApproval(ctx, s.w.Owner, k.ID, "ok-two"); err != nil || got.RemovalRequestedAt.IsZero() || got.Words == "" {
			t.Fatalf("asked for the removal: %+v, %v", got, err)
		}
	}
	beat, err := s.w.Beat(ctx, k.Caller, k.ID, api.Beat{InstanceID: k.Instance})
	if err != nil || beat.Approvals.State != "both" || !slices.Equal(beat.Approvals.Remove, []string{"ok-two"}) {
		t.Errorf("the beat says %+v, %v", beat.Approvals, err)
	}
	one.Uses = 5
	if err := report("used", one, two); err != nil { // it has not removed it yet
		t.Fatal(err)
	}
	list, err := s.w.Approvals(ctx, s.w.Owner, k.ID)
	if err != nil || len(list.Items) != 2 || list.Items[0].Uses != 5 || list.Items[1].RemovalRequestedAt.IsZero() {
		t.Errorf("the list is %+v, %v", list, err)
	}
	admin := s.w.Colleague("Olga", "admin")
	if _, err := s.w.Approvals(ctx, admin, k.ID); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("an admin lists them: %v", err)
	}
	if _, err := s.w.RemoveApproval(ctx, admin, k.ID, "ok-one"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("an admin removes one: %v", err)
	}
	if page, err := s.w.WorkerPageOf(ctx, admin, k.ID); err != nil || page.Mine || len(page.Approvals) > 0 {
		t.Errorf("an admin sees %+v, %v", page.Approvals, err)
	}
	if err := report("one", one); err != nil {
		t.Fatal(err)
	}
	if _, err := s.w.RemoveApproval(ctx, s.w.Owner, k.ID, "ok-two"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("removed again: %v", err)
	}
	var kinds []string
	events, err := s.w.Events(ctx, s.w.Owner, before, 1000)
	for _, e := range events {
		kinds = append(kinds, fmt.Sprintf("%s %s", e.Type, e.Data["approval"]))
	}
	want := []string{"standing_approval_given ok-one", "standing_approval_given ok-two", "standing_approval_removal_requested ok-two", "standing_approval_removed ok-two"}
	if err != nil || !slices.Equal(kinds, want) {
		t.Errorf("the events are %q, %v", kinds, err)
	}
}

func TestApprovals_WhatIsReportedIsChecked(t *testing.T) {
	s := newTalk(t)
	for name, c := range map[string]struct {
		state string
		all   []api.Approval
		field string
	}{
		"no state":       {"", []api.Approval{{ID: "a"}}, "state"},
		"no name":        {"x", []api.Approval{{}}, "approvals[0].id"},
		"twice the name": {"x", []api.Approval{{ID: "a"}, {ID: "a"}}, "approvals[1].id"},
		"many":           {"x", make([]api.Approval, api.MaxApprovals+1), "approvals"},
		"a long act":     {"x", []api.Approval{{ID: "a", What: string(make([]byte, 5000))}}, "approvals[0].what"},
	} {
		err := s.w.ReportApprovals(context.Background(), s.k.Caller, s.k.ID, api.ApprovalsReport{InstanceID: s.k.Instance, State: c.state, Approvals: c.all})
		var refused *api.Error
		if !errors.As(err, &refused) || len(refused.Fields) == 0 || refused.Fields[0].Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}
