package agent

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"stint/worker/regular"
)

// codexUses adds to a thread's settings what the switches open and shut. With [Uses.Settings]
// Codex reads its user's folder and trusts the work folder; without, each other thing is handed over here.
func codexUses(job Job, out map[string]any) {
	u := job.Uses
	out["features"].(map[string]any)["apps"] = u.Settings && u.ToolServers
	out["features"].(map[string]any)["plugins"] = u.Settings
	if !u.Settings {
		out["projects"] = untrusted(job.Dir)
		if u.Provider {
			maps.Copy(out, codexProvider(job.Env))
		}
	} else if !u.Instructions {
		out["project_doc_max_bytes"] = 0
	}
	if !u.Skills {
		// The list is left out; each is shut as well, as a turn's text could name one.
		shut := []any{}
		for _, path := range codexSkillFiles(job) {
			shut = append(shut, map[string]any{"path": path, "enabled": false})
		}
		out["skills"] = map[string]any{"include_instructions": false, "config": shut}
	}
	if servers := codexTools(job); len(servers) > 0 {
		out["mcp_servers"] = servers
	}
}

// codexSystem is the trusted text, with the work folder's instructions where Codex doesn't read them
// itself: it doesn't in a folder that it isn't to trust.
func codexSystem(job Job) string {
	if !job.Uses.Instructions || job.Uses.Settings {
		return job.System
	}
	return strings.TrimSpace(job.System + "\n\n" + folderInstructions(job.Dir, "AGENTS.override.md", "AGENTS.md"))
}

// codexSkillFiles are the skills that Codex finds by itself, whether or not it trusts the folder.
func codexSkillFiles(job Job) (out []string) {
	roots := []string{filepath.Join(variable(job.Env, "HOME"), ".agents", "skills")}
	if job.Uses.Settings {
		roots = append(roots, filepath.Join(codexHome(job.Env), "skills"))
	}
	top := repositoryOf(job.Dir)
	for at := job.Dir; at != ""; at = above(at, top) {
		roots = append(roots, filepath.Join(at, ".agents", "skills"), filepath.Join(at, ".codex", "skills"))
	}
	for _, root := range roots {
		seen := 0
		_ = filepath.WalkDir(resolve(root), func(path string, e fs.DirEntry, err error) error { // what can't be read isn't loaded
			if seen++; seen > sourceFiles {
				return fs.SkipAll
			}
			if err == nil && !e.IsDir() && e.Name() == "SKILL.md" {
				out = append(out, path)
			}
			return nil
		})
	}
	return out
}

// codexOwn are the user's settings of Codex, nil where there are none.
func codexOwn(path string) map[string]any {
	text, err := regular.Read(path)
	out := map[string]any{}
	if err != nil || toml.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// codexServersOf are the user's tool servers and the work folder's, of which the nearest counts.
func codexServersOf(job Job) map[string]any {
	out := map[string]any{}
	take := func(path string) {
		if servers, ok := codexOwn(path)["mcp_servers"].(map[string]any); ok {
			maps.Copy(out, servers)
		}
	}
	take(filepath.Join(codexHome(job.Env), "config.toml"))
	take(filepath.Join(job.Dir, ".codex", "config.toml"))
	return out
}

// codexProvider is what the user's settings say about where Codex's model is.
func codexProvider(env []string) map[string]any {
	own, out := codexOwn(filepath.Join(codexHome(env), "config.toml")), map[string]any{}
	for _, name := range []string{"model_provider", "model_providers", "model", "openai_base_url", "chatgpt_base_url", "oss_provider", "model_reasoning_effort", "model_context_window"} {
		if v, said := own[name]; said {
			out[name] = v
		}
	}
	return out
}

// CodexProvider is the model provider that the user's own Codex settings name, "" for OpenAI
// or when they can't be read.
func CodexProvider(env []string) string {
	name, _ := codexProvider(env)["model_provider"].(string)
	if name == "openai" {
		return ""
	}
	return name
}

func providerIgnored(name string) string {
	return fmt.Sprintf("Codex's own settings name the model provider %q, and a worker doesn't read them: let it be used "+
		"(provider = true in the [uses] of your settings of the agent), or name it in the executable (executable = [\"codex\", \"-c\", \"model_provider=…\", …]).", clip(name, 100))
}
