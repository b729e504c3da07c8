//go:build agents

package agent_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

// lived is a home and a work folder of somebody who has used the program by hand: each thing that
// they have names itself to the model, or makes a file in the folder of witnesses when it is started.
type lived struct {
	home, dir, witness string
	model              *agenttest.Model
	job                agent.Job
}

// touch is what a started thing does.
func (l lived) touch(name string) string { return "touch " + l.witness + "/" + name }

func (l lived) put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// skill is one whose description and body name it.
func skill(name, mark string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\nBODY-%s", name, mark, mark)
}

func live(t *testing.T, real func(testing.TB, *agenttest.Model) agent.Job, steps ...agenttest.Step) lived {
	t.Helper()
	m := agenttest.NewModel(t, steps...)
	job := real(t, m)
	job.Policy.Rules = []agent.Rule{{Area: agent.SideEffects, Ruling: agent.Allow}}
	l := lived{variable(job.Env, "HOME"), job.Dir, agenttest.Folder(t), m, job}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", job.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return l
}

// seen are the marks that reached the model with the first request, and the witnesses.
func (l lived) seen(marks ...string) (out []string) {
	asked := l.model.Asked()
	for _, mark := range marks {
		if len(asked) > 0 && strings.Contains(asked[0].Body, mark) {
			out = append(out, mark)
		}
	}
	entries, _ := os.ReadDir(l.witness)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.Sort(out)
	return out
}

// used runs a program once with each set of switches and compares what it took.
func used(t *testing.T, a agent.Agent, kind api.AgentType, make func(*testing.T) lived, marks []string, cases map[string][]string) {
	t.Helper()
	for names, want := range cases {
		t.Run(names, func(t *testing.T) {
			t.Parallel()
			var minus []string
			words := strings.FieldsFunc(names, func(r rune) bool { return r == '+' })
			u, err := agent.UsesOf(slices.DeleteFunc(words, func(w string) bool { return w == "none" || strings.HasPrefix(w, "all") }))
			if rest, all := strings.CutPrefix(names, "all"); all {
				minus = strings.Fields(strings.ReplaceAll(rest, "-", " "))
				var on []string
				for _, n := range agent.UseNames {
					if !slices.Contains(minus, n.Name) {
						on = append(on, n.Name)
					}
				}
				u, err = agent.UsesOf(on)
			}
			if err != nil {
				t.Fatal(err)
			}
			l := make(t)
			l.job.Uses = u
			if err := u.Refused(kind, l.job.Executable); err != nil {
				t.Fatal(err)
			}
			r, err := agenttest.Run(t.Context(), t, a, l.job, &agenttest.Host{Answer: agenttest.Approves})
			fine(t, r, err)
			slices.Sort(want)
			if got := l.seen(marks...); !slices.Equal(got, want) {
				t.Errorf("took %q, want %q", got, want)
			}
		})
	}
}

func claudeLived(t *testing.T) lived {
	t.Helper()
	l := live(t, agenttest.RealClaude, agenttest.Say("end"))
	server := func(name string) string {
		return fmt.Sprintf(`{"command":"/bin/sh","args":["-c","%s"]}`, l.touch(name))
	}
	hook := func(name string) string {
		return `"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"` + l.touch(name) + `"}]}]}`
	}
	for path, text := range map[string]string{
		l.dir + "/CLAUDE.md": "FOLDERS-INSTRUCTIONS", l.home + "/.claude/CLAUDE.md": "USERS-INSTRUCTIONS",
		l.dir + "/.claude/skills/one/SKILL.md": skill("one", "FOLDERS-SKILL"), l.home + "/.claude/skills/two/SKILL.md": skill("two", "USERS-SKILL"),
		l.dir + "/.claude/commands/three.md": "---\ndescription: FOLDERS-COMMAND\n---\nx",
		l.dir + "/.mcp.json":                 `{"mcpServers":{"folders":` + server("folders-server") + `}}`,
		l.dir + "/.claude/settings.json":     `{"enableAllProjectMcpServers":true,` + hook("folders-hook") + `}`,
		l.home + "/.claude/settings.json":    `{` + hook("users-hook") + `}`,
		l.home + "/.claude.json":             `{"hasCompletedOnboarding":true,"mcpServers":{"users":` + server("users-server") + `},"projects":{"` + l.dir + `":{"mcpServers":{"own":` + server("users-server-here") + `}}}}`,
	} {
		l.put(t, path, text)
	}
	return l
}

