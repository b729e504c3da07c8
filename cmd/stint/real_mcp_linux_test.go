//go:build agents

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"stint/api"
	"stint/worker/agent/agenttest"
)

// The real programs use Stint's tools, with the settings that stint mcp config prints: they list
// tasks and see what is next, claim one, run an agent for it, wait for it and read what it printed,
// comment on the task and give it back.
func TestReal_ProgramsUseTheTools(t *testing.T) {
	for program, tool := range toolCall {
		for _, way := range []string{"stdio", "http"} {
			t.Run(program+" over "+way, func(t *testing.T) {
				t.Parallel()
				useTools(t, program, way, tool)
			})
		}
	}
}

func useTools(t *testing.T, program, way string, tool func(name string, input any) agenttest.Call) {
	h := newHomeIn(t, agenttest.Folder(t))
	agenttest.SignIn(t, h.dir)
	url := h.serve(asIs, "up").ready()
	token, err := h.data().readToken()
	h.must(err)
	c, err := api.NewClient(api.ClientConfig{URL: url, Token: token})
	h.must(err)
	_, err = c.CreateAgent(t.Context(), map[string]any{"slug": "greeter", "run": map[string]any{"command": []string{"echo", "good", "morning"}, "workFolder": h.dir}})
	h.must(err)
	task, err := c.CreateTask(t.Context(), map[string]any{"title": "Greet everybody", "priority": "p1"}, "")
	h.must(err)
	// The key makes the program's own call answer this session, so that the script knows its id.
	s := h.sessionOf(url, token, "greeter", "greeting-1")
	one, first := map[string]any{"session": s.ID.String()}, map[string]any{"task": task.Key}
	m := agenttest.NewModel(
		t,
		tool("list_tasks", map[string]any{"state": []string{"todo"}}), tool("next_task", map[string]any{}),
		tool("claim", map[string]any{"task": task.Key, "leaseSeconds": 1234}),
		tool("list_agents", map[string]any{}),
		tool("run_agent", map[string]any{"agent": "greeter", "prompt": "Greet.", "idempotencyKey": "greeting-1"}),
		tool("wait_session", one), tool("read_output", one),
		tool("comment_task", map[string]any{"task": task.Key, "text": "They were greeted."}), tool("release", first),
		agenttest.Say("It greeted."),
	)
	out := h.runProgram(program, way, token, m)
	asked := m.Asked()
	if len(asked) == 0 {
		t.Fatalf("the model was not asked: %s", out)
	}
	last := asked[len(asked)-1].Body
	for _, want := range []string{"greeter", s.ID.String(), `complete`, "good morning", "Greet everybody", "inFlight", "1234", `released`} {
		if !strings.Contains(last, want) {
			t.Errorf("the program never saw %q: %.20000s\n%s", want, last, out)
		}
	}
	list, err := c.Sessions(t.Context(), api.SessionFilter{}, api.Page{})
	h.must(err)
	if len(list.Items) != 1 {
		t.Errorf("%d sessions were made", len(list.Items))
	}
	h.claimedAndGaveBack(c, task.Key)
}

// claimedAndGaveBack checks what became of the task that a program worked on.
func (h *home) claimedAndGaveBack(c *api.Client, task string) {
	h.Helper()
	now, err := c.Task(h.Context(), task)
	h.must(err)
	if now.State != api.TaskTodo || now.Lease != nil || now.Assignee != nil || now.Comments != 1 {
		h.Errorf("the task is %+v", now)
	}
	log, err := c.TaskEvents(h.Context(), task, api.Page{})
	h.must(err)
	var happened []string
	for _, e := range log.Items {
		happened = append(happened, e.Type)
	}
	slices.Reverse(happened)
	if got := strings.Join(happened, " "); !strings.Contains(got, api.EventTaskClaimed) || !strings.HasSuffix(got, api.EventTaskReleased) {
		h.Errorf("with the task happened %s", got)
	}
}

// sessionOf triggers an agent with a key and the body that the tool sends.
func (h *home) sessionOf(url, token, agent, key string) (out api.Session) {
	h.Helper()
	c, err := api.NewClient(api.ClientConfig{URL: url, Token: token})
	h.must(err)
	b, err := c.Raw(h.Context(), api.RawCall{
		Method: http.MethodPost, Path: "/api/v1/workspaces/default/agents/" + agent + "/sessions",
		Header: http.Header{"Idempotency-Key": {key}}, Body: map[string]string{"prompt": "Greet."},
	})
	h.must(err)
	h.must(json.Unmarshal(b, &out))
	return out
}

