package engine_test

import (
	"context"
	"slices"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A list with as many members as before is a change like any other, even when the merge writes
// into the list that it is given, as a JSON decoder does: it is stored, counted as a version,
// and says who set what is executed.
func TestEditAgent_ListsOfTheSameLength(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) {
		in.Type, in.Run.Command, in.Run.Env = api.TypeClaudeCode, nil, []string{"ONE"}
		in.Run.Rules = []api.RunRule{{Area: "shell", Ruling: "allow"}}
	})
	b := w.Agent(func(in *api.AgentInput) { in.Run.Command = []string{"echo", "a"} })
	_, other := joined(t, w, api.Admin, "eve")
	for _, edit := range []struct {
		what  string
		agent api.Agent
		merge func(in *api.AgentInput)
		done  func(run api.Run) bool
	}{
		{"rules", a, func(in *api.AgentInput) { in.Run.Rules[0].Ruling = "deny" }, func(run api.Run) bool { return run.Rules[0].Ruling == "deny" }},
		{"env", a, func(in *api.AgentInput) { in.Run.Env[0] = "TWO" }, func(run api.Run) bool { return slices.Equal(run.Env, []string{"TWO"}) }},
		{"command", b, func(in *api.AgentInput) { in.Name, in.Run.Command[1] = "Other", "b" }, func(run api.Run) bool { return run.Command[1] == "b" }},
	} {
		was, err := w.Engine.Agent(context.Background(), w.Owner, edit.agent.Slug)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.EditAgent(context.Background(), other, edit.agent.Slug, func(in *api.AgentInput) error { edit.merge(in); return nil }); err != nil {
			t.Fatal(err)
		}
		got, err := w.Engine.Agent(context.Background(), w.Owner, edit.agent.Slug)
		if err != nil {
			t.Fatal(err)
		}
		if !edit.done(got.Run) || got.Version != was.Version+1 {
			t.Errorf("%s: version %d after %d has %+v", edit.what, got.Version, was.Version, got.Run)
		}
		if got.RunSetBy != other.Name {
			t.Errorf("%s: it is said to be set by %q", edit.what, got.RunSetBy)
		}
	}
}

// A refused edit leaves no trace, whatever was written into the copy before.
func TestEditAgent_RefusedChangesNothing(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent(func(in *api.AgentInput) { in.Run.Command = []string{"echo", "a"} })
	_, err := w.EditAgent(context.Background(), w.Owner, a.Slug, func(in *api.AgentInput) error {
		in.Run.Command[1], in.TimeZone = "b", "Mars/Base"
		return nil
	})
	wantCode(t, err, api.CodeInvalid)
	got, err := w.Engine.Agent(context.Background(), w.Owner, a.Slug)
	if err != nil || !slices.Equal(got.Run.Command, []string{"echo", "a"}) {
		t.Errorf("after a refused edit it runs %q: %v", got.Run.Command, err)
	}
}

// setBy is who, according to the worker's claim, set what it executes for an agent.
func setBy(t *testing.T, w *enginetest.Fixture, a api.Agent) api.UserID {
	t.Helper()
	k := w.Worker(a)
	c := k.Claim(w.New(a).ID)
	if _, err := k.Complete(c, ""); err != nil {
		t.Fatal(err)
	}
	return c.Trusted.RunSetBy
}

// Whoever gives an agent another slug separates it from the settings that a worker's owner
// keeps for it: from then on it is set by that person.
func TestRunSetBy_ANewSlugIsSetByWhoGaveIt(t *testing.T) {
	w, _ := withOwner(t)
	_, eve := joined(t, w, api.Admin, "eve")
	a := w.Agent()
	edit := func(c engine.Caller, change func(in *api.AgentInput)) {
		t.Helper()
		if _, err := w.EditAgent(t.Context(), c, a.ID.String(), func(in *api.AgentInput) error { change(in); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	edit(eve, func(in *api.AgentInput) { in.Name, in.Priority = "Other", 3 })
	if by := setBy(t, w, a); by != w.Owner.UserID {
		t.Errorf("after another name it is set by %s", by)
	}
	edit(eve, func(in *api.AgentInput) { in.Slug = "renamed" })
	if by := setBy(t, w, a); by != eve.UserID {
		t.Errorf("after another slug it is set by %s", by)
	}
	edit(w.Owner, func(in *api.AgentInput) { in.Slug = "mine-again" })
	if by := setBy(t, w, a); by != w.Owner.UserID {
		t.Errorf("after its owner's slug it is set by %s", by)
	}
}

// A lease that no claim would be given is refused, and so is a slug whose page is another's.
func TestCreateAgent_WhatCouldNotBeKeptIsRefused(t *testing.T) {
	w := enginetest.New(t)
	for field, change := range map[string]func(*api.AgentInput){
		"slug":         func(in *api.AgentInput) { in.Slug = "new" },
		"leaseSeconds": func(in *api.AgentInput) { in.LeaseSeconds = 4*3600 + 1 },
	} {
		in := engine.DefaultConfig().DefaultAgent()
		in.Slug, in.Run.Command = "fine", []string{"true"}
		change(&in)
		_, err := w.CreateAgent(t.Context(), w.Owner, in)
		if refused := wantCode(t, err, api.CodeInvalid); len(refused.Fields) != 1 || refused.Fields[0].Field != field {
			t.Errorf("%s: %+v", field, refused)
		}
	}
}