var (
	claudeMarks = []string{"FOLDERS-INSTRUCTIONS", "USERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "FOLDERS-COMMAND"}
	claudeUsed  = map[string][]string{
		"none":                nil,
		"instructions":        {"FOLDERS-INSTRUCTIONS"},
		"skills":              {"FOLDERS-SKILL", "USERS-SKILL", "FOLDERS-COMMAND"},
		"tool_servers":        {"folders-server", "users-server", "users-server-here"},
		"provider":            nil,
		"instructions+skills": {"FOLDERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "FOLDERS-COMMAND"},
		"provider+settings":   {"folders-hook", "users-hook"},
		"all - skills":        {"FOLDERS-INSTRUCTIONS", "USERS-INSTRUCTIONS", "folders-server", "users-server", "users-server-here", "folders-hook", "users-hook"},
		"all - instructions":  {"FOLDERS-SKILL", "USERS-SKILL", "FOLDERS-COMMAND", "folders-server", "users-server", "users-server-here", "folders-hook", "users-hook"},
		"all - tool_servers":  {"FOLDERS-INSTRUCTIONS", "USERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "FOLDERS-COMMAND", "folders-hook", "users-hook"},
		"all":                 {"FOLDERS-INSTRUCTIONS", "USERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "FOLDERS-COMMAND", "folders-server", "users-server", "users-server-here", "folders-hook", "users-hook"},
	}
)

// Each switch opens what it says and nothing else.
func TestRealClaude_UsesWhatItMay(t *testing.T) {
	t.Parallel()
	used(t, agent.Claude{}, api.TypeClaudeCode, claudeLived, claudeMarks, claudeUsed)
}

// The provider is that of the user's own settings when it may be: else nothing of it is known.
func TestRealClaude_ProviderOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		l := live(t, agenttest.RealClaude, agenttest.Say("end"))
		l.job.Env = slices.DeleteFunc(l.job.Env, func(v string) bool { return strings.HasPrefix(v, "ANTHROPIC_BASE_URL=") })
		l.job.Env = append(l.job.Env, "ANTHROPIC_BASE_URL=http://127.0.0.1:9") // where nobody is
		if err := os.Remove(l.home + "/.claude/.credentials.json"); err != nil {
			t.Fatal(err)
		}
		l.put(t, l.home+"/.claude/settings.json", `{"env":{"ANTHROPIC_BASE_URL":"`+l.model.URL+`","ANTHROPIC_AUTH_TOKEN":"`+agenttest.Key+`","MINE":"x"}}`)
		l.job.Uses.Provider = on
		r, err := agenttest.Run(t.Context(), t, agent.Claude{}, l.job, &agenttest.Host{})
		if err != nil || (r.Failure == nil) != on || len(l.model.Asked()) > 0 != on {
			t.Errorf("provider %v: %+v (%+v), %v, asked %d times", on, r, r.Failure, err, len(l.model.Asked()))
		}
	}
}

// A skill is read whole, and its script runs in the sandbox.
func TestRealClaude_SkillIsUsed(t *testing.T) {
	t.Parallel()
	l := live(t, agenttest.RealClaude, agenttest.Call{Tool: "Skill", Input: obj{"skill": "own:one"}}, agenttest.Say("end"))
	l.put(t, l.dir+"/.claude/skills/one/SKILL.md", skill("one", "FOLDERS-SKILL"))
	l.job.Uses.Skills = true
	r, err := agenttest.Run(t.Context(), t, agent.Claude{}, l.job, &agenttest.Host{Answer: agenttest.Approves})
	fine(t, r, err)
	if asked := l.model.Asked(); !strings.Contains(asked[len(asked)-1].Body, "BODY-FOLDERS-SKILL") {
		t.Error("the skill's text never came")
	}
}

func codexLived(t *testing.T) lived {
	t.Helper()
	l := live(t, agenttest.RealCodex, agenttest.Say("end"))
	server := func(name string) string {
		return fmt.Sprintf("[mcp_servers.%s]\ncommand = '/bin/sh'\nargs = ['-c', '%s']\n", name, l.touch(name))
	}
	for path, text := range map[string]string{
		l.dir + "/AGENTS.md": "FOLDERS-INSTRUCTIONS", l.home + "/.codex/AGENTS.md": "USERS-INSTRUCTIONS",
		l.dir + "/.agents/skills/one/SKILL.md": skill("one", "FOLDERS-SKILL"), l.home + "/.agents/skills/two/SKILL.md": skill("two", "USERS-SKILL"),
		l.home + "/.codex/skills/three/SKILL.md": skill("three", "CODEX-SKILL"),
		l.dir + "/.codex/config.toml":            server("folders-server"), l.home + "/.codex/config.toml": server("users-server"),
	} {
		l.put(t, path, text)
	}
	l.job.Turn = "Please go on, with $one and $two." // named in a turn, a skill is loaded
	return l
}

func TestRealCodex_UsesWhatItMay(t *testing.T) {
	t.Parallel()
	used(t, agent.Codex{}, api.TypeCodex, codexLived, []string{"FOLDERS-INSTRUCTIONS", "USERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "CODEX-SKILL", "BODY-FOLDERS-SKILL", "BODY-USERS-SKILL"}, map[string][]string{
		"none":               nil,
		"instructions":       {"FOLDERS-INSTRUCTIONS"},
		"skills":             {"FOLDERS-SKILL", "USERS-SKILL", "BODY-FOLDERS-SKILL", "BODY-USERS-SKILL"},
		"tool_servers":       {"folders-server", "users-server"},
		"provider":           nil,
		"provider+settings":  {"USERS-INSTRUCTIONS"},
		"all - skills":       {"FOLDERS-INSTRUCTIONS", "USERS-INSTRUCTIONS", "folders-server", "users-server"},
		"all - instructions": {"USERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "CODEX-SKILL", "BODY-FOLDERS-SKILL", "BODY-USERS-SKILL", "folders-server", "users-server"},
		"all - tool_servers": {"FOLDERS-INSTRUCTIONS", "USERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "CODEX-SKILL", "BODY-FOLDERS-SKILL", "BODY-USERS-SKILL"},
		"all":                {"FOLDERS-INSTRUCTIONS", "USERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "CODEX-SKILL", "BODY-FOLDERS-SKILL", "BODY-USERS-SKILL", "folders-server", "users-server"},
	})
}

func TestRealCodex_ProviderOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		l := live(t, agenttest.RealCodex, agenttest.Say("end"))
		l.job.Executable = l.job.Executable[:1]
		l.put(t, l.home+"/.codex/config.toml", `model_provider = "mine"`+"\n[model_providers.mine]\nname = 'mine'\nbase_url = '"+l.model.URL+"'\nwire_api = 'responses'\nrequires_openai_auth = true\nrequest_max_retries = 0\nstream_max_retries = 0\n"+
			"[model_providers.openai-custom]\nname = 'x'\nbase_url = 'http://127.0.0.1:9'\nwire_api = 'responses'\n")
		if !on { // else it would wait for the network
			l.job.Executable = append(l.job.Executable, "-c", "model_provider='nobody'", "-c", "model_providers.nobody={name='nobody',base_url='http://127.0.0.1:9',wire_api='responses',request_max_retries=0,stream_max_retries=0}")
		}
		l.job.Uses.Provider = on
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		r, err := agenttest.Run(ctx, t, agent.Codex{}, l.job, &agenttest.Host{})
		cancel()
		if on && (err != nil || r.Failure != nil) || len(l.model.Asked()) > 0 != on {
			t.Errorf("provider %v: %+v (%+v), %v, asked %d times", on, r, r.Failure, err, len(l.model.Asked()))
		}
	}
}

func opencodeLived(t *testing.T) lived {
	t.Helper()
	l := live(t, agenttest.RealOpencode, agenttest.Say("end"))
	servers := func(name string) string {
		return `{ // as its users write it
"mcp":{"` + name + `":{"type":"local","command":["/bin/sh","-c","` + l.touch(name) + `"],"enabled":true},},}`
	}
	for path, text := range map[string]string{
		l.dir + "/AGENTS.md":                   "FOLDERS-INSTRUCTIONS",
		l.dir + "/.agents/skills/one/SKILL.md": skill("one", "FOLDERS-SKILL"), l.home + "/.claude/skills/two/SKILL.md": skill("two", "USERS-SKILL"),
		l.dir + "/opencode.json": servers("folders-server"), l.home + "/.config/opencode/opencode.jsonc": servers("users-server"),
	} {
		l.put(t, path, text)
	}
	return l
}

func TestRealOpencode_UsesWhatItMay(t *testing.T) {
	t.Parallel()
	used(t, agent.ACP{}, api.TypeACP, opencodeLived, []string{"FOLDERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL"}, map[string][]string{
		"none":               nil,
		"instructions":       {"FOLDERS-INSTRUCTIONS"},
		"skills":             {"FOLDERS-SKILL", "USERS-SKILL"},
		"tool_servers":       {"folders-server", "users-server"},
		"all - tool_servers": {"FOLDERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL"},
		"all":                {"FOLDERS-INSTRUCTIONS", "FOLDERS-SKILL", "USERS-SKILL", "folders-server", "users-server"},
	})
}
