package engine_test

import (
	"context"
	"strings"
	"testing"

	"stint/api"
)

// Only the owner of the worker approves for the future, only what the question proposes, and
// only with a yes; anybody who may answer still approves once.
func TestPrompt_OnlyTheWorkersOwnerApprovesFromNowOn(t *testing.T) {
	s := newTalk(t)
	ask := api.PromptInput{Kind: api.PromptApproval, Text: "git push origin main", Action: &api.AskedAction{
		Area: "shell", Tool: "Bash", What: "git push origin main", Standing: []string{"git push origin main", "git push origin *"}, StandingBy: 7,
	}}
	p := s.ask(ask)
	if p.Action.StandingBy != s.w.Owner.UserID {
		t.Errorf("%v may approve it from now on", p.Action.StandingBy)
	}
	for name, c := range map[string]struct {
		answer api.Answer
		field  string
	}{
		"something else":  {api.Answer{Approved: yes(), Standing: "git push *"}, "standing"},
		"with a refusal":  {api.Answer{Approved: no(), Standing: "git push origin *"}, "standing"},
		"without a yes":   {api.Answer{Standing: "git push origin *"}, "approved standing"},
		"all of it at it": {api.Answer{Approved: yes(), Standing: "*"}, "standing"},
	} {
		_, err := s.answer(p, c.answer)
		if got := fields(t, err); got != c.field {
			t.Errorf("%s: %s", name, got)
		}
	}
	other := s.w.Colleague("Olga", "admin")
	_, err := s.w.AnswerPrompt(context.Background(), other, s.c.SessionID, api.AnswerInput{PromptID: p.ID, Answer: api.Answer{Approved: yes(), Standing: "git push origin *"}})
	if api.CodeOf(err) != api.CodeForbidden && api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("another person's answer: %v", err)
	}
	if _, err := s.answer(p, api.Answer{Approved: yes(), Standing: "git push origin *"}); err != nil {
		t.Fatal(err)
	}
	got, err := s.w.AwaitAnswer(context.Background(), s.w.Owner, s.c.SessionID, p.ID, s.c.ClaimID, 0)
	if err != nil || got.Answer.Standing != "git push origin *" || got.ClosedBy != s.w.Owner.UserID.String() {
		t.Errorf("the worker gets %+v by %s, %v", got.Answer, got.ClosedBy, err)
	}
	many := ask
	many.Action = &api.AskedAction{Area: "shell", What: "x", Standing: strings.Split("abcde", "")}
	if _, err := s.patch(func(in *api.SessionPatch) { in.Status, in.Prompt = api.AwaitingInput, &many }); fields(t, err) != "prompt.action.standing" {
		t.Errorf("five proposals: %v", err)
	}
}
