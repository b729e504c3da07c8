package engine_test

import (
	"errors"
	"slices"
	"testing"

	"stint/api"
	"stint/engine"
	"stint/engine/enginetest"
)

// A run says how its program thinks, in place of its agent, as far as the agent's type and its
// list of models let; a retry and a follow-up keep it.
func TestCreateSession_RunChoice(t *testing.T) {
	w := enginetest.New(t)
	create := func(agent string, choice api.RunChoice) (api.Session, []string) {
		t.Helper()
		s, _, err := w.CreateSession(t.Context(), w.Owner, agent, api.SessionInput{RunChoice: choice}, engine.Idempotency{})
		var fields []string
		if bad := (*api.Error)(nil); errors.As(err, &bad) {
			for _, f := range bad.Fields {
				fields = append(fields, f.Field)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		return s, fields
	}
	make := func(slug string, kind api.AgentType, run api.Run) {
		t.Helper()
		w.Agent(func(in *api.AgentInput) { in.Slug, in.Type, in.Run = slug, kind, run })
	}
	make("script", api.TypeCommand, api.Run{Command: []string{"true"}})
	make("claude", api.TypeClaudeCode, api.Run{Model: "sonnet", Models: []string{"haiku"}})
	make("codex", api.TypeCodex, api.Run{})
	for _, c := range []struct {
		agent  string
		choice api.RunChoice
		fields []string
	}{
		{"script", api.RunChoice{Model: "x", Effort: "low", PlanMode: true}, []string{"model", "effort", "planMode"}},
		{"claude", api.RunChoice{Model: "haiku", Effort: "max", PlanMode: true}, nil},
		{"claude", api.RunChoice{Model: "sonnet"}, nil},
		{"claude", api.RunChoice{Model: "opus", Effort: "extreme"}, []string{"effort", "model"}},
		{"codex", api.RunChoice{Model: "anything/at-all", Effort: "minimal"}, nil},
		{"codex", api.RunChoice{Model: "--dangerous", Effort: "Very High"}, []string{"model", "effort"}},
	} {
		s, fields := create(c.agent, c.choice)
		if !slices.Equal(fields, c.fields) || len(fields) == 0 && s.RunChoice != c.choice {
			t.Errorf("%s with %+v: %+v, refused %q", c.agent, c.choice, s.RunChoice, fields)
		}
	}
	want := api.RunChoice{Model: "haiku", Effort: "low", PlanMode: true}
	s, _ := create("claude", want)
	if _, err := w.CancelSession(t.Context(), w.Owner, s.ID, api.CancelInput{}); err != nil {
		t.Fatal(err)
	}
	again, err := w.RetrySession(t.Context(), w.Owner, s.ID)
	if err != nil || again.Session.RunChoice != want {
		t.Errorf("a retry has %+v, %v", again.Session.RunChoice, err)
	}
	if over := (api.RunChoice{Effort: "low"}).Over(api.RunChoice{Model: "m", Effort: "high", PlanMode: true}); over != (api.RunChoice{Model: "m", Effort: "low", PlanMode: true}) {
		t.Errorf("a run over its agent is %+v", over)
	}
}
