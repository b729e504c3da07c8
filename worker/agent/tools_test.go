package agent_test

import (
	"slices"
	"strings"
	"testing"

	"stint/worker/agent"
	"stint/worker/agent/agenttest"
)

var toolServer = []string{"/opt/my stint", "mcp", "--run"}

// The programs are told how to start the server of Stint's tools, and nothing secret with it:
// it finds the run's token in their environment.
func TestTools_TheProgramsStartTheServerWithTheRunsToken(t *testing.T) {
	const secret = "stint_run_0123456789"
	claude := claudeJob(t.TempDir())
	claude.Env = append(claude.Env, "STINT_TOKEN="+secret)
	codex := codexJob(t.TempDir())
	codex.Env = append(codex.Env, "STINT_TOKEN="+secret)
	without := func() (string, string) {
		cmd, err := agent.Claude{}.Command(claude)
		if err != nil {
			t.Fatal(err)
		}
		start, err := started(t, codex)
		if err != nil {
			t.Fatal(err)
		}
		config := start.At("params", "config", "mcp_servers")
		if config == nil {
			config = ""
		}
		return strings.Join(cmd.Argv, "\n"), text(config)
	}
	if argv, config := without(); strings.Contains(argv, "--mcp-config") || config != `""` {
		t.Errorf("without tools: %s, %s", argv, config)
	}
	claude.Tools, codex.Tools = toolServer, toolServer
	argv, config := without()
	if want := "--mcp-config\n" + `{"mcpServers":{"stint":{"args":["mcp","--run"],"command":"/opt/my stint","type":"stdio"}}}`; !strings.Contains(argv, want) {
		t.Errorf("Claude Code is started with %s", argv)
	}
	for _, want := range []string{`"command":"/opt/my stint"`, `"args":["mcp","--run"]`, `"env_vars":["PATH","STINT_TOKEN"]`} {
		if !strings.Contains(config, want) {
			t.Errorf("Codex has %s, without %s", config, want)
		}
	}
	if strings.Contains(argv+config, secret) {
		t.Errorf("the token is in %s or %s", argv, config)
	}
}

// If the server can't be started, people learn that once, and the conversation goes on.
func TestTools_AServerThatDoesNotStartIsSaid(t *testing.T) {
	const words = "Stint's tools could not be started; the agent goes on without them."
	for _, c := range []struct {
		tools []string
		said  int
	}{{toolServer, 1}, {nil, 0}} {
		claude, codex := &agenttest.Host{}, &agenttest.Host{}
		job := claudeJob(t.TempDir())
		job.Tools = c.tools
		_, err := heldClaude(t, job, claude, func(p *peer) {
			greet(p)
			for range 2 {
				p.Say(obj{"type": "system", "subtype": "init", "mcp_servers": []any{obj{"name": "other", "status": "failed"}, obj{"name": "stint", "status": "failed"}}})
			}
			p.Say(result(nil))
			p.Wait()
		})
		if err != nil {
			t.Error(err)
		}
		job = codexJob(t.TempDir())
		job.Tools = c.tools
		_, err = heldCodex(t, job, codex, func(p *peer) {
			meet(p)
			for range 2 {
				p.Say(tells("mcpServer/startupStatus/updated", obj{"name": "stint", "status": "failed", "error": "no such program"}))
			}
			p.Say(turnEnds("tu", "completed", nil))
			p.Wait()
		})
		if err != nil {
			t.Error(err)
		}
		for name, seen := range map[string]agenttest.Seen{"Claude Code": claude.Seen(), "Codex": codex.Seen()} {
			told := slices.DeleteFunc(seen.Items, func(i agent.Item) bool { return !strings.HasPrefix(i.Text, words) })
			if len(told) != c.said {
				t.Errorf("with %q %s says it %d times: %s", c.tools, name, len(told), seen.Transcript())
			}
		}
	}
}
