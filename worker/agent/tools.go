package agent

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// toolServer is the name by which programs know the server of Stint's own tools.
const toolServer = "stint"

// claudeTools adds the tool servers that Claude Code is started with: Stint's own, and those that
// the job lets it use where the program doesn't find them itself. It starts them with its own environment, so that
// nothing secret is among its arguments; the user's may hold keys, and are in a file.
func claudeTools(job Job, out *Command) error {
	configs := []string{}
	if len(job.Tools) > 0 {
		text, err := claudeServerList(map[string]any{
			toolServer: map[string]any{"type": "stdio", "command": job.Tools[0], "args": job.Tools[1:]},
		})
		if err != nil {
			return err
		}
		configs = append(configs, text)
	}
	if own := claudeServersOf(job); job.Uses.ToolServers && !job.Uses.Settings && len(own) > 0 {
		text, err := claudeServerList(own)
		if err != nil {
			return err
		}
		name := filepath.Join("servers", fmt.Sprintf("%.12x.json", sha256.Sum256([]byte(text))))
		out.Files[name] = text
		configs = append(configs, filepath.Join(job.StateDir, name))
	}
	if len(configs) > 0 {
		out.Argv = append(append(out.Argv, "--mcp-config"), configs...)
	}
	return nil
}

func claudeServerList(servers any) (string, error) {
	text, err := json.Marshal(map[string]any{"mcpServers": servers}, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("encode the tool servers for Claude Code: %w", err)
	}
	return string(text), nil
}

// codexTools are the tool servers that Codex starts besides those that it finds itself: Stint's own,
// which it hands few variables of its own environment but those that it is told, and those that the job lets it
// use. Where it finds some that the job doesn't, they are switched off.
func codexTools(job Job) map[string]any {
	out := map[string]any{}
	switch own := codexServersOf(job); {
	case job.Uses.ToolServers && !job.Uses.Settings:
		maps.Copy(out, own)
	case !job.Uses.ToolServers && job.Uses.Settings:
		for name, server := range own {
			if server, ok := server.(map[string]any); ok { // whole: alone the switch is no server to it
				server["enabled"] = false
				out[name] = server
			}
		}
	}
	if len(job.Tools) == 0 {
		return out
	}
	names := make([]string, 0, len(job.Env))
	for _, v := range job.Env {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	out[toolServer] = map[string]any{
		"command": job.Tools[0], "args": job.Tools[1:], "env_vars": names,
		"startup_timeout_sec": 30, "tool_timeout_sec": 90, // a tool of ours is held for 50 s at most
		// Else Codex asks in words of its own about each tool that changes something. What the
		// rules say of a tool, the hook says before that.
		"default_tools_approval_mode": "approve",
	}
	return out
}

// acpTools are the tool servers that a program is told of by the Agent Client Protocol. Not every
// program hands on its own environment.
func acpTools(job Job) []any {
	if len(job.Tools) == 0 {
		return []any{} // an empty list: nothing in its place isn't the same to every program
	}
	env := []any{}
	for _, v := range job.Env {
		if name, value, _ := strings.Cut(v, "="); toolServerNeeds(name) {
			env = append(env, map[string]any{"name": name, "value": value})
		}
	}
	return []any{map[string]any{"name": toolServer, "command": job.Tools[0], "args": job.Tools[1:], "env": env}}
}

// toolServerNeeds reports whether the server of Stint's tools reads a variable.
func toolServerNeeds(name string) bool {
	return strings.HasPrefix(name, "STINT_") || strings.HasPrefix(name, "XDG_") || name == "HOME" || name == "PATH"
}

// toolServerFailed is how both programs call a tool server that they couldn't start.
const toolServerFailed = "failed"

// claudeServers are the tool servers of Claude Code as it lists them at the begin of a turn.
type claudeServers []struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

func (t *claudeTalk) toolsListed(servers claudeServers) {
	for _, s := range servers {
		if s.Name == toolServer && s.Status == toolServerFailed {
			t.toolless("")
		}
	}
}

// toolsStarted takes what Codex says about the start of a tool server.
func (t *codexTalk) toolsStarted(params jsontext.Value) {
	var n struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	if json.Unmarshal(params, &n, lenient) == nil && n.Name == toolServer && n.Status == toolServerFailed {
		t.toolless(n.Error)
	}
}

// toolless tells people, once, that the agent has no tools of Stint's though its owner wants it
// to. It goes on: it may not need them.
func (t *talk) toolless(why string) {
	if len(t.job.Tools) == 0 || t.toldToolless {
		return
	}
	t.toldToolless = true
	t.host.ToolsFailed(strings.TrimSpace("Stint's tools could not be started; the agent goes on without them. " + clip(why, 300)))
}
