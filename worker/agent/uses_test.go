package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent"
)

func TestUses_WhatAProgramCantKeepApartIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind api.AgentType
		argv []string
		on   string
		want string // the field that the refusal names, "" = none
	}{
		{api.TypeClaudeCode, nil, "instructions", ""},
		{api.TypeClaudeCode, nil, "settings", "uses.settings"},
		{api.TypeCodex, nil, "provider settings", ""},
		{"", nil, "settings", "uses.settings"},
		{api.TypeCommand, nil, "skills", "uses.skills"},
		{api.TypeACP, []string{"opencode"}, "skills tool_servers", ""},
		{api.TypeACP, []string{"/opt/opencode"}, "provider settings skills", "uses.settings"},
		{api.TypeACP, []string{"gemini"}, "tool_servers", "uses.tool_servers"},
		{api.TypeACP, []string{"gemini"}, "instructions skills tool_servers provider settings", ""},
		{api.TypeACP, []string{"mine", "acp"}, "instructions", "uses.instructions"},
	} {
		u, err := agent.UsesOf(strings.Fields(c.on))
		if err != nil {
			t.Fatal(err)
		}
		err = u.Refused(c.kind, c.argv)
		if (err == nil) != (c.want == "") || err != nil && (!strings.HasPrefix(err.Error(), c.want+": ") || !strings.Contains(err.Error(), "; ")) {
			t.Errorf("%s %q with %q: %v", c.kind, c.argv, c.on, err)
		}
	}
	if _, err := agent.UsesOf([]string{"magic"}); err == nil {
		t.Error("a switch that there isn't is taken")
	}
}

// What the switches let be loaded is named, with whether its owner has to accept it, and has another digest when
// anything of it changes.
func TestSources_AreAskedAboutWhereOthersCouldWrite(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	home, repo := filepath.Join(base, "home"), filepath.Join(base, "repo")
	dir := filepath.Join(repo, "sub")
	for path, text := range map[string]string{
		dir + "/CLAUDE.md": "x", repo + "/CLAUDE.md": "x", repo + "/.git/HEAD": "x", base + "/CLAUDE.md": "beyond the repository",
		dir + "/.mcp.json": "{}", dir + "/.claude/skills/one/SKILL.md": "x", dir + "/.claude/skills/one/run.sh": "x", home + "/.claude/skills/two/SKILL.md": "x",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	look := func(u agent.Uses) map[string]agent.Source {
		t.Helper()
		all, err := u.Sources(api.TypeClaudeCode, nil, dir, []string{"HOME=" + home})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]agent.Source{}
		for _, s := range all {
			out[s.Name] = s
		}
		return out
	}
	u := agent.Uses{Instructions: true, Skills: true, ToolServers: true}
	first := look(u)
	for name, asks := range map[string]bool{"CLAUDE.md": false, "../CLAUDE.md": false, ".mcp.json": true, ".claude/skills": true, "~/.claude/skills": false} {
		if s, there := first[name]; !there || s.Asks() != asks {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if len(first) != 5 {
		t.Errorf("%d are there: %+v", len(first), first)
	}
	if got := look(agent.Uses{Instructions: true}); len(got) != 2 {
		t.Errorf("with instructions alone: %+v", got)
	}
	for what, change := range map[string]func() error{
		"the content":  func() error { return os.WriteFile(dir+"/.claude/skills/one/run.sh", []byte("y"), 0o644) },
		"executable":   func() error { return os.Chmod(dir+"/.claude/skills/one/run.sh", 0o755) },
		"another file": func() error { return os.WriteFile(dir+"/.claude/skills/one/more", nil, 0o644) },
	} {
		was := look(u)[".claude/skills"].Digest
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if look(u)[".claude/skills"].Digest == was {
			t.Errorf("with %s changed it has the same digest", what)
		}
	}
	for path, names := range map[string][]string{
		dir + "/CLAUDE.md": {"CLAUDE.md"}, home + "/.claude/skills/two/SKILL.md": {"~/.claude/skills"}, repo: {"../CLAUDE.md"},
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, info.Mode().Perm()|0o020); err != nil {
			t.Fatal(err)
		}
		for name, s := range look(u) {
			if !s.Runs && s.Asks() != slices.Contains(names, name) || slices.Contains(names, name) && (!s.Asks() || s.Foul == "") {
				t.Errorf("with %s writable by the group, %s: %+v", path, name, s)
			}
		}
		if err := os.Chmod(path, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// A tool server or hook that is a file of the work folder is executed too, and the agent can write it.
func TestSources_HoldTheFilesOfTheFolderThatAreStarted(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	home, dir := filepath.Join(base, "home"), filepath.Join(base, "repo")
	for path, text := range map[string]string{
		dir + "/.git/HEAD": "x", dir + "/tools/server.js": "x", dir + "/tools/hook.sh": "x", dir + "/bin/mine": "x", dir + "/src/index.js": "x", dir + "/data.txt": "x", dir + "/.claude/skills/a/SKILL.md": "x",
		dir + "/.mcp.json":             `{"mcpServers": {"a": {"command": "node", "args": ["--flag", "./tools/server.js"]}, "b": {"command": "mcp-server-filesystem", "args": ["src", "."]}, "c": {"command": "/bin/true", "env": {"X": "data.txt"}}}}`,
		dir + "/.claude/settings.json": `{"permissions": {"allow": ["Edit(data.txt)"]}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bash \"$CLAUDE_PROJECT_DIR/tools/hook.sh\" --x"}]}]}}`,
		home + "/.claude.json":         `{"mcpServers": {"own": {"command": "` + dir + `/bin/mine"}}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	look := func() map[string]agent.Source {
		t.Helper()
		all, err := agent.UsesAll.Sources(api.TypeClaudeCode, nil, dir, []string{"HOME=" + home})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]agent.Source{}
		for _, s := range all {
			out[s.Name] = s
		}
		return out
	}
	first := look()
	for _, name := range []string{"tools/server.js", "tools/hook.sh", "bin/mine"} {
		s, there := first[name]
		if !there || !s.Asks() {
			t.Errorf("%s: %+v", name, s)
			continue
		}
		if err := os.WriteFile(s.Path, []byte("evil"), 0o644); err != nil {
			t.Fatal(err)
		}
		if look()[name].Digest == s.Digest {
			t.Errorf("%s has the same digest when it is changed", name)
		}
	}
	for _, name := range []string{"data.txt", "src/index.js"} {
		if _, there := first[name]; there {
			t.Errorf("%s is not started and has to be accepted", name)
		}
	}
	if err := os.Symlink("a", dir+"/.claude/skills/b"); err != nil {
		t.Fatal(err)
	}
	if look()[".claude/skills"].Digest == first[".claude/skills"].Digest {
		t.Error("a skill under a second name is not seen")
	}
}
