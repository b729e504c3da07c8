package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// Claude drives Claude Code by stream-json over both of its streams. Tested with
// 2.1.328 and 2.1.332; older ones may lack what the policy rests on.
//
// The program keeps its sign-in, its transcripts and its state where its user has
// them; it writes nothing to [Job.StateDir].
type Claude struct{}

// What Claude Code offers that reaches out of the session: other sessions of the
// user, schedules of its own, other folders, devices. It is switched off.
var claudeForbidden = []string{
	"CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger", "PushNotification",
	"SendMessage", "ListAgents", "EnterWorktree", "ExitWorktree",
}

// The model's keys, which no command that the agent runs needs.
var claudeKeys = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS",
	"AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "CLAUDE_CODE_MESSAGING_TOKEN",
}

// Command starts claude -p. The trusted text is an argument, what people wrote isn't.
func (Claude) Command(job Job) (Command, error) {
	job = claudeJob(job)
	argv := slices.Clone(job.Executable)
	if len(argv) == 0 {
		argv = []string{"claude"}
	}
	if job.Session == "" && !isID(job.Begin) {
		return Command{}, &Refusal{api.Failure{Code: CodeCrashed, Message: "A new agent session of Claude Code needs a UUID to begin with."}}
	}
	argv = append(argv, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
		"--permission-mode", "default", "--permission-prompt-tool", "stdio", "--max-turns", fmt.Sprint(job.rounds()))
	if job.Session != "" {
		argv = append(argv, "--resume", job.Session)
	} else {
		argv = append(argv, "--session-id", job.Begin)
	}
	if !job.OwnSettings {
		argv = append(argv, "--setting-sources", "", "--strict-mcp-config")
	}
	if job.System != "" {
		argv = append(argv, "--append-system-prompt", job.System)
	}
	if job.Model != "" {
		argv = append(argv, "--model", job.Model)
	}
	settings, err := json.Marshal(claudeSettings(job), json.Deterministic(true))
	if err != nil {
		return Command{}, fmt.Errorf("encode the settings for Claude Code: %w", err)
	}
	off := claudeForbidden
	if job.Policy.Unattended {
		off = append(slices.Clone(off), "AskUserQuestion")
	}
	argv = append(argv, "--settings", string(settings), "--disallowedTools", strings.Join(off, ","))
	return Command{
		Argv: argv,
		Env: []string{
			"DISABLE_AUTOUPDATER=1",           // the program stays the one that was looked at
			"CLAUDE_CODE_ENABLE_TODO_TOOLS=1", // else it makes no plan
			"CLAUDE_CODE_STARTUP_FAILURE_RESULTS=1",
		},
		Unheld: claudeUnheld(job),
	}, nil
}

// Converse holds the conversation.
func (Claude) Converse(ctx context.Context, pipes Pipes, job Job, host Host) (Result, error) {
	t := newClaudeTalk(ctx, pipes, claudeJob(job), host)
	defer t.end()
	return t.run()
}

// claudeJob hides the program's own sign-in from the agent too.
func claudeJob(job Job) Job {
	dir := variable(job.Env, "CLAUDE_CONFIG_DIR")
	if home := variable(job.Env, "HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".claude")
	}
	if dir != "" {
		job.Hidden = append(slices.Clone(job.Hidden), filepath.Join(dir, ".credentials.json"))
	}
	return job
}

// rounds is how many rounds with the model one turn may take.
func (j Job) rounds() int {
	if j.MaxTurns <= 0 {
		return 200
	}
	return j.MaxTurns
}

// claudeSandbox says whether Claude Code can confine commands here. On Linux it
// needs two programs, which Debian calls bubblewrap and socat.
func claudeSandbox(job Job) bool {
	if job.boundless() {
		return false
	}
	if onMac {
		return true
	}
	_, bwrap := lookPath(job.Env, "bwrap")
	_, socat := lookPath(job.Env, "socat")
	return onLinux && bwrap && socat
}

// boundless says whether the owner allowed everything that a sandbox would keep from.
func (j Job) boundless() bool {
	return j.Policy.open(Filesystem) && j.Policy.open(Network) && j.Policy.open(Shell)
}

// claudeSettings are the settings that win over every file of the user and of the
// work folder. The policy's rules aren't among them: the program asks about each
// tool call before it runs (see claudeTalk.hook), whatever its settings allow.
func claudeSettings(job Job) map[string]any {
	hidden := make([]string, 0, 2*len(job.Hidden))
	for _, path := range job.hiddenPaths() {
		hidden = append(hidden, "Read(/"+path+")", "Read(/"+path+"/**)", "Edit(/"+path+")", "Edit(/"+path+"/**)")
	}
	out := map[string]any{
		"autoMemoryEnabled": job.OwnSettings, // what one session notes would be an order to the next
		"permissions":       map[string]any{"deny": hidden, "disableBypassPermissionsMode": "disable"},
	}
	if !claudeSandbox(job) {
		out["sandbox"] = map[string]any{"enabled": false}
		return out
	}
	keys := make([]map[string]any, len(claudeKeys))
	for i, name := range claudeKeys {
		keys[i] = map[string]any{"name": name, "mode": "deny"}
	}
	files := map[string]any{"denyRead": job.hiddenPaths(), "denyWrite": job.hiddenPaths()}
	switch {
	case job.Policy.shut(Filesystem):
		files["denyWrite"] = append([]string{resolve(job.Dir)}, job.hiddenPaths()...)
	case job.Policy.open(Filesystem):
		files["allowWrite"] = []string{"/"}
	}
	network := map[string]any{"strictAllowlist": job.Permissions == Autonomous || job.Policy.Unattended || job.Policy.shut(Network)}
	if job.Policy.open(Network) {
		network["allowedDomains"] = []string{"*"}
	}
	out["sandbox"] = map[string]any{
		"enabled": true, "failIfUnavailable": true, "autoAllowBashIfSandboxed": true,
		"allowUnsandboxedCommands": job.Permissions != Autonomous,
		"filesystem":               files, "network": network,
		"credentials": map[string]any{"envVars": keys},
	}
	return out
}

// hiddenPaths are the hidden paths, as given and with links resolved.
func (j Job) hiddenPaths() []string {
	out := []string{}
	for _, path := range j.Hidden {
		out = append(out, path)
		if real := resolve(path); real != path {
			out = append(out, real)
		}
	}
	return out
}

// claudeUnheld says what of the policy nothing enforces here.
func claudeUnheld(job Job) []string {
	if claudeSandbox(job) || job.boundless() {
		return nil
	}
	missing := "Claude Code has no sandbox here: it needs bubblewrap and socat in the agent's PATH. "
	if !onLinux {
		missing = "Claude Code has no sandbox on this system. "
	}
	out := []string{missing + "A command that is allowed can read and write whatever the worker's user can, the worker's own files and the model's key included."}
	if job.Policy.shut(Network) {
		out = append(out, "The refusal of the network holds for Claude Code's web tools and the usual programs, not for every command.")
	}
	return out
}
