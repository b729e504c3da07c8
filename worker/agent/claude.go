package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"stint/api"
)

// Claude drives Claude Code by stream-json over both of its streams. Tested with 2.1.328 and
// 2.1.332; older ones may lack what the policy depends on.
//
// The program keeps its sign-in, its transcripts and its state where its user has them; it
// writes nothing to [Job.StateDir].
type Claude struct{}

// Features of Claude Code that reach outside the session: the user's other sessions,
// schedules, other folders, devices. They are switched off.
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
			"DISABLE_AUTOUPDATER=1",           // the program stays the version that was checked
			"CLAUDE_CODE_ENABLE_TODO_TOOLS=1", // else it makes no plan
			// Nothing continues after a turn unnoticed: what was in the background, including
			// what the program moves there itself, would end with it, unfinished and
			// unreported.
			"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
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

// claudeJob also hides the files of the agent programs. Of the conversations only its own
// stays open: long answers of tools lie there, and are read piece by piece.
func claudeJob(job Job) Job {
	all := claudeTalks(job.Env)
	job.Hidden = slices.Concat(job.Hidden, slices.DeleteFunc(private(job.Env), func(path string) bool { return path == all }))
	if all != "" && !job.OwnSettings { // else it keeps memories among them
		job.talks = resolve(all)
	}
	return job
}

// claudeTalks is where Claude Code keeps its conversations: a folder for each work folder,
// and in that a file and a folder for each conversation, named by its id.
func claudeTalks(env []string) string {
	if dir := claudeHome(env); dir != "" {
		return filepath.Join(dir, "projects")
	}
	return ""
}

// claudeNamed matches what the folder names that Claude Code makes don't have.
var claudeNamed = regexp.MustCompile(`[^a-zA-Z0-9]`)

// claudeOwn is the folder of this conversation. For a very long work folder it has another
// name, and then only the program's tools can read it, commands can't.
func claudeOwn(job Job) string {
	return filepath.Join(job.talks, claudeNamed.ReplaceAllString(resolve(job.Dir), "-"), or(job.Session, job.Begin))
}

// claudeOthers are patterns for the conversations other than this one, including later ones:
// rules have no exceptions, so there is a pattern for each way to differ.
func claudeOthers(job Job) (out []string) {
	if job.talks == "" {
		return nil
	}
	const inNames = "0123456789abcdefghijklmnopqrstuvwxyz_.-" // small letters stand for both
	own := or(job.Session, job.Begin)
	for i := range own { // the program knows no negated classes
		others := strings.ReplaceAll(inNames, own[i:i+1], "")
		out = append(out, fmt.Sprintf("%s/*/%s[%s]*", job.talks, own[:i], others))
	}
	return out
}

// inTalks reports whether a path, links resolved, lies in the folder of all conversations, and
// whether in this one.
func (j Job) inTalks(full string) (any, own bool) {
	if j.talks == "" || !within(full, j.talks) {
		return false, false
	}
	parts := strings.Split(strings.TrimPrefix(full, j.talks), "/")
	return true, len(parts) > 2 && strings.HasPrefix(parts[2], or(j.Session, j.Begin))
}

// claudeHome is where Claude Code keeps its state, "" when that is unknown.
func claudeHome(env []string) string {
	if dir := variable(env, "CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	if home := variable(env, "HOME"); home != "" {
		return filepath.Join(home, ".claude")
	}
	return ""
}

// rounds is how many rounds with the model one turn may take.
func (j Job) rounds() int {
	if j.MaxTurns <= 0 {
		return 200
	}
	return j.MaxTurns
}

// claudeSandbox reports whether Claude Code can confine commands here. On Linux it needs two
// programs, which Debian calls bubblewrap and socat.
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

// boundless reports whether the owner allowed everything that a sandbox would prevent.
func (j Job) boundless() bool {
	return j.Policy.open(Filesystem) && j.Policy.open(Network) && j.Policy.open(Shell)
}

// claudeSettings are the settings that win over every file of the user and of the work folder.
// The policy's rules aren't among them: the program asks about each tool call before it runs
// (see claudeTalk.hook), whatever its settings allow.
func claudeSettings(job Job) map[string]any {
	hidden, parts, refused := job.hidden(), []string{}, []string{}
	for _, path := range hidden {
		parts = append(parts, beside(path, resolve(job.Dir))...)
	}
	// These rules have no exceptions. They keep out searches of enclosing folders; a call that
	// names a hidden file is refused earlier, see claudeTalk.hook.
	for _, part := range parts {
		refused = append(refused, "Read(/"+part+")", "Read(/"+part+"/**)", "Edit(/"+part+")", "Edit(/"+part+"/**)")
	}
	for _, pattern := range claudeOthers(job) {
		refused = append(refused, "Read(/"+pattern+")", "Edit(/"+pattern+")")
	}
	out := map[string]any{
		"autoMemoryEnabled": job.OwnSettings, // one session's notes would be orders to the next
		"permissions":       map[string]any{"deny": refused, "disableBypassPermissionsMode": "disable"},
	}
	if !claudeSandbox(job) {
		out["sandbox"] = map[string]any{"enabled": false}
		return out
	}
	keys := make([]map[string]any, len(claudeKeys))
	for i, name := range claudeKeys {
		keys[i] = map[string]any{"name": name, "mode": "deny"}
	}
	if job.Policy.open(Filesystem) { // then a hidden folder isn't opened again even for what may be written
		hidden = parts
	}
	files := map[string]any{"denyRead": hidden, "denyWrite": hidden}
	if job.talks != "" {
		files["denyRead"] = append(slices.Clone(hidden), job.talks)
		files["allowRead"] = []string{claudeOwn(job)}
	}
	switch {
	case job.Policy.shut(Filesystem):
		files["denyWrite"] = append([]string{resolve(job.Dir)}, hidden...)
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

// claudeUnheld says which parts of the policy nothing enforces here.
func claudeUnheld(job Job) []string {
	if claudeSandbox(job) {
		return nil
	}
	if job.boundless() {
		return []string{"Everything is allowed, so Claude Code runs commands without its sandbox: they can read the worker's own files and the model's key."}
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

// Held is part of [Agent].
func (Claude) Held() []Hold {
	return []Hold{
		{Filesystem, "Claude Code's own file tools are judged by the file that they really change, links resolved; commands are kept to the work folder and temporary files by its sandbox, where there is one."},
		{Shell, "Every command is judged before it runs, taken apart as a shell would; a program that it starts in turn is not."},
		{Network, "Web tools are judged by address. Commands have no network in the sandbox unless all of it is allowed; without a sandbox only the usual programs are recognised."},
		{Workspace, "Calls of Stint's own tools are judged; what a session may do there at all is the coordinator's to say."},
		{SideEffects, "Commits, pushes, pull requests and publishing are recognised by the usual programs, foreign tool servers by name. A script that pushes is not: keep the network shut, or the keys away."},
	}
}
