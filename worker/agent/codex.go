package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"stint/api"
	"stint/worker/regular"
)

// Codex drives the app-server of OpenAI's Codex by JSON-RPC. Tested with 0.169.0 and 0.171.0;
// the policy depends on permission profiles, which exist since 0.138.
//
// [Job.StateDir] is its CODEX_HOME: it holds Codex's threads and none of the user's own
// settings. The sign-in is the user's: auth.json there is a link to theirs, through which
// Codex reads and renews it. With [Uses.Settings] the user's own CODEX_HOME is used instead.
type Codex struct{}

// Command starts codex app-server. The conversation's own settings are sent within it.
func (Codex) Command(job Job) (Command, error) {
	job = codexJob(job)
	argv := slices.Clone(job.Executable)
	if len(argv) == 0 {
		argv = []string{"codex"}
	}
	out := Command{Argv: append(argv, "app-server"), Unheld: codexUnheld(job)}
	if job.Uses.Settings {
		return out, nil
	}
	if !filepath.IsAbs(job.StateDir) {
		return Command{}, &Refusal{api.Failure{Code: CodeCrashed, Message: "Codex needs a folder of its own for its state."}}
	}
	if name := CodexProvider(job.Env); name != "" && !job.Uses.Provider {
		out.Notes = append(out.Notes, providerIgnored(name))
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
	t := newCodexTalk(ctx, pipes, codexJob(job), host)
	defer t.end()
	return t.run()
}

// codexJob also hides the files of the agent programs. Codex's own state is among them, except
// what the user keeps there for its commands.
func codexJob(job Job) Job {
	home := codexHome(job.Env)
	hidden := slices.DeleteFunc(private(job.Env), func(path string) bool { return job.Uses.Settings && path == home })
	if job.Uses.Settings && home != "" {
		for _, name := range []string{"auth.json", "config.toml", "history.jsonl", "sessions", "archived_sessions", "log"} {
			hidden = append(hidden, filepath.Join(home, name))
		}
	} else {
		hidden = append(hidden, job.StateDir, filepath.Join(home, "auth.json"))
	}
	job.Hidden = slices.Concat(job.Hidden, hidden)
	return job.planned(true)
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

// codexApproval says when Codex asks before it leaves its sandbox.
func codexApproval(job Job) string {
	if job.Permissions == Autonomous || job.boundless() {
		return "never"
	}
	return "on-request"
}

// codexConfig is what a thread is started with; it wins over every file. hook is the command
// that submits each tool call to us before it runs, "" for none.
func codexConfig(job Job, hook string) map[string]any {
	out := map[string]any{
		"features": map[string]any{"default_mode_request_user_input": !job.Policy.Unattended},
		"tools":    map[string]any{"update_plan": map[string]any{"enabled": true}},
		// The search runs on the model's side: there is no call to ask about.
		"web_search":                  map[bool]string{true: "live", false: "disabled"}[job.Policy.open(Network)],
		"check_for_update_on_startup": false,
		// The worker has chosen the environment; only the model's keys must be kept from
		// commands.
		"shell_environment_policy": map[string]any{"inherit": "all", "ignore_default_excludes": true, "exclude": []string{"*OPENAI*KEY*", "CODEX_*KEY*", "CODEX_*TOKEN*"}},
	}
	out["default_permissions"], out["permissions"] = "stint", map[string]any{"stint": codexProfile(job)}
	codexUses(job, out)
	if job.Effort != "" {
		out["model_reasoning_effort"] = job.Effort
	}
	if hook != "" {
		out["bypass_hook_trust"] = true // nobody is there to review it; in an untrusted folder no other hook runs
		out["hooks"] = map[string]any{"PreToolUse": []any{map[string]any{"hooks": []any{
			map[string]any{"type": "command", "command": hook, "timeout": hookTimeout},
		}}}}
	}
	return out
}

// hookTimeout is how long, in seconds, a tool call may wait for a person: as long as
// the session can.
const hookTimeout = 30 * 24 * 3600

// codexProfile is the sandbox for commands and changes of files. Where everything is allowed,
// it only keeps hidden paths hidden.
func codexProfile(job Job) map[string]any {
	profile, files := map[string]any{"extends": ":workspace"}, map[string]any{}
	switch {
	case job.boundless():
		delete(profile, "extends")
		files[":root"] = "write"
	case job.Policy.shut(Filesystem):
		profile["extends"] = ":read-only"
	case job.Policy.open(Filesystem):
		files[":root"] = "write"
	}
	if files[":root"] != nil {
		for _, path := range codexUnguarded {
			files[path] = "write"
		}
	}
	codexHide(job, files)
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
	if job.Uses.Settings {
		return codexHome(job.Env)
	}
	return job.StateDir
}

// codexHide adds what is hidden to the sandbox's files. Codex takes only paths without links:
// to hide one it mounts over it, and a link's name can't be mounted over. What doesn't exist
// can't be hidden either: the sandbox would create a file of that name.
//
// In a hidden folder only what may be written is opened again. That is the work folder, and
// the place of Codex's own helper, which starts each command from a folder below its state;
// the helper itself stays read-only, or a command could put another in its place. For a
// command that people let out of the sandbox, Codex opens nothing again: where there can be
// one, and in a work folder that can't be written, what lies beside the two is hidden piece by
// piece.
func codexHide(job Job, files map[string]any) {
	dir, scratch := resolve(job.Dir), resolve(filepath.Join(codexState(job), "tmp"))
	skills := resolve(filepath.Join(codexState(job), "skills")) // Codex's own, which its commands read
	whole := codexApproval(job) == "never" && !job.Policy.shut(Filesystem)
	for _, path := range job.hidden() {
		parts := []string{path}
		switch {
		case !within(dir, path) && !within(scratch, path):
		case !whole:
			parts = beside(path, dir, scratch, skills)
		case within(scratch, path):
			helpers := contents(scratch)
			if len(helpers) > 0 {
				files[scratch] = "write"
			}
			for _, helper := range helpers {
				files[helper] = "read"
			}
			fallthrough
		default:
			if within(dir, path) {
				files[dir] = "write"
			}
		}
		for _, part := range parts {
			if info, err := os.Lstat(part); err == nil && info.Mode()&os.ModeSymlink == 0 {
				files[part] = "deny"
			}
		}
	}
	codexPin(job, files)
}

// codexPin keeps the folders above a hidden path where they are. A command that may write
// there could move one away, and for the next command, whose sandbox is built anew, the hidden
// path would not exist. A folder listed as writable is mounted separately, and can't be moved.
func codexPin(job Job, files map[string]any) {
	writable := []string{resolve(job.Dir), resolve(os.TempDir()), "/tmp"}
	switch {
	case files[":root"] == "write":
		writable = []string{"/"}
	case job.Policy.shut(Filesystem):
		return
	}
	for _, path := range job.hidden() {
		for up := filepath.Dir(path); ; up = filepath.Dir(up) {
			if !slices.ContainsFunc(writable, func(root string) bool { return up != root && within(up, root) }) {
				break
			}
			if files[up] == nil && mayRename(up) {
				files[up] = "write"
				for _, guarded := range codexUnguarded {
					if _, err := os.Lstat(up + guarded); err != nil {
						files[up+guarded] = "write"
					}
				}
			}
		}
	}
}

// mayRename reports whether this user may rename what lies at a path.
func mayRename(path string) bool {
	return unix.Access(filepath.Dir(path), unix.W_OK) == nil
}

// codexUnguarded are the places in a folder, such as the root, that Codex would create and
// keep unwritable if the folder is listed as writable. Creating them fails where the user may
// not, and elsewhere leaves them behind.
var codexUnguarded = []string{"/.agents", "/.aws", "/.codex", "/.git"}

// untrusted marks the work folder, the folders above it and the repository that it is a
// worktree of: from none of them does Codex take settings, hooks or tool servers. Unmarked, it
// would trust whatever it may write to.
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
		pointer, err := regular.Read(filepath.Join(at, ".git"))
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

// codexUnheld says which parts of the policy nothing enforces here.
func codexUnheld(job Job) []string {
	var out []string
	if job.ruled() && len(job.Hook) == 0 {
		out = append(out, "Codex asks only before it leaves its sandbox: the rules for commands, files and side effects don't hold within it, because the worker offers no hook.")
	}
	return out
}

// ruled reports whether a rule is stricter than what the sandbox allows by itself.
func (j Job) ruled() bool {
	return slices.ContainsFunc(j.Policy.Rules, func(r Rule) bool { return r.Ruling != Allow })
}

// ShellQuote makes a text one word of a shell command.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Held is part of [Agent].
func (Codex) Held() []Hold {
	return []Hold{
		{Filesystem, "Codex's sandbox keeps commands and changes to the work folder and temporary files; .git and .codex are read-only in it, .claude and the like are not. Rules for single files hold for its patches, not for commands."},
		{Shell, "Every command is judged before it runs, taken apart as a shell would, however it is written; what a program or a script does by itself is not."},
		{Network, "Commands have no network in the sandbox, the loopback included, unless all of it is allowed. Web search is off unless all of it is allowed."},
		{Workspace, "Calls of Stint's own tools are judged; what a session may do there at all is the coordinator's to say."},
		{SideEffects, "The sandbox stops commits and pushes. Out of it, with a person's or a rule's leave, the usual programs are recognised."},
	}
}
