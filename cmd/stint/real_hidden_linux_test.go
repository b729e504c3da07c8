//go:build agents

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent/agenttest"
)

// files has a script in the work folder print files whose paths from the root it is given,
// which no rule for a path can see.
const files = "cd /\ncat \"$@\"\n"

// The programs, signed in by files, work in a folder and in a worktree, for the worker of up
// and for one that was started separately beside a coordinator whose directory it can't guess.
// None of Stint's files is read in any way.
func TestReal_WorksAndReadsNoneOfStintsFiles(t *testing.T) {
	for _, mode := range []string{"folder", "worktree"} {
		for _, by := range []string{"up", "worker run"} {
			t.Run(mode+", "+by, func(t *testing.T) {
				eachProgram(t, nil, func(h *realHome) { h.readsNothing(mode, by) })
			})
		}
	}
}

func (h *realHome) readsNothing(mode, by string) {
	h.must(os.WriteFile(filepath.Join(h.folder, "script.sh"), []byte(files), 0o600))
	h.must(os.WriteFile(filepath.Join(h.folder, "own"), []byte("OWNFILE"), 0o600))
	run := h.agent["run"].(map[string]any)
	if run["workspace"] = mode; mode == "worktree" {
		for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "first"}} {
			cmd := exec.CommandContext(h.Context(), "git", args...)
			cmd.Dir = h.folder
			out, err := cmd.CombinedOutput()
			if err != nil {
				h.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
	}
	config, state := filepath.Join(h.dir, "config", "stint"), filepath.Join(h.dir, "state", "stint")
	h.env = append(h.env, "XDG_CONFIG_HOME="+filepath.Dir(config))
	for name, text := range map[string]string{
		filepath.Join(config, "agents", "other.toml"): "# " + agenttest.Private,
		filepath.Join(state, "credentials.json"):      `{"current":"","contexts":{"far":{"url":"http://far.example","issuer":"http://far.example","accessToken":"` + agenttest.Private + `"}}}`,
	} {
		h.must(os.MkdirAll(filepath.Dir(name), 0o700))
		h.must(os.WriteFile(name, []byte(text), 0o600))
	}
	p := h.coordinatorAnd(by)
	token, err := h.data().readToken()
	h.must(err)
	paths := []string{
		h.data().token(), h.data().database(), h.data().database() + "-wal", h.data().server(),
		filepath.Join(state, "credentials.json"), filepath.Join(config, "agents", "other.toml"),
	}
	worker := filepath.Join(state, "worker")
	if by == "up" {
		worker = h.data().worker()
	}
	paths = append(paths, filepath.Join(worker, "worker.db"), filepath.Join(worker, "worker.pid"))
	for _, name := range agenttest.Signed {
		paths = append(paths, filepath.Join(h.dir, name))
	}
	h.model.Then(h.reads(paths)...)
	h.model.Then(agenttest.Say("after"))
	c := p.client(nil)
	_, err = c.CreateAgent(h.Context(), h.agent)
	h.must(err)
	s, _, err := c.CreateSession(h.Context(), "real", api.SessionInput{Prompt: new("Please go on.")}, "")
	h.must(err)
	h.until("the session ends", func() bool {
		s, err = c.Session(h.Context(), s.ID)
		h.must(err)
		return s.Status.Terminal()
	})
	if s.Status != api.Complete || s.Result != "after" {
		h.Errorf("it ended as %s, %+v", s.Status, s.Error)
	}
	asked := h.model.Asked()
	told := asked[len(asked)-1].Body
	if !strings.Contains(told, "OWNFILE") || !strings.Contains(told, "42control") {
		h.Errorf("no command works: %s", lastOf(told, 3000))
	}
	for what, secret := range map[string]string{
		"the owner's token": token, "the database": "SQLite format", "a private file": agenttest.Private, "a sign-in": agenttest.Key, "the server's file": `"pid\":`,
	} {
		if strings.Contains(told, secret) {
			h.Errorf("%s was told: %s", what, lastOf(told, 3000))
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			h.Errorf("what should have been hidden isn't there: %v", err)
		}
	}
	p.stop()
}

// coordinatorAnd starts a coordinator, and a worker if it has none.
func (h *realHome) coordinatorAnd(by string) *program {
	if by == "up" {
		return h.serve(asIs, "up")
	}
	p := h.serve(asIs, "serve")
	token, err := h.data().readToken()
	h.must(err)
	apart := *h.home
	apart.env = append(slices.DeleteFunc(slices.Clone(h.env), func(v string) bool { return strings.HasPrefix(v, "STINT_DATA_DIR=") }),
		"STINT_URL="+p.ready(), "STINT_TOKEN="+token)
	apart.start(asIs, "worker", "run")
	return p
}

// reads are the steps in which the program tries to read files: by name in a command, by
// a script, by its own tool.
func (h *realHome) reads(paths []string) []agenttest.Step {
	command := func(text string) agenttest.Call {
		if h.agent["type"] == api.TypeClaudeCode {
			return agenttest.Call{Tool: "Bash", Input: map[string]any{"command": text, "description": "a command"}}
		}
		return agenttest.Call{Tool: "exec_command", Input: map[string]any{"cmd": text}}
	}
	var relative []string
	for _, path := range paths {
		relative = append(relative, "."+path)
	}
	out := []agenttest.Step{command("cat own; echo $((41+1))control"), command("cat " + paths[0]), command("sh script.sh " + strings.Join(relative, " "))}
	for _, path := range paths {
		if h.agent["type"] == api.TypeClaudeCode {
			out = append(out, agenttest.Call{Tool: "Read", Input: map[string]any{"file_path": path}})
		}
	}
	if h.agent["type"] == api.TypeCodex {
		out = append(out, agenttest.Call{Tool: "view_image", Input: map[string]any{"path": paths[0]}})
	}
	return out
}

// lastOf is the end of a request to the model, where the latest result is.
func lastOf(body string, most int) string {
	return body[max(0, len(body)-most):]
}
