//go:build agents

package worker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"stint/account"
	"stint/api"
	"stint/worker/agent/agenttest"
	"stint/worker/setup"
)

// night lets the coordinator's clock come to three o'clock, and returns the session that the
// schedule made.
func (w *fixture) night(a api.Agent) api.SessionID {
	w.Helper()
	now := time.Now().Add(time.Duration(w.ahead.Load())).UTC()
	three := time.Date(now.Year(), now.Month(), now.Day(), 3, 0, 1, 0, time.UTC)
	if !three.After(now) {
		three = three.Add(24 * time.Hour)
	}
	w.ahead.Add(int64(three.Sub(now)))
	var made api.SessionID
	w.eventually("the schedule makes a session", func() bool {
		_, err := w.engine.Tick(w.Context(), time.Now().Add(time.Duration(w.ahead.Load())))
		w.must(err)
		list, err := w.client.Sessions(w.Context(), api.SessionFilter{Agent: a.Slug}, api.Page{})
		w.must(err)
		if newest := list.Items[0]; newest.TriggeredBy == api.ByScheduler && !newest.CreatedAt.Before(three.Add(-time.Minute)) {
			made = newest.ID
		}
		return made != 0
	})
	return made
}

// What its owner approved from now on runs at night with nobody there; another argument asks, what
// was taken back asks, and nobody else's answer becomes a rule.
func TestReal_WhatWasApprovedRunsAtNight(t *testing.T) {
	every(t, func(t *testing.T, w *fixture, r real) {
		m := agenttest.NewModel(t, r.shell("touch made"), agenttest.Say("asked"))
		a, o := r.agent(w, m, nil)
		w.must(os.MkdirAll(filepath.Join(o.StateDir, "setup"), 0o700))
		w.start(o)
		made := filepath.Join(a.Run.WorkFolder, "made")
		day := w.untilStatus(w.trigger(a, "Please tidy."), api.AwaitingInput)
		if n := len(day.Prompted.Action.Standing); n == 0 {
			t.Fatalf("it proposes nothing for %q", day.Prompted.Action.What)
		}
		yes := true
		w.answer(day, api.Answer{Approved: &yes, Standing: day.Prompted.Action.Standing[0]})
		w.untilStatus(day.ID, api.Complete)
		rules, err := setup.Find(o.StateDir).Approvals("real")
		if err != nil || len(rules) != 1 || !exists(made) {
			t.Fatalf("the rules are %+v, %v", rules, err)
		}
		w.must(os.Remove(made))
		_, err = w.client.EditAgent(t.Context(), a.Slug, map[string]any{"schedule": "0 3 * * *", "timeZone": "UTC", "prompt": "Please tidy."})
		w.must(err)

		m.Then(r.shell("touch made"), agenttest.Say("unasked"))
		first := w.night(a)
		if s := w.untilStatus(first, api.Complete); s.Result != "unasked" || !exists(made) {
			t.Errorf("at night it said %q, and did it: %v", s.Result, exists(made))
		}
		w.decided(first, "The standing approval "+rules[0].ID+" allowed")

		m.Then(r.shell("touch other"), agenttest.Say("refused"))
		second := w.untilStatus(w.night(a), api.AwaitingInput)
		admin, err := w.accounts.In(t.Context(), account.Identity{UserID: w.me.UserID, Name: w.me.Name}, account.DefaultWorkspace)
		w.must(err)
		admin.UserID, admin.Role = w.me.UserID+1, api.Admin
		in := api.AnswerInput{PromptID: second.Prompted.ID, Answer: api.Answer{Approved: &yes, Standing: second.Prompted.Action.Standing[0]}}
		if _, err := w.engine.AnswerPrompt(t.Context(), admin, second.ID, in); api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("somebody else answers: %v", err)
		}
		w.answer(second, approve(false))
		w.untilStatus(second.ID, api.Complete)
		if now, err := setup.Find(o.StateDir).Approvals("real"); err != nil || len(now) != 1 || exists(filepath.Join(a.Run.WorkFolder, "other")) {
			t.Errorf("after another argument the rules are %+v, %v", now, err)
		}

		_, err = w.client.RemoveApproval(t.Context(), a.ID, w.workerOf(a), rules[0].ID)
		w.must(err)
		w.untilListed(a, "it is removed", func(all []api.StandingApproval) bool { return len(all) == 0 })
		w.must(os.Remove(made))
		m.Then(r.shell("touch made"), agenttest.Say("refused again"))
		third := w.untilStatus(w.night(a), api.AwaitingInput)
		w.answer(third, approve(false))
		if w.untilStatus(third.ID, api.Complete); exists(made) {
			t.Error("what was taken back was done")
		}
	})
}