// write puts a text at the end of a file of the home, and returns its path.
func (h *home) write(name, text string) string {
	h.Helper()
	file := filepath.Join(h.dir, name)
	h.must(os.MkdirAll(filepath.Dir(file), 0o700))
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	h.must(err)
	_, err = io.WriteString(f, text)
	h.must(errors.Join(err, f.Close()))
	return file
}

// settings are what a command prints, with this binary under the name by which it is stint.
func (h *home) settings(args ...string) string {
	h.Helper()
	self, err := os.Executable()
	h.must(err)
	link := filepath.Join(h.dir, "stint")
	h.must(os.Symlink(self, link))
	cmd := exec.Command(link, args...)
	cmd.Env = h.env
	out, err := cmd.Output()
	h.must(err)
	return strings.ReplaceAll(string(out), self, link)
}

// runProgram has a program take one turn with Stint's tools, and returns what it printed.
func (h *home) runProgram(program, way, token string, m *agenttest.Model) string {
	h.Helper()
	config := []string{"mcp", "config", program}
	if way == "http" {
		config = append(config, "--http")
	}
	settings := h.settings(config...)
	start, env := []string{os.Getenv(agenttest.ClaudeVar)}, agenttest.ClaudeEnv(m)
	switch program {
	case "claude":
		file := h.write("stint-mcp.json", settings)
		start = append(start, "-p", "--mcp-config", file, "--strict-mcp-config", "--allowedTools", "mcp__stint", "--max-turns", "16", "Use Stint.")
	case "codex":
		h.write(".codex/config.toml", settings)
		start = append(append([]string{os.Getenv(agenttest.CodexVar)}, agenttest.CodexArgs(m)...), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Use Stint.")
		env = nil
	case "opencode":
		var all map[string]any
		h.must(json.Unmarshal([]byte(settings), &all))
		all["autoupdate"], all["share"], all["model"], all["small_model"] = false, "disabled", "scripted/one", "scripted/one"
		all["provider"] = map[string]any{"scripted": map[string]any{
			"npm": "@ai-sdk/anthropic", "options": map[string]any{"baseURL": m.URL + "/v1", "apiKey": "x"}, "models": map[string]any{"one": map[string]any{}},
		}}
		text, err := json.Marshal(all)
		h.must(err)
		h.write(".config/opencode/opencode.json", string(text))
		start, env = []string{os.Getenv(agenttest.OpencodeVar), "run", "Use Stint."}, nil
	}
	if way == "http" {
		env = append(env, "STINT_TOKEN="+token)
	}
	ctx, cancel := context.WithTimeout(h.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, start[0], start[1:]...)
	cmd.Dir, cmd.Env = agenttest.Folder(h), slices.Concat(h.env, env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.Errorf("%s: %v", program, err)
	}
	return string(out)
}

// A person's own Claude Code keeps the lease of the task that they claimed: its settings renew
// it after each use of a tool, and give the task back at the end.
func TestReal_HooksKeepATasksLease(t *testing.T) {
	h := newHomeIn(t, agenttest.Folder(t))
	agenttest.SignIn(t, h.dir)
	c := h.serve(asIs, "up").client(nil)
	made, err := c.CreateTask(t.Context(), map[string]any{"title": "Mend it"}, "")
	h.must(err)
	held, err := c.ClaimTask(t.Context(), made.Key, api.TaskClaimInput{})
	h.must(err)
	command := func(text string) agenttest.Call {
		return agenttest.Call{Tool: "Bash", Input: map[string]any{"command": text, "description": "a command"}}
	}
	settings := h.settings("hook", "claude", "--task", made.Key)
	granted := held.Task.Lease.ExpiresAt.String()
	show := filepath.Join(h.dir, "stint") + " task show --json " + made.Key
	m := agenttest.NewModel(t, command("true"), command("while "+show+" | grep -q "+granted+"; do sleep 0.05; done; "+show), agenttest.Say("done"))
	cmd := exec.CommandContext(t.Context(), os.Getenv(agenttest.ClaudeVar), "-p", "--settings", settings, "--allowedTools", "Bash", "--max-turns", "8", "Mend it.")
	cmd.Dir, cmd.Env = agenttest.Folder(t), slices.Concat(h.env, agenttest.ClaudeEnv(m))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("Claude Code: %v: %s", err, out)
	}
	asked := m.Asked()
	if told := asked[len(asked)-1].Body; !strings.Contains(told, "expiresAt") {
		t.Errorf("the lease, granted until %s, was not renewed: %s", granted, lastOf(told, 3000))
	}
	h.until("the task is given back", func() bool {
		now, err := c.Task(t.Context(), made.Key)
		h.must(err)
		return now.Lease == nil && now.Assignee == nil
	})
}
