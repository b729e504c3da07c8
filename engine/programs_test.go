package engine_test

import (
	"crypto/sha256"
	"encoding/base64"
	"testing"

	"stint/account"
	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// programFor signs a program that registered itself in for the owner.
func programFor(t *testing.T, w *enginetest.Fixture) (account.Identity, engine.Caller) {
	t.Helper()
	const there = "https://a.test/cb"
	client, err := w.Register(t.Context(), account.Registration{Name: "Assistant", Redirects: []string{there}}, from("192.0.2.9"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("verifier"))
	code, err := w.GiveCode(t.Context(), w.Me(), account.Grant{Client: client.ID, Redirect: there, Challenge: base64.RawURLEncoding.EncodeToString(sum[:])})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := w.TradeCode(t.Context(), account.Presented{Client: client.ID}, code, there, "verifier")
	if err != nil {
		t.Fatal(err)
	}
	return entered(t, w, tokens.Access)
}

func entered(t *testing.T, w *enginetest.Fixture, token string) (account.Identity, engine.Caller) {
	t.Helper()
	who, err := w.Authenticate(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	in, err := w.In(t.Context(), who, account.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	return who, in
}

// What a program that registered itself changes of what is executed is nobody's;
// the command line, which is ours, acts as the person who signed it in.
func TestRunSetBy_AProgramIsNobody(t *testing.T) {
	w := enginetest.New(t)
	_, cli := entered(t, w, w.Program().Access)
	_, program := programFor(t, w)
	a := w.Agent()
	for _, edit := range []struct {
		what string
		by   engine.Caller
		do   func(in *api.AgentInput)
		want api.UserID
	}{
		{"a command", program, func(in *api.AgentInput) { in.Run.Command = []string{"curl"} }, 0},
		{"a command by the command line", cli, func(in *api.AgentInput) { in.Run.Command = []string{"true"} }, w.Owner.UserID},
		{"a slug", program, func(in *api.AgentInput) { in.Slug = "renamed" }, 0},
		{"a slug by a person", w.Owner, func(in *api.AgentInput) { in.Slug = "mine" }, w.Owner.UserID},
	} {
		if _, err := w.EditAgent(t.Context(), edit.by, a.ID.String(), func(in *api.AgentInput) error { edit.do(in); return nil }); err != nil {
			t.Fatalf("%s: %v", edit.what, err)
		}
		if by := setBy(t, w, a); by != edit.want {
			t.Errorf("%s: set by %s", edit.what, by)
		}
	}
	in := engine.DefaultConfig().DefaultAgent()
	in.Slug, in.Run.Command = "made", []string{"true"}
	made, err := w.CreateAgent(t.Context(), program, in)
	if err != nil {
		t.Fatal(err)
	}
	if by := setBy(t, w, made); by != 0 {
		t.Errorf("an agent that a program made is set by %s", by)
	}
	if got, err := w.Engine.Agent(t.Context(), w.Owner, "made"); err != nil || got.RunSetBy != "" {
		t.Errorf("people are told that %q set it: %v", got.RunSetBy, err)
	}
}

// An approval takes a person: a program that registered itself may say
// things for them, and not yes. What else it may not do stands in the server's table.
func TestApproval_NotByAProgram(t *testing.T) {
	s := newTalk(t)
	_, program := programFor(t, s.w)
	yes := true
	p := s.ask(api.PromptInput{Kind: api.PromptApproval, Text: "Delete it?"})
	approve := func(by engine.Caller) error {
		_, err := s.w.AnswerPrompt(t.Context(), by, s.c.SessionID, api.AnswerInput{PromptID: p.ID, Answer: api.Answer{Approved: &yes}})
		return err
	}
	refusedWith(t, approve(program), api.CodeUserTokenRequired)
	if got := s.w.Get(s.c.SessionID); got.Status != api.AwaitingInput {
		t.Fatalf("it is %s after a refused answer", got.Status)
	}
	if err := approve(s.w.Owner); err != nil {
		t.Fatal(err)
	}
	q := s.ask(api.PromptInput{Kind: api.PromptText, Text: "Which one?"})
	if _, err := s.w.AnswerPrompt(t.Context(), program, s.c.SessionID, api.AnswerInput{PromptID: q.ID, Answer: api.Answer{Text: "the second"}}); err != nil {
		t.Errorf("it may not answer a question: %v", err)
	}
}

// A member leaves in person, and by no program.
func TestRemoveMember_NotByAProgram(t *testing.T) {
	w := enginetest.New(t)
	_, program := programFor(t, w)
	_, err := w.RemoveMember(t.Context(), program, program.UserID)
	refusedWith(t, err, api.CodeUserTokenRequired)
}
