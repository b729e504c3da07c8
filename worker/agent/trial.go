package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// Trial is a command that ends well where a program's sandbox can start commands, nil where it
// has none or brings along what it needs.
func Trial(kind api.AgentType, policy Policy, env []string) []string {
	if kind != api.TypeClaudeCode || !onLinux || !claudeSandbox(Job{Env: env, Policy: policy}) {
		return nil
	}
	return []string{"bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--die-with-parent", "true"}
}

// CodexNeedsAccount asks Codex whether the model provider that it is started with needs a
// sign-in to Codex. argv is what to start, env its exact environment.
func CodexNeedsAccount(ctx context.Context, argv, env []string) (bool, error) {
	argv = append(slices.Clone(argv), "app-server")
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", env
	in, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	needs, err := askAccount(in, out)
	_ = in.Close() // which ends it; ctx does if that isn't enough
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	return needs, err
}

func askAccount(in io.Writer, out io.Reader) (bool, error) {
	for _, m := range []map[string]any{
		{"id": 1, "method": "initialize", "params": map[string]any{"clientInfo": map[string]any{"name": "stint", "title": "Stint", "version": "1"}, "capabilities": map[string]any{}}},
		{"method": "initialized"},
		{"id": 2, "method": "account/read", "params": map[string]any{}},
	} {
		line, err := json.Marshal(m)
		if err != nil {
			return false, err
		}
		if _, err := in.Write(append(line, '\n')); err != nil {
			return false, err
		}
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var answer struct {
			ID     int `json:"id"`
			Result struct {
				Needs *bool `json:"requiresOpenaiAuth"`
			} `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &answer, lenient) == nil && answer.ID == 2 && answer.Result.Needs != nil {
			return *answer.Result.Needs, nil
		}
	}
	return false, errors.New("Codex does not say whether it needs an account")
}
