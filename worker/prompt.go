package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stint/api"
)

const promptInEnv = 64 << 10 // bytes up to which the prompt is in the environment too

// promptFiles are the files in which a command finds its prompt.
type promptFiles struct {
	dir    string
	prompt string // path
	extra  string // path of the untrusted context, "" when there is none
	text   string
	given  string // the folder of files that came with it, "" when there are none
}

// writePrompt keeps the prompt in files that only the worker's user can read. It never goes
// into arguments, where everybody could read it. contract 10.10
func (p *Process) writePrompt(c api.Claim) (promptFiles, error) {
	dir, err := os.MkdirTemp(p.promptDir(), c.SessionID.String()+"-*") // 0700
	if err != nil {
		return promptFiles{}, fmt.Errorf("make the prompt's folder: %w", err)
	}
	f := promptFiles{dir: dir, prompt: filepath.Join(dir, "prompt"), text: c.Untrusted.Prompt}
	err = os.WriteFile(f.prompt, []byte(f.text), 0o600)
	if err == nil && c.Untrusted.Context != "" {
		f.extra = filepath.Join(dir, "context")
		err = os.WriteFile(f.extra, []byte(c.Untrusted.Context), 0o600)
	}
	if err != nil {
		return promptFiles{}, errors.Join(fmt.Errorf("write the prompt: %w", err), os.RemoveAll(dir))
	}
	return f, nil
}

func (f promptFiles) remove() { _ = os.RemoveAll(f.dir) } // the next start of the worker removes what is left

func (p *Process) promptDir() string { return filepath.Join(p.opts.StateDir, "prompts") }

// sweepPrompts empties the folder of prompts that an earlier process left behind.
func (p *Process) sweepPrompts() error {
	if err := os.RemoveAll(p.promptDir()); err != nil {
		return fmt.Errorf("remove old prompts: %w", err)
	}
	if err := os.Mkdir(p.promptDir(), 0o700); err != nil {
		return fmt.Errorf("make the folder of prompts: %w", err)
	}
	return nil
}

// sessionEnv returns the variables that tell an agent about its session; one that converses
// has no files. The only token among them is the run's own, which is void once the claim ends.
// contract 8.4, 10.4
func sessionEnv(c api.Claim, url, workspace string, f promptFiles, try int) map[string]string {
	env := map[string]string{
		"STINT_URL":          url,
		"STINT_WORKSPACE":    workspace,
		"STINT_AGENT":        c.Trusted.AgentSlug,
		"STINT_SESSION_ID":   c.SessionID.String(),
		"STINT_ATTEMPT":      fmt.Sprint(c.Session.Attempt),
		"STINT_TRY":          fmt.Sprint(try),
		"STINT_WORKER_ID":    c.WorkerID.String(),
		"STINT_FENCE":        fmt.Sprint(c.Fence),
		"STINT_TRIGGERED_BY": string(c.Session.TriggeredBy),
		"STINT_TRIGGERED_AT": c.Session.TriggeredAt.String(),
	}
	set := func(name, value string) {
		if value != "" && !strings.ContainsRune(value, 0) { // no variable can hold a NUL; the file can
			env[name] = value
		}
	}
	set("STINT_TOKEN", c.RunToken)
	set("STINT_PROMPT_FILE", f.prompt)
	if len(f.text) <= promptInEnv {
		set("STINT_PROMPT", f.text)
	}
	set("STINT_CONTEXT_FILE", f.extra)
	set("STINT_FILES", f.given)
	if c.Untrusted.Task != nil {
		set("STINT_TASK", c.Untrusted.Task.Key)
	}
	set("STINT_INSTRUCTIONS", c.Trusted.Instructions)
	return env
}
