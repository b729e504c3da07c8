package agent

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
	"stint/worker/regular"
)

// claudeUses adds to a command what the switches open and shut. Claude Code reads the settings of
// its user and of the work folder all or none (--setting-sources); what those bring along besides
// has a switch of its own. Without them, each other thing is handed over here one by one.
func claudeUses(job Job, out *Command) error {
	u := job.Uses
	arg := func(words ...string) { out.Argv = append(out.Argv, words...) }
	if !u.Settings {
		arg("--setting-sources", "")
	}
	if !u.ToolServers || !u.Settings {
		arg("--strict-mcp-config")
	}
	switch {
	case !u.Instructions:
		out.Env = append(out.Env, "CLAUDE_CODE_DISABLE_CLAUDE_MDS=1")
	case !u.Settings:
		arg("--add-dir", job.Dir)
		out.Env = append(out.Env, "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1")
	}
	if u.Settings && !u.Skills {
		arg("--disable-slash-commands")
	}
	if u.Settings && !u.ToolServers {
		out.Env = append(out.Env, "CLAUDE_CODE_SKIP_PLUGIN_MCP_SERVERS=1")
	}
	if u.Settings {
		return nil
	}
	if u.Provider {
		out.Env = append(out.Env, claudeProvider(job.Env).variables...)
	}
	if u.Skills {
		if err := claudeSkills(job, out); err != nil {
			return err
		}
	}
	return nil
}

// claudeServersOf are the user's tool servers and the work folder's, as Claude Code keeps them: in
// ~/.claude.json for all folders and for this one, and in .mcp.json. The nearest counts.
func claudeServersOf(job Job) map[string]jsontext.Value {
	type servers struct {
		Servers map[string]jsontext.Value `json:"mcpServers"`
	}
	var own struct {
		servers  `json:",inline"`
		Projects map[string]servers `json:"projects"`
	}
	all := map[string]jsontext.Value{}
	for _, path := range []string{filepath.Join(claudeHome(job.Env), ".claude.json"), filepath.Join(variable(job.Env, "HOME"), ".claude.json")} {
		if text, err := regular.Read(path); err == nil && json.Unmarshal(text, &own, lenient) == nil {
			maps.Copy(all, own.Servers)
			break
		}
	}
	var folder servers
	if text, err := regular.Read(filepath.Join(job.Dir, ".mcp.json")); err == nil && json.Unmarshal(text, &folder, lenient) == nil {
		maps.Copy(all, folder.Servers)
	}
	for _, dir := range []string{resolve(job.Dir), job.Dir} {
		maps.Copy(all, own.Projects[dir].Servers)
	}
	return all
}

// claudeSkills makes a plugin of the user's skills and commands and the work folder's, which is
// how Claude Code takes them without the settings beside them. A skill is then called own:NAME.
func claudeSkills(job Job, out *Command) error {
	if !filepath.IsAbs(job.StateDir) {
		return &Refusal{api.Failure{Code: CodeCrashed, Message: "Claude Code needs a folder of the worker's for the skills that it may use."}}
	}
	links := map[string]string{}
	for _, from := range []string{claudeHome(job.Env), filepath.Join(job.Dir, ".claude")} { // the folder's win
		for _, kind := range []string{"skills", "commands"} {
			for _, path := range contents(filepath.Join(from, kind)) {
				if real := resolve(path); filepath.IsAbs(real) {
					links[filepath.Join(kind, filepath.Base(path))] = real
				}
			}
		}
	}
	if len(links) == 0 {
		return nil
	}
	name := claudePlugin(links)
	out.Files[filepath.Join(name, ".claude-plugin", "plugin.json")] = `{"name":"own","version":"1.0.0","description":"Skills of the worker's owner and of the work folder"}`
	for at, target := range links {
		text, err := regular.Read(target)
		if strings.HasPrefix(at, "commands/") && err == nil { // it doesn't follow a link to a file
			out.Files[filepath.Join(name, at)] = string(text)
			continue
		}
		out.Links[filepath.Join(name, at)] = target
	}
	out.Argv = append(out.Argv, "--plugin-dir", filepath.Join(job.StateDir, name))
	return nil
}

// claudePlugin is the name of a plugin's folder, by what it holds: several conversations, with other
// skills, may share the adapter's folder.
func claudePlugin(links map[string]string) string {
	var b strings.Builder
	for _, at := range slices.Sorted(maps.Keys(links)) {
		fmt.Fprintf(&b, "%s\x00%s\x00", at, links[at])
	}
	return filepath.Join("skills", fmt.Sprintf("%.12x", sha256.Sum256([]byte(b.String()))))
}

// providerSettings are what Claude Code's settings say about where its model is.
type providerSettings struct {
	variables []string       // NAME=value
	rest      map[string]any // settings
}

// claudeProvider reads the model provider out of the user's settings: the variables that choose it
// and its keys, and the commands that fetch keys.
func claudeProvider(env []string) (out providerSettings) {
	var own struct {
		Env  map[string]string         `json:"env"`
		Rest map[string]jsontext.Value `json:",inline"`
	}
	out.rest = map[string]any{}
	text, err := regular.Read(filepath.Join(claudeHome(env), "settings.json"))
	if err != nil || json.Unmarshal(text, &own, lenient) != nil {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(own.Env)) {
		if providerVariable(name) {
			out.variables = append(out.variables, name+"="+own.Env[name])
		}
	}
	for _, name := range []string{"apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "model", "modelOverrides"} {
		if v, said := own.Rest[name]; said {
			out.rest[name] = v
		}
	}
	return out
}

// providerVariable reports whether a variable has to do with where Claude Code finds its model.
func providerVariable(name string) bool {
	for _, start := range []string{"ANTHROPIC_", "AWS_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_SKIP_", "VERTEX_", "GOOGLE_", "GCLOUD_", "CLOUD_ML_", "AZURE_"} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return slices.Contains([]string{"CLAUDE_CODE_OAUTH_TOKEN", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"}, name)
}
