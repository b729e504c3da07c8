package agent

import (
	"bytes"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"stint/worker/regular"
)

// opencodeUses adds to opencode's settings what the switches open and shut. It reads its user's
// ~/.config/opencode in any case, and the work folder's settings, instructions and skills of its own kind
// together (OPENCODE_DISABLE_PROJECT_CONFIG).
func opencodeUses(job Job, config map[string]any, asks map[string]string, out *Command) {
	u := job.Uses
	if !u.Settings {
		out.Env = append(out.Env, "OPENCODE_DISABLE_PROJECT_CONFIG=1")
		if path, _ := firstOf(job.Dir, "AGENTS.md", "CLAUDE.md"); u.Instructions && path != "" {
			said, _ := config["instructions"].([]any)
			config["instructions"] = append(said, path)
		}
	}
	if u.Skills {
		out.Env = append(out.Env, "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT=1")
	} else {
		out.Env = append(out.Env, "OPENCODE_DISABLE_CLAUDE_CODE=1", "OPENCODE_DISABLE_EXTERNAL_SKILLS=1")
		asks["skill"] = "deny"
	}
	own, folder := opencodeServers(opencodeHome(job.Env), "config.json"), opencodeServers(job.Dir)
	servers, _ := config["mcp"].(map[string]any)
	if servers == nil {
		servers = map[string]any{}
	}
	switch {
	case u.ToolServers && !u.Settings:
		for name, server := range folder {
			servers[name] = server
		}
	case !u.ToolServers:
		for name := range own {
			servers[name] = map[string]any{"enabled": false}
		}
		if u.Settings {
			for name := range folder {
				servers[name] = map[string]any{"enabled": false}
			}
		}
	}
	if len(servers) > 0 {
		config["mcp"] = servers
	}
}

// opencodeHome is where opencode's user keeps its settings, "" when that is unknown.
func opencodeHome(env []string) string {
	if dir := variable(env, "XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "opencode")
	}
	if home := variable(env, "HOME"); home != "" {
		return filepath.Join(home, ".config", "opencode")
	}
	return ""
}

// opencodeServers are the tool servers that opencode's settings in a folder name.
func opencodeServers(dir string, more ...string) map[string]any {
	out := map[string]any{}
	for _, name := range append(more, "opencode.json", "opencode.jsonc") {
		var said struct {
			Servers map[string]any `json:"mcp"`
		}
		text, err := regular.Read(filepath.Join(dir, name))
		if dir == "" || err != nil || json.Unmarshal(plainJSON(text), &said, lenient) != nil {
			continue
		}
		for name, server := range said.Servers {
			out[name] = server
		}
	}
	return out
}

// plainJSON leaves out comments, and commas before a closing bracket, which opencode allows in its files.
func plainJSON(text []byte) []byte {
	var out []byte
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted:
			if out = append(out, c); c == '\\' && i+1 < len(text) {
				i++
				out = append(out, text[i])
			}
			quoted = c != '"'
			continue
		case bytes.HasPrefix(text[i:], []byte("//")):
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
			continue
		case bytes.HasPrefix(text[i:], []byte("/*")):
			end := bytes.Index(text[i+2:], []byte("*/"))
			if end < 0 {
				return out
			}
			i += end + 3
			continue
		case c == '}' || c == ']':
			if kept := bytes.TrimRight(out, " \t\r\n"); bytes.HasSuffix(kept, []byte(",")) {
				out = kept[:len(kept)-1]
			}
		}
		quoted = c == '"'
		out = append(out, c)
	}
	return out
}
