//go:build agents

package main

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stint/api"
	"stint/worker/agent/agenttest"
)

// A comment that is made on the page of changes, by its forms, is what the next turn of the same
// agent session is told, with file and line; and what it does about it is in the changes.
func TestReal_ACommentOnTheChangesChangesTheCode(t *testing.T) {
	everyProgram(t, nil, func(h *realHome) {
		h.gitIn(h.folder, "init", "-q", "-b", "main")
		h.must(os.WriteFile(filepath.Join(h.folder, "code.txt"), []byte("nothing\n"), 0o600))
		h.gitIn(h.folder, "add", ".")
		h.gitIn(h.folder, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "first")
		h.agent["run"].(map[string]any)["workspace"] = "worktree"
		p := h.serve(asIs, "up")
		c := p.client(nil)
		_, err := c.CreateAgent(h.Context(), h.agent)
		h.must(err)
		h.model.Then(h.runs("echo WRONG > code.txt"))
		if h.agent["type"] != api.TypeACP { // it has no sandbox, and a command that names Stint's folders is refused whole
			h.model.Then(h.runs("echo x > ../../planted; echo x > ../planted; true"))
		}
		h.model.Then(agenttest.Say("one"))
		one, _, err := c.CreateSession(h.Context(), "real", api.SessionInput{Prompt: new("Please go on.")}, "")
		h.must(err)
		one = h.overOf(c, one.ID)
		if found, err := c.Changes(h.Context(), one.ID); err != nil || len(found.Files) != 1 || one.Result != "one" {
			h.Fatalf("the first turn ended as %+v, with %+v, %v; the agent was told %s", one, found, err, cameOf(h.model.Asked()))
		}

		h.model.Then(h.runs("echo RIGHT > code.txt"), agenttest.Say("two"))
		page := "/sessions/" + one.ID.String()
		h.posts(p, page+"/review", url.Values{"path": {"code.txt"}, "line": {"1"}, "side": {"new"}, "text": {"Make this right, please."}})
		h.posts(p, page+"/review/send", url.Values{"text": {"See my comment."}})
		var two api.Session
		h.until("the next turn ends", func() bool {
			list, err := c.Sessions(h.Context(), api.SessionFilter{ThreadID: one.ThreadID}, api.Page{})
			h.must(err)
			two = list.Items[0]
			return two.ID != one.ID && two.Status.Terminal()
		})
		if two.Status != api.Complete || two.Result != "two" || two.AgentSessionID != one.AgentSessionID || two.WorkPath != one.WorkPath {
			h.Errorf("it went on as %+v, after %+v", two, one)
		}
		asked := h.model.Asked()
		for _, words := range []string{"Make this right, please.", "See my comment.", "code.txt", "WRONG"} {
			if last := asked[len(asked)-1].Body; !strings.Contains(last, words) {
				h.Errorf("the agent isn't told %q", words)
			}
		}
		if code, err := os.ReadFile(filepath.Join(two.WorkPath, "code.txt")); err != nil || string(code) != "RIGHT\n" {
			h.Errorf("the code is %q, %v", code, err)
		}
		changes, err := c.Changes(h.Context(), two.ID)
		if err != nil || len(changes.Files) != 1 || !strings.Contains(changes.Files[0].Patch, "+RIGHT") {
			h.Errorf("the changes are %+v, %v", changes.Files, err)
		}
		for _, above := range []string{"..", "../.."} {
			if _, err := os.Stat(filepath.Join(two.WorkPath, above, "planted")); err == nil {
				h.Errorf("a command wrote to %s of its worktree, which is Stint's", above)
			}
		}
		p.stop()
	})
}

func (h *home) gitIn(dir string, args ...string) {
	h.Helper()
	cmd := exec.CommandContext(h.Context(), "git", append([]string{"-C", dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		h.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// runs is how the program's model asks for a command.
func (h *realHome) runs(command string) agenttest.Call {
	switch h.agent["type"] {
	case api.TypeClaudeCode:
		return agenttest.Call{Tool: "Bash", Input: map[string]any{"command": command, "description": "a command"}}
	case api.TypeACP:
		return agenttest.Call{Tool: "bash", Input: map[string]any{"command": command, "description": "a command"}}
	}
	return agenttest.Call{Tool: "exec_command", Input: map[string]any{"cmd": command, "yield_time_ms": 20_000}}
}

// posts sends a page's form, as the owner.
func (h *home) posts(p *program, path string, form url.Values) {
	h.Helper()
	r, err := http.NewRequestWithContext(h.Context(), http.MethodPost, p.ready()+path, strings.NewReader(form.Encode()))
	h.must(err)
	token, err := h.data().readToken()
	h.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	h.must(err)
	h.must(res.Body.Close())
	if to := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || strings.Contains(to, "signin") {
		h.Fatalf("the form to %s: status %d to %q", path, res.StatusCode, to)
	}
}

// cameOf is what came of the last tool call, as the model was told.
func cameOf(asked []agenttest.Asked) string {
	body := asked[len(asked)-1].Body
	if i := strings.LastIndex(body, `"tool_result"`); i >= 0 {
		return body[max(0, i-200):min(len(body), i+1500)]
	}
	return body
}
