//go:build agents

package agent_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// program is how one of the real programs is instructed to act.
type program struct {
	command func(string) agenttest.Call
	file    func(name string) agenttest.Call // makes it
	tool    func(server, name string) agenttest.Call
	servers func(j *agent.Job, named map[string][]string)
	run     converse
	adapter agent.Agent
}

var programs = map[string]program{
	"claude": {
		command: bash, file: write, run: realClaude, adapter: agent.Claude{},
		tool: func(server, name string) agenttest.Call {
			return agenttest.Call{Tool: "mcp__" + server + "__act", Input: obj{"name": name}}
		},
		servers: func(j *agent.Job, named map[string][]string) {
			list := obj{}
			for name, argv := range named {
				list[name] = obj{"command": argv[0], "args": argv[1:]}
			}
			b, err := json.Marshal(obj{"mcpServers": list})
			if err != nil {
				panic(err)
			}
			j.Executable = append(j.Executable, "--mcp-config", string(b))
		},
	},
	"codex": {
		command: sh, run: realCodex, adapter: agent.Codex{},
		file: func(name string) agenttest.Call { return patch("*** Add File: " + name + "\n+x") },
		tool: func(server, name string) agenttest.Call {
			return agenttest.Call{Tool: "act", Namespace: "mcp__" + server, Input: obj{"name": name}}
		},
		servers: func(j *agent.Job, named map[string][]string) {
			for name, argv := range named {
				b, err := json.Marshal(argv[1:])
				if err != nil {
					panic(err)
				}
				j.Executable = append(j.Executable, "-c", `mcp_servers.`+name+`={command="`+argv[0]+`",args=`+string(b)+`,required=true}`)
			}
		},
	},
}

// Each area of a policy refuses what it is about, whatever the program would do by itself:
// where a rule is the only thing in the way, and where it ends the session.
func TestReal_EachAreaRefuses(t *testing.T) {
	t.Parallel()
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newProbes(t)
			served := func(j *agent.Job) {
				p.servers(j, map[string][]string{"stint": agenttest.ToolServer(t, w.outside), "other": agenttest.ToolServer(t, w.outside)})
			}
			curl := p.command("curl -sS --noproxy '' http://" + w.addr + "/")
			stops := func(area agent.Area, what string, step agenttest.Call, happened func(dir, told string) bool, prepare func(*agent.Job)) refused {
				return refused{
					name: string(area) + " for good", rules: []agent.Rule{{Area: area, Ruling: agent.DenyStop}},
					acts: []act{{what: what, step: step, happened: happened, denied: true}}, failure: agent.CodePolicy, prepare: prepare,
				}
			}
			refusals(t, w, []refused{
				{name: "network", rules: []agent.Rule{{Area: agent.Network, Ruling: agent.Deny}}, acts: []act{
					{what: "a connection", step: curl, happened: w.reached, denied: true},
					{what: "one in disguise", step: p.command(w.connect()), happened: w.reached},
				}},
				{name: "side effects", prepare: func(j *agent.Job) { repository(t, j.Dir, w.outside); served(j) }, rules: []agent.Rule{
					{Area: agent.SideEffects, Ruling: agent.Deny}, {Area: agent.Filesystem, Ruling: agent.Allow}, {Area: agent.Network, Ruling: agent.Allow}, {Area: agent.Shell, Ruling: agent.Allow},
				}, acts: []act{
					{what: "a commit", step: p.command("git commit -q --allow-empty -m refused-commit"), happened: w.holds(".git/logs/HEAD", "refused-commit"), denied: true},
					{what: "a push", step: p.command("git push -q " + w.outside + "/bare HEAD:refs/heads/pushed"), happened: w.there("bare/refs/heads/pushed"), denied: true},
					{what: "a pull request", step: p.command("./gh pr create --fill"), happened: w.made("gh-ran"), denied: true},
					{what: "publishing", step: p.command("cd . && ./npm publish"), happened: w.made("npm-ran"), denied: true},
					{what: "a foreign tool", step: p.tool("other", "foreign"), happened: w.there("foreign"), denied: true},
				}},
				{name: "workspace", prepare: served, rules: []agent.Rule{{Area: agent.Workspace, Ruling: agent.Deny}}, acts: []act{
					{what: "a call of Stint's tools", step: p.tool("stint", "triggered"), happened: w.there("triggered"), denied: true},
				}},
				{name: "what programs take orders from", acts: []act{
					{what: "its own settings", step: p.file("." + name + "/settings"), happened: w.made("." + name + "/settings"), denied: true},
					{what: "a hook of git's", step: p.file(".git/hooks/planted"), happened: w.made(".git/hooks/planted"), denied: true},
					{what: "a file through a link", step: p.file("link/through"), happened: w.there("through"), denied: name == "claude"}, // Codex's sandbox stops it
				}, prepare: func(j *agent.Job) {
					if err := os.Symlink(w.outside, filepath.Join(j.Dir, "link")); err != nil {
						t.Fatal(err)
					}
				}},
				{name: "nobody to ask", rules: []agent.Rule{{Area: agent.Shell, Pattern: "touch *", Ruling: agent.Ask}}, acts: []act{
					{what: "a command", step: p.command("touch asked"), happened: w.made("asked"), denied: true},
				}, failure: agent.CodePolicy},
				stops(agent.Filesystem, "a file", p.file("stopped"), w.made("stopped"), nil),
				stops(agent.Network, "a connection", curl, w.reached, nil),
				stops(agent.SideEffects, "a commit", p.command("git commit -q --allow-empty -m refused-commit"), w.holds(".git/logs/HEAD", "refused-commit"),
					func(j *agent.Job) { repository(t, j.Dir, "") }),
				stops(agent.Workspace, "a call of Stint's tools", p.tool("stint", "stopped"), w.there("stopped"), served),
			}, p.command, p.run)
			t.Run("the tools work where nothing refuses them", func(t *testing.T) {
				t.Parallel()
				host := &agenttest.Host{}
				_, _, r, err := p.run(t, served, host, p.tool("stint", "worked"), agenttest.Say("end"))
				fine(t, r, err)
				if !exists(w.outside + "/worked") {
					t.Errorf("transcript\n%s", host.Seen().Transcript())
				}
			})
		})
	}
}

func (w *probes) holds(name, text string) func(dir, told string) bool {
	return func(dir, _ string) bool {
		b, err := os.ReadFile(filepath.Join(dir, name))
		return err == nil && strings.Contains(string(b), text)
	}
}

// repository turns a work folder into one, with stand-ins for programs that publish, and an
// empty one to push to in another folder if there is one.
func repository(t *testing.T, dir, outside string) {
	t.Helper()
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("config", "user.name", "x")
	git("config", "user.email", "x@example.com")
	git("commit", "-q", "--allow-empty", "-m", "first")
	if outside != "" {
		git("init", "-q", "--bare", outside+"/bare")
	}
	var errs []error
	for _, name := range []string{"gh", "npm"} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ntouch "+name+"-ran\n"), 0o700))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
