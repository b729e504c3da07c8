package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"stint/api"
	"stint/worker/proc"
)

// The hooks, by their names in WORKFLOW.md and in STINT_HOOK.
const (
	AfterCreate  = "after_create"
	BeforeRun    = "before_run"
	AfterRun     = "after_run"
	BeforeRemove = "before_remove"
)

// Hooks are the owner's scripts and how they are run.
type Hooks struct {
	Scripts map[string]string // by hook; a missing or empty one is none
	Timeout time.Duration     // of each; 0 = 60 s
	Env     []string          // the exact environment, see [proc.Env]
	// Values are further variables: what people wrote reaches a script only here.
	Values map[string]string
	// Start starts the script's process; nil = [proc.Start]. A worker puts its record,
	// its stages and its deadline into the spec.
	Start func(context.Context, proc.Spec, proc.Sink) (*proc.Process, error)
	// Output gets what a hook prints, as it comes; may be nil.
	Output func(hook string, c proc.Chunk)
}

// HookError says that a hook failed: it ended with another exit code than 0, or not in time,
// or could not be started.
type HookError struct {
	Hook     string
	ExitCode int    // -1 when a signal ended it or it never started
	Excerpt  string // of what it printed: the beginning and the end
	Err      error  // nil when it ended by itself; context.DeadlineExceeded at its time limit
}

// Error is one line without the excerpt.
func (e *HookError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the hook %s did not finish: %s", e.Hook, e.why())
	}
	return fmt.Sprintf("the hook %s ended with exit code %d", e.Hook, e.ExitCode)
}

// why it did not finish, in words.
func (e *HookError) why() string {
	if errors.Is(e.Err, context.DeadlineExceeded) {
		return "it ran longer than its time limit"
	}
	return api.Plain(e.Err)
}

// Unwrap is why it did not finish.
func (e *HookError) Unwrap() error { return e.Err }

// run executes a hook in a folder. Nothing that it started is alive afterwards. It is nil when
// there is no such hook; else the error is a *HookError.
func (h Hooks) run(ctx context.Context, hook, dir, session string, more map[string]string) error {
	script := h.Scripts[hook]
	if strings.TrimSpace(script) == "" {
		return nil
	}
	limit := h.Timeout
	if limit <= 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	values := map[string]string{"STINT_HOOK": hook, "STINT_WORKSPACE_FOLDER": dir}
	maps.Copy(values, h.Values)
	maps.Copy(values, more)
	env, err := proc.Env(h.Env, names(h.Env), values)
	if err != nil {
		return &HookError{Hook: hook, ExitCode: -1, Err: err}
	}
	start := h.Start
	if start == nil {
		start = proc.Start
	}
	var out excerpt
	p, err := start(ctx, proc.Spec{Record: proc.NewRecord(session), Argv: []string{"sh", "-lc", script}, Dir: dir, Env: env}, func(c proc.Chunk) {
		out.add(c.Data)
		if h.Output != nil {
			h.Output(hook, c)
		}
	})
	if err != nil {
		return &HookError{Hook: hook, ExitCode: -1, Err: err}
	}
	r := p.Wait()
	if r.Success() {
		return nil
	}
	return &HookError{Hook: hook, ExitCode: r.ExitCode, Excerpt: out.String(), Err: r.Cause}
}

// names are the variables of an environment that proc.Env may pass on again.
func names(env []string) []string {
	var all []string
	for _, assignment := range env {
		if name, _, ok := strings.Cut(assignment, "="); ok && name != "" && !strings.HasPrefix(name, "STINT_") {
			all = append(all, name)
		}
	}
	return all
}

const (
	excerptHead = 2 << 10
	excerptTail = 6 << 10
)

// excerpt keeps the beginning and the end of an output.
type excerpt struct {
	head, tail []byte
	cut        bool
}

func (e *excerpt) add(p []byte) {
	n := min(len(p), excerptHead-len(e.head))
	e.head = append(e.head, p[:n]...)
	e.tail = append(e.tail, p[n:]...)
	if over := len(e.tail) - excerptTail; over > 0 {
		e.tail, e.cut = append(e.tail[:0], e.tail[over:]...), true
	}
}

// String marks what was left out between the two.
func (e *excerpt) String() string {
	text := string(e.head)
	if e.cut {
		text += "\n…\n"
	}
	return strings.ToValidUTF8(text+string(e.tail), "\ufffd")
}

// BeforeRun runs the hook before each try of the agent; if it fails, the try fails. The error
// is a *HookError or ErrMoved.
func (w *Workspace) BeforeRun(ctx context.Context) error {
	if err := w.Check(); err != nil {
		return err
	}
	return w.hook(ctx, BeforeRun)
}

// AfterRun runs the hook after each try, however it ended. Its failure is to be logged and
// changes nothing.
func (w *Workspace) AfterRun(ctx context.Context) error {
	if err := w.Check(); err != nil {
		return err
	}
	return w.hook(ctx, AfterRun)
}

func (w *Workspace) hook(ctx context.Context, hook string) error {
	return w.spec.Hooks.run(ctx, hook, w.Path, w.spec.Session, map[string]string{
		"STINT_BRANCH": w.Branch, "STINT_BASE": w.Base, "STINT_AGENT": w.spec.Agent, "STINT_SESSION_ID": w.spec.Session,
	})
}
