//go:build agents

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/worker"
	"stint/worker/agent/agenttest"
)

// toolCall is how a program's model asks for one of Stint's tools.
var toolCall = map[string]func(name string, input any) agenttest.Call{
	"claude": func(name string, input any) agenttest.Call {
		return agenttest.Call{Tool: "mcp__stint__" + name, Input: input}
	},
	"codex": func(name string, input any) agenttest.Call {
		return agenttest.Call{Tool: name, Namespace: "mcp__stint", Input: input}
	},
	"opencode": func(name string, input any) agenttest.Call {
		return agenttest.Call{Tool: "stint_" + name, Input: input}
	},
}

// An agent whose owner says stint_tools has them with its run's own token: it comments on its
// task and starts another agent, and does nothing beyond its run. The token is in no argument of
// a process, no log, no event and no line of the transcript.
func TestReal_AgentsHaveStintsTools(t *testing.T) {
	for name, rules := range map[string][]map[string]any{
		"without a rule": {},
		"with a rule":    {{"area": "workspace", "pattern": "extend", "ruling": "deny"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachProgram(t, nil, func(h *realHome) { h.usesItsTools(rules) })
		})
	}
}

func (h *realHome) usesItsTools(rules []map[string]any) {
	run := h.agent["run"].(map[string]any)
	run["rules"] = append(run["rules"].([]map[string]any), rules...)
	h.write(".config/stint/agents/real.toml", "stint_tools = true\n")
	p := h.serve(asIs, "up")
	c := p.client(nil)
	_, err := c.CreateAgent(h.Context(), h.agent)
	h.must(err)
	_, err = c.CreateAgent(h.Context(), map[string]any{"slug": "greeter", "run": map[string]any{"command": []string{"echo", "good", "morning"}, "workFolder": h.dir}})
	h.must(err)
	for _, title := range []string{"Mend the roof", "Somebody else's"} {
		_, err = c.CreateTask(h.Context(), map[string]any{"title": title}, "")
		h.must(err)
	}
	program := "claude"
	if h.agent["type"] == api.TypeCodex {
		program = "codex"
	}
	for _, step := range []struct {
		tool string
		args map[string]any
	}{
		{"comment_task", map[string]any{"task": "T-1", "text": "Half of it is done."}},
		{"comment_task", map[string]any{"task": "T-2", "text": "Meddling."}},
		{"report_progress", map[string]any{"text": "The first half."}},
		{"extend", map[string]any{"task": "T-1", "addSeconds": 60}},
		{"claim", map[string]any{"task": "T-2"}},
		{"run_agent", map[string]any{"agent": "greeter"}},
	} {
		h.model.Then(toolCall[program](step.tool, step.args))
	}
	h.model.Then(agenttest.Say("done"))
	seen := watchArguments()
	d, err := c.DispatchTask(h.Context(), "T-1", api.DispatchInput{Agent: "real"}, "")
	h.must(err)
	s := h.overOf(c, d.Session.ID)
	arguments := seen()
	if s.Status != api.Complete || s.Result != "done" {
		h.Errorf("it ended as %s, %q, %+v", s.Status, s.Result, s.Error)
	}
	asked := h.model.Asked()
	told := asked[len(asked)-1].Body
	wants := []string{"Half of it is done.", "There is no such task", "user_token_required", `greeter`}
	if len(rules) > 0 {
		wants = append(wants, "The policy of this worker does not allow it (workspace: extend)")
	}
	for _, want := range wants {
		if !strings.Contains(told, want) {
			h.Errorf("the program never saw %q: %s", want, lastOf(told, 8000))
		}
	}
	h.onlyItsOwn(c, s.ID)
	if !strings.Contains(arguments, strings.Join(worker.ToolServer, " ")) {
		h.Error("nobody started the tools")
	}
	for what, text := range map[string]string{"an argument": arguments, "the log": p.stderr.String(), "the store": h.stored()} {
		if i := strings.Index(text, api.RunTokenPrefix); i >= 0 {
			h.Errorf("%s has the token: %.300q", what, text[max(0, i-100):])
		}
	}
	p.stop()
}

// overOf waits for a session's end.
func (h *home) overOf(c *api.Client, id api.SessionID) (s api.Session) {
	h.Helper()
	h.until("the session ends", func() bool {
		var err error
		s, err = c.Session(h.Context(), id)
		h.must(err)
		return s.Status.Terminal()
	})
	return s
}

// onlyItsOwn checks what the session did: a comment on its own task, a session of the other
// agent, and nothing to the other task.
func (h *home) onlyItsOwn(c *api.Client, id api.SessionID) {
	h.Helper()
	comments, err := c.TaskComments(h.Context(), "T-1", api.Page{})
	h.must(err)
	if len(comments.Items) != 1 || comments.Items[0].SessionID != id {
		h.Errorf("the comments are %+v", comments.Items)
	}
	notes, err := c.Activities(h.Context(), id, api.Page{})
	h.must(err)
	if !slices.ContainsFunc(notes.Items, func(a api.Activity) bool { return a.Type == api.ActivityProgress && a.Text == "The first half." }) {
		h.Errorf("its timeline has %+v", notes.Items)
	}
	other, err := c.Task(h.Context(), "T-2")
	h.must(err)
	if other.Comments != 0 || other.Lease != nil || other.Assignee != nil {
		h.Errorf("the other task is %+v", other)
	}
	started, err := c.Sessions(h.Context(), api.SessionFilter{Agent: "greeter"}, api.Page{})
	h.must(err)
	if len(started.Items) != 1 || started.Items[0].Parent != id || started.Items[0].TriggeredBy != api.ByAgent {
		h.Errorf("it started %+v", started.Items)
	}
}

// stored is what the coordinator has on its disk: events, transcripts, all of it.
func (h *home) stored() string {
	h.Helper()
	var all []byte
	for _, file := range []string{h.data().database(), h.data().database() + "-wal"} {
		text, err := os.ReadFile(file)
		h.must(err)
		all = append(all, text...)
	}
	return string(all)
}

// watchArguments collects the arguments of all processes of this machine until what it returns
// is called, one process a line.
func watchArguments() func() string {
	end, done := make(chan struct{}), make(chan map[string]bool)
	go func() {
		all := map[string]bool{}
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, file := range files {
				if text, err := os.ReadFile(file); err == nil {
					all[strings.ReplaceAll(string(text), "\x00", " ")] = true
				}
			}
			select {
			case <-end:
				done <- all
				return
			case <-look.C:
			}
		}
	}()
	return func() string {
		close(end)
		var out strings.Builder
		for line := range <-done {
			out.WriteString(line + "\n")
		}
		return out.String()
	}
}
