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
	mode, off := "default", claudeForbidden
	if job.PlanMode {
		mode, off = "plan", append(slices.Clone(off), "ExitPlanMode")
	}
	argv = append(argv, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--replay-user-messages",
		"--permission-mode", mode, "--permission-prompt-tool", "stdio", "--max-turns", fmt.Sprint(job.rounds()))
	if job.Session != "" {
		argv = append(argv, "--resume", job.Session)
	} else {
		argv = append(argv, "--session-id", job.Begin)
	}
	if job.System != "" {
		argv = append(argv, "--append-system-prompt", job.System)
	}
	if job.Model != "" {
		argv = append(argv, "--model", job.Model)
	}
	if job.Effort != "" {
		argv = append(argv, "--effort", job.Effort)
	}
	if job.FilesDir != "" {
		argv = append(argv, "--add-dir", job.FilesDir)
	}
	settings, err := json.Marshal(claudeSettings(job), json.Deterministic(true))
	if err != nil {
		return Command{}, fmt.Errorf("encode the settings for Claude Code: %w", err)
	}
	if job.Policy.Unattended {
		off = append(slices.Clone(off), "AskUserQuestion")
	}
	argv = append(argv, "--settings", string(settings), "--disallowedTools", strings.Join(off, ","))
	out := Command{
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
		Files: map[string]string{}, Links: map[string]string{}, Unheld: claudeUnheld(job),
	}
	if err := claudeUses(job, &out); err != nil {
		return Command{}, err
	}
	return out, claudeTools(job, &out)
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
	if all != "" && !job.Uses.Settings { // else it keeps memories among them
		job.talks = resolve(all)
	}
	return job.planned(claudeSandbox(Job{Env: job.Env}))
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

// boundless reports whether the owner allowed everything that a sandbox would prevent.
func (j Job) boundless() bool {
	return j.Policy.open(Filesystem) && j.Policy.open(Network) && j.Policy.open(Shell)
}

// Held is part of [Agent].
func (Claude) Held() []Hold {
	return []Hold{
		{Filesystem, "Claude Code's own file tools are judged by the file that they really change, links resolved; commands are kept to the work folder and temporary files by its sandbox, where there is one."},
		{Shell, "Every command is judged before it runs, taken apart as a shell would, however it is written; what a program or a script does by itself is not."},
		{Network, "Web tools are judged by address. Commands have no network in the sandbox unless all of it is allowed; without a sandbox only the usual programs are recognised."},
		{Workspace, "Calls of Stint's own tools are judged; what a session may do there at all is the coordinator's to say."},
		{SideEffects, "Commits, pushes, pull requests and publishing are recognised by the usual programs, foreign tool servers by name. A script that pushes is not: keep the network shut, or the keys away."},
	}
}
