package engine_test

import (
	"strings"
	"testing"

	"stint/api"
	"stint/engine/enginetest"
)

// What an agent lets of its sessions change the state of their tasks; a worker may leave less of
// that, never more (contract 7.5).
func TestTaskUpdates_TheAgentLetsAndTheWorkerNarrows(t *testing.T) {
	for name, tt := range map[string]struct {
		agent, worker string // "" = nothing is said of them
		want          string // the states after a claim, a question, its answer, and the end
	}{
		"all":                        {"", "", "in_progress blocked in_progress review"},
		"the agent lets some":        {"completed,awaiting_input", "", "todo blocked blocked review"},
		"the worker leaves some":     {"", "claimed", "in_progress in_progress in_progress in_progress"},
		"both":                       {"claimed,completed", "completed,failed", "todo todo todo review"},
		"the worker can't widen":     {"completed", "claimed,awaiting_input,completed,failed,released", "todo todo todo review"},
		"nothing may change a state": {"none", "", "todo todo todo todo"},
		"the worker leaves nothing":  {"", "none", "todo todo todo todo"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w := enginetest.New(t)
			a := w.Agent(func(in *api.AgentInput) {
				if tt.agent != "" {
					in.TaskUpdates = updates(tt.agent)
				}
			})
			k := w.Worker(a, func(in *api.WorkerInput) {
				if tt.worker != "" {
					in.TaskUpdates = new(updates(tt.worker))
				}
			})
			w.Task("One")
			c := k.Claim(w.Dispatch("T-1", api.DispatchInput{}).Session.ID)
			states := []string{string(w.TaskNow("T-1").State)}
			must[api.Session](t)(k.Ask(c, "May I?"))
			states = append(states, string(w.TaskNow("T-1").State))
			s := w.Get(c.SessionID)
			must[api.Session](t)(w.AnswerPrompt(t.Context(), w.Owner, s.ID, api.AnswerInput{PromptID: s.Prompted.ID, Answer: api.Answer{Text: "yes"}}))
			states = append(states, string(w.TaskNow("T-1").State))
			must[api.Finished](t)(k.Complete(c, ""))
			if states = append(states, string(w.TaskNow("T-1").State)); strings.Join(states, " ") != tt.want {
				t.Errorf("the states are %v, want %s", states, tt.want)
			}
			if w.TaskNow("T-1").Lease != nil {
				t.Error("the lease is not over")
			}
		})
	}
}

func updates(words string) api.Labels {
	if words == "none" {
		return api.Labels{}
	}
	return strings.Split(words, ",")
}

func TestTaskUpdates_UnknownOnesAreNamed(t *testing.T) {
	w := enginetest.New(t)
	a := w.Agent()
	_, err := w.EditAgent(t.Context(), w.Owner, a.Slug, func(in *api.AgentInput) error { in.TaskUpdates = api.Labels{"claimed", "finished"}; return nil })
	if e := wantCode(t, err, api.CodeInvalid); e.Fields[0].Field != "taskUpdates" || !strings.Contains(e.Fields[0].Detail, "completed") {
		t.Errorf("the agent's refusal names %v", e.Fields)
	}
	_, err = w.RegisterWorker(t.Context(), w.Owner, a.Slug, api.WorkerInput{Name: "w", InstanceID: "i", TaskUpdates: &api.Labels{"done"}})
	if e := wantCode(t, err, api.CodeInvalid); e.Fields[0].Field != "taskUpdates" {
		t.Errorf("the worker's refusal names %v", e.Fields)
	}
}
