package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stint/api"
)

// Codex drives the app-server of OpenAI's Codex by JSON-RPC. Tested with 0.169.0 and
// 0.171.0; the policy rests on permission profiles, which there are since 0.138.
//
// [Job.StateDir] is its CODEX_HOME: its threads lie there and none of the user's own
// settings. The sign-in is the user's: auth.json there is a link to theirs, through
// which Codex reads and renews it. With [Job.OwnSettings] the user's own CODEX_HOME
// is used instead.
type Codex struct{}

// Command starts codex app-server. What the conversation needs is said in it.
func (Codex) Command(job Job) (Command, error) {
	argv := slices.Clone(job.Executable)
	if len(argv) == 0 {
		argv = []string{"codex"}
	}
	out := Command{Argv: append(argv, "app-server"), Unheld: codexUnheld(job)}
	if job.OwnSettings {
		return out, nil
	}
	if !filepath.IsAbs(job.StateDir) {
		return Command{}, &Refusal{api.Failure{Code: CodeCrashed, Message: "Codex needs a folder of its own for its state."}}
	}
	if tmp := resolve(or(variable(job.Env, "TMPDIR"), "/tmp")); strings.HasPrefix(resolve(job.StateDir), tmp+"/") {
		return Command{}, &Refusal{api.Failure{Code: CodeCrashed, Message: "Codex runs no commands while its state lies below " + tmp + ": give the worker another state directory."}}
	}
	out.Env = []string{"CODEX_HOME=" + job.StateDir}
	out.Files = map[string]string{"sessions/.keep": ""} // what the sandbox hides must exist
	if auth := filepath.Join(codexHome(job.Env), "auth.json"); filepath.IsAbs(auth) {
		if _, err := os.Stat(auth); err == nil {
			out.Links = map[string]string{"auth.json": auth}
		}
	}
	return out, nil
}

// Converse holds the conversation.
func (Codex) Converse(ctx context.Context, pipes Pipes, job Job, host Host) (Result, error) {
	t := newCodexTalk(ctx, pipes, job, host)
	defer t.end()
	return t.run()
}

// codexHome is where the user's own Codex keeps its state, "" when that is unknown.
func codexHome(env []string) string {
	if home := variable(env, "CODEX_HOME"); home != "" {
		return home
	}
	if home := variable(env, "HOME"); home != "" {
		return filepath.Join(home, ".codex")
	}
	return ""
}

// codexConfined says whether Codex runs commands in its sandbox, which it brings along.
func codexConfined(job Job) bool { return !job.boundless() }

// codexApproval is when Codex asks before it leaves its sandbox.
func codexApproval(job Job) string {
	if job.Permissions == Autonomous || job.boundless() {
		return "never"
	}
	return "on-request"
}

// codexConfig is what a thread is started with; it wins over every file. hook is the
// command that puts each tool call to us before it runs, "" for none.
func codexConfig(job Job, hook string) map[string]any {
	out := map[string]any{
		"features": map[string]any{"default_mode_request_user_input": !job.Policy.Unattended, "apps": job.OwnSettings, "plugins": job.OwnSettings},
		"tools":    map[string]any{"update_plan": map[string]any{"enabled": true}},
		// The search runs at the model's side: whether it is used can't be asked.
		"web_search":                  map[bool]string{true: "live", false: "disabled"}[job.Policy.open(Network)],
		"check_for_update_on_startup": false,
		// The worker has chosen the environment; only the model's keys are no command's business.
		"shell_environment_policy": map[string]any{"inherit": "all", "ignore_default_excludes": true, "exclude": []string{"*OPENAI*KEY*", "CODEX_*KEY*", "CODEX_*TOKEN*"}},
	}
	if job.boundless() {
		out["default_permissions"] = ":danger-full-access"
	} else {
		out["default_permissions"], out["permissions"] = "stint", map[string]any{"stint": codexProfile(job)}
	}
	if !job.OwnSettings {
		out["projects"] = untrusted(job.Dir)
	}
	if hook != "" {
		out["bypass_hook_trust"] = true // nobody is there to review it; in a folder that isn't trusted no other runs
		out["hooks"] = map[string]any{"PreToolUse": []any{map[string]any{"hooks": []any{
			map[string]any{"type": "command", "command": hook, "timeout": hookTimeout},
		}}}}
	}
	return out
}

