package agenttest_test

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

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

// What Gemini CLI asks beside the conversation is answered in the form that it wants, and is no step
// of the script.
func TestModel_AnswersGeminisAsidesByTheirSchema(t *testing.T) {
	t.Parallel()
	m := agenttest.NewModel(t, agenttest.Say("end"))
	r, err := http.Post(m.URL+"/v1beta/models/small:generateContent", "application/json", strings.NewReader(`{"contents":[],"generationConfig":{"responseJsonSchema":{
		"type":"object","properties":{"why":{"type":"string"},"sure":{"type":"number"},"model":{"type":"string","enum":["flash","pro"]},"more":{"type":"array"}},"required":["why"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Candidates []struct {
			Content struct{ Parts []struct{ Text string } }
		}
	}
	got := map[string]any{}
	err = json.UnmarshalRead(r.Body, &answer, json.MatchCaseInsensitiveNames(true))
	if err == nil {
		err = json.Unmarshal([]byte(answer.Candidates[0].Content.Parts[0].Text), &got)
	}
	if want := map[string]any{"model": "flash", "more": []any{}, "sure": 0.0, "why": "aside"}; err != nil || !reflect.DeepEqual(got, want) || len(m.Asked()) != 0 {
		t.Errorf("the answer is %v, not %v, %v; %d requests of the script", got, want, err, len(m.Asked()))
	}
}
