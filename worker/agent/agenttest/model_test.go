package agenttest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"stint/worker/agent/agenttest"
)

// A model whose command got no sandbox repeats the command, and then continues with its
// script.
func TestModel_RepeatsACommandThatFoundNoSandbox(t *testing.T) {
	t.Parallel()
	m := agenttest.NewModel(t, agenttest.Call{Tool: "Bash", Input: map[string]any{"command": "first"}}, agenttest.Call{Tool: "Bash", Input: map[string]any{"command": "second"}}, agenttest.Say("end"))
	history := ""
	ask := func(result string) string {
		history += result
		r, err := http.Post(m.URL+"/v1/messages", "application/json", strings.NewReader(`{"stream":true,"tools":[{}],"messages":["`+history+`"]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	const torn = "bwrap: Can't bind mount: Unable to remount destination "
	for i, c := range []struct{ result, answer string }{
		{"", "first"}, {torn, "first"}, {torn, "first"}, {"done ", "second"}, {torn, "second"}, {"done ", "end"},
	} {
		if got := ask(c.result); !strings.Contains(got, c.answer) {
			t.Errorf("answer %d is %q, want %q in it", i, got, c.answer)
		}
	}
	if n := len(m.Asked()); n != 3 {
		t.Errorf("%d requests of the script, want 3", n)
	}
}
