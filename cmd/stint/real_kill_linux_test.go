//go:build agents

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"stint/api"
	"stint/worker/agent/agenttest"
	"stint/worker/workertest"
)

// realHome has one of the real programs work for the real binary, including coordinator and
// worker.
type realHome struct {
	*home
	model  *agenttest.Model
	folder string
	agent  map[string]any // how the program's agent is made
}

// eachProgram runs a test for each program, whose model has the given commands run one after the
// other. For an empty command the model says nothing. Without any commands the test scripts
// the model itself.
func eachProgram(t *testing.T, commands []string, do func(h *realHome)) {
	programs(t, map[string]api.AgentType{"claude": api.TypeClaudeCode, "codex": api.TypeCodex}, commands, do)
}

// everyProgram does so also for opencode, which takes long to start.
func everyProgram(t *testing.T, commands []string, do func(h *realHome)) {
	programs(t, map[string]api.AgentType{"claude": api.TypeClaudeCode, "codex": api.TypeCodex, "opencode": api.TypeACP}, commands, do)
}

func programs(t *testing.T, all map[string]api.AgentType, commands []string, do func(h *realHome)) {
	t.Parallel()
	for program, kind := range all {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			var steps []agenttest.Step
			for _, text := range commands {
				switch {
				case text == "":
					steps = append(steps, agenttest.Hang{})
				case program == "claude":
					steps = append(steps, agenttest.Call{Tool: "Bash", Input: map[string]any{"command": text, "description": "a command"}})
				case program == "opencode":
					steps = append(steps, agenttest.Call{Tool: "bash", Input: map[string]any{"command": text, "description": "a command"}})
				default:
					steps = append(steps, agenttest.Call{Tool: "exec_command", Input: map[string]any{"cmd": text, "yield_time_ms": 20_000}})
				}
			}
			if commands != nil {
				steps = append(steps, agenttest.Say("after"))
			}
			m := agenttest.NewModel(t, steps...)
			h := &realHome{home: newHomeIn(t, agenttest.Folder(t)), model: m, folder: agenttest.Folder(t)}
			agenttest.SignIn(t, h.dir)
			start, env := []string{os.Getenv(agenttest.ClaudeVar)}, agenttest.ClaudeEnv(m)
			switch program {
			case "opencode":
				start, env = []string{os.Getenv(agenttest.OpencodeVar)}, agenttest.OpencodeEnv(m)
			case "codex":
				start, env = append([]string{os.Getenv(agenttest.CodexVar)}, agenttest.CodexArgs(m)...), nil
			}
			if start[0] == "" {
				t.Fatal("no program is named: run make test-agents")
			}
			executable := start[0] // by whose name it is known
			if len(start) > 1 {
				executable = workertest.Executable(t, start)
			}
			h.env = append(h.env, env...)
			names := slices.Clone(env)
			for i, v := range names {
				names[i], _, _ = strings.Cut(v, "=")
			}
			h.agent = map[string]any{"slug": "real", "type": kind, "run": map[string]any{
				"executable": executable, "workFolder": h.folder, "env": names,
				"rules": []map[string]any{{"area": "shell", "ruling": "allow"}},
			}}
			do(h)
		})
	}
}

// begin starts a session and waits until its first command has created a file.
func (h *realHome) begin(c *api.Client) api.Session {
	h.Helper()
	_, err := c.CreateAgent(h.Context(), h.agent)
	h.must(err)
	s, _, err := c.CreateSession(h.Context(), "real", api.SessionInput{Prompt: new("Please go on.")}, "")
	h.must(err)
	h.until("the first command runs", func() bool {
		_, err := os.Stat(filepath.Join(h.folder, "begun"))
		return err == nil
	})
	h.until("its agent session is known", func() bool {
		s, err = c.Session(h.Context(), s.ID)
		h.must(err)
		return s.AgentSessionID != ""
	})
	return s
}

// ends waits for a session to end well, under the same claim and in the same agent session.
func (h *realHome) ends(c *api.Client, was api.Session) {
	h.Helper()
	var s api.Session
	h.until("the session ends", func() (over bool) {
		var err error
		s, err = c.Session(h.Context(), was.ID)
		h.must(err)
		return s.Status.Terminal()
	})
	if s.Status != api.Complete || s.Result != "after" || s.AgentSessionID != was.AgentSessionID || s.Fence != was.Fence || s.Lapses != 0 {
		h.Errorf("it ended as %+v (%+v)", s, s.Error)
	}
}

// Coordinator and worker, one process, are killed with -9 while the program waits for its
// model: the next start continues the same agent session.
func TestReal_KilledAltogether(t *testing.T) {
	eachProgram(t, []string{"touch begun", ""}, func(h *realHome) {
		p := h.serve(asIs, "up")
		s := h.begin(p.client(nil))
		h.until("the model is asked again", func() bool { return len(h.model.Asked()) == 2 })
		p.kill()
		p.killed()
		p = h.serve(asIs, "up")
		h.ends(p.client(nil), s)
		asked := h.model.Asked()
		if !strings.Contains(asked[len(asked)-1].Body, "touch begun") {
			h.Error("the resumed session has forgotten what was said")
		}
		p.stop()
	})
}

// Only the coordinator is killed with -9 while a command runs: the program doesn't notice, and
// what it says meanwhile is reported later.
func TestReal_TheCoordinatorIsKilled(t *testing.T) {
	everyProgram(t, []string{"touch begun; cat go"}, func(h *realHome) {
		h.must(syscall.Mkfifo(filepath.Join(h.folder, "go"), 0o600))
		p := h.serve(asIs, "serve")
		worker := h.start(asIs, "worker", "run")
		s := h.begin(p.client(nil))
		p.kill()
		p.killed()
		f, err := os.OpenFile(filepath.Join(h.folder, "go"), os.O_WRONLY, 0)
		h.must(err)
		_, err = f.WriteString("said-meanwhile")
		h.must(err)
		h.must(f.Close())
		h.until("the model is told", func() bool { return len(h.model.Asked()) == 2 })
		p = h.start(asIs, "serve", "--addr", strings.TrimPrefix(p.ready(), "http://"))
		p.ready()
		h.ends(p.client(nil), s)
		if n := len(h.model.Asked()); n != 2 {
			h.Errorf("the model was asked %d times, not twice", n)
		}
		items, err := p.client(nil).Items(h.Context(), s.ID, 0, 0)
		h.must(err)
		if !slices.ContainsFunc(items.Items, func(it api.Item) bool {
			return it.Kind == api.ItemToolResult && strings.Contains(it.Text, "said-meanwhile")
		}) {
			h.Errorf("the transcript lacks what was said meanwhile: %+v", items.Items)
		}
		worker.stop()
		p.stop()
	})
}

// A command of the program prints 200 MB: what the program makes of that takes little of our
// memory.
func TestReal_TwoHundredMegabytes(t *testing.T) {
	const most = 150 << 20
	eachProgram(t, []string{"touch begun; yes 'a line of what a command prints, again and again' | head -c 200000000; echo printed"}, func(h *realHome) {
		p := h.serve(asIs, "up")
		h.ends(p.client(nil), h.begin(p.client(nil)))
		if _, peak := p.memory(); peak > most {
			h.Errorf("it took %d MB of memory", peak>>20)
		} else {
			h.Logf("memory at most %d MB", peak>>20)
		}
		asked := h.model.Asked()
		if !strings.Contains(asked[len(asked)-1].Body, "what a command prints") {
			h.Error("the command printed nothing")
		}
		p.stop()
	})
}