// hookTimeout is how long, in seconds, a tool call may wait for a person: as long as
// the session can.
const hookTimeout = 30 * 24 * 3600

// codexProfile is the sandbox for commands and changes of files.
func codexProfile(job Job) map[string]any {
	files := map[string]any{}
	for _, path := range codexHidden(job) {
		files[path] = "deny"
	}
	profile := map[string]any{"extends": ":workspace"}
	switch {
	case job.Policy.shut(Filesystem):
		profile["extends"] = ":read-only"
	case job.Policy.open(Filesystem):
		files[":root"] = "write"
	}
	if len(files) > 0 {
		profile["filesystem"] = files
	}
	if job.Policy.open(Network) {
		profile["network"] = map[string]any{"enabled": true}
	}
	return profile
}

// codexState is the CODEX_HOME of a conversation.
func codexState(job Job) string {
	if job.OwnSettings {
		return codexHome(job.Env)
	}
	return job.StateDir
}

// codexHidden are the paths that the sandbox hides: those of the job, Codex's sign-in
// and its other conversations. One that doesn't exist can't be hidden: the sandbox
// would make a file of its name.
func codexHidden(job Job) []string {
	home := codexState(job)
	var wanted []string
	for _, path := range job.hiddenPaths() {
		wanted = append(wanted, around(path, resolve(home))...)
	}
	for _, name := range []string{"auth.json", "sessions"} {
		if home != "" {
			path := filepath.Join(home, name)
			wanted = append(wanted, path, resolve(path))
		}
	}
	var out []string
	for _, path := range wanted {
		within := slices.ContainsFunc(wanted, func(other string) bool { return strings.HasPrefix(path, strings.TrimSuffix(other, "/")+"/") })
		if _, err := os.Stat(path); err == nil && !within && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// around is a path, or, when it holds kept, what lies in it beside kept: within a
// folder that Codex hides it can't open another, and its own helper, which starts each
// command, lies in its state folder.
func around(path, kept string) []string {
	if kept != path && !strings.HasPrefix(kept, strings.TrimSuffix(path, "/")+"/") {
		return []string{path}
	}
	entries, err := os.ReadDir(path)
	if err != nil || kept == path {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, around(filepath.Join(path, e.Name()), kept)...)
	}
	return out
}

// untrusted marks the work folder, the folders above it and the repository that it
// is a worktree of: in none of them Codex takes settings, hooks or tool servers from
// the files. Unmarked it would trust what it may write to.
func untrusted(dir string) map[string]any {
	out := map[string]any{}
	mark := func(dir string) {
		for {
			out[dir] = map[string]any{"trust_level": "untrusted"}
			if dir == filepath.Dir(dir) {
				return
			}
			dir = filepath.Dir(dir)
		}
	}
	mark(dir)
	mark(resolve(dir))
	for at := resolve(dir); ; at = filepath.Dir(at) {
		pointer, err := os.ReadFile(filepath.Join(at, ".git"))
		if gitDir, found := strings.CutPrefix(strings.TrimSpace(string(pointer)), "gitdir: "); err == nil && found {
			if !filepath.IsAbs(gitDir) {
				gitDir = filepath.Join(at, gitDir)
			}
			mark(resolve(gitDir))
		}
		if at == filepath.Dir(at) {
			return out
		}
	}
}

// codexUnheld says what of the policy nothing enforces here.
func codexUnheld(job Job) []string {
	var out []string
	if job.ruled() && len(job.Hook) == 0 {
		out = append(out, "Codex asks only before it leaves its sandbox: the rules for commands, files and side effects don't hold within it, because the worker offers no hook.")
	}
	if job.boundless() && len(job.Hidden) > 0 {
		out = append(out, "Everything is allowed, so Codex runs without a sandbox: it can read the worker's own files and the model's key.")
	}
	return out
}

// ruled says whether a rule is harder than what the sandbox allows by itself.
func (j Job) ruled() bool {
	return slices.ContainsFunc(j.Policy.Rules, func(r Rule) bool { return r.Ruling != Allow })
}

// shellQuote makes a text one word of a shell command.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
