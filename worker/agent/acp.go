package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stint/api"
)

// ACP drives any program that speaks the Agent Client Protocol, version 1, over its standard
// streams. Tested with opencode 1.18.33 and Gemini CLI 0.61.0.
//
// The protocol is spoken here rather than by its library: that one ends the conversation at a
// line of more than 10 MiB and at a thousand updates that nobody has taken yet, and would be a
// second reader, with goroutines of its own, beside the one that every adapter has.
//
// The program keeps its sign-in, settings and conversations where its user has them. Nothing of
// the client's own is offered to it, neither files nor terminals: what it does it does itself,
// and asks first where it is set up to.
type ACP struct{}

// Command starts the program, set up to ask before it acts where that is known how to do.
func (ACP) Command(job Job) (Command, error) {
	job = job.planned(false)
	argv := slices.Clone(api.ACPCommand(job.Executable))
	if len(argv) == 0 || argv[0] == "" {
		return Command{}, &Refusal{api.Failure{Code: CodeCrashed, Message: "An agent of type acp needs the program that is to be started."}}
	}
	out := Command{Argv: argv}
	program, _ := api.ACPProgramOf(argv)
	var err error
	switch program.Name {
	case "opencode":
		err = setOpencode(job, &out)
	case "gemini":
		err = setGemini(job, &out)
	}
	if err != nil {
		return Command{}, err
	}
	out.Unheld = acpUnheld(job, program)
	return out, nil
}

// Converse holds the conversation.
func (ACP) Converse(ctx context.Context, pipes Pipes, job Job, host Host) (Result, error) {
	t := newACPTalk(ctx, pipes, acpJob(job), host)
	defer t.end()
	return t.run()
}

// acpJob also hides the files of the agent programs.
func acpJob(job Job) Job {
	job.Hidden = slices.Concat(job.Hidden, private(job.Env))
	return job.planned(false)
}

// setOpencode has opencode ask before each use of a tool but its own list of what to do, take no orders from the work folder
// and stay the version that it is. The trusted text becomes part of its system prompt: it is in
// a file named after what it says, as several conversations may share the folder.
func setOpencode(job Job, out *Command) error {
	asks := map[string]string{}
	for _, tool := range opencodeAsks {
		asks[tool] = "ask"
	}
	// Its plan; and what it asks besides about a tool that leaves the work folder, which it asks about
	// in any case.
	for _, tool := range []string{"todoread", "todowrite", "external_directory"} {
		asks[tool] = "allow"
	}
	asks["task"] = "deny" // what its helpers ask never gets here: they would wait for ever
	config := map[string]any{}
	// The owner may have set some of it by the same variable. What isn't JSON opencode refuses too.
	_ = json.Unmarshal([]byte(variable(job.Env, "OPENCODE_CONFIG_CONTENT")), &config, lenient)
	config["autoupdate"], config["share"] = false, "disabled"
	if file := acpInstructions(job); file != "" {
		out.Files = map[string]string{file: job.System}
		said, _ := config["instructions"].([]any)
		config["instructions"] = append(said, filepath.Join(job.StateDir, file))
	}
	opencodeUses(job, config, asks, out)
	permission, err := json.Marshal(asks, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode the permissions for opencode: %w", err)
	}
	content, err := json.Marshal(config, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode the settings for opencode: %w", err)
	}
	out.Env = append(out.Env, "OPENCODE_CONFIG_CONTENT="+string(content), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1")
	if !job.Uses.Settings || job.PlanMode {
		out.Env = append(out.Env, "OPENCODE_PERMISSION="+string(permission))
	}
	return nil
}

// opencodeAsks are the permissions of opencode. Each is named: a star alone would lose to what
// its user's settings say of one of them.
var opencodeAsks = []string{
	"*", "bash", "codesearch", "doom_loop", "edit", "glob", "grep", "list", "lsp", "read", "skill", "webfetch", "websearch",
}

// acpInstructions is the file below the adapter's folder that holds the trusted text, "" where
// there is no text or no folder.
func acpInstructions(job Job) string {
	if job.System == "" || !filepath.IsAbs(job.StateDir) {
		return ""
	}
	return fmt.Sprintf("instructions/%x.md", sha256.Sum256([]byte(job.System)))
}

// setGemini keeps Gemini CLI from settings, hooks and tool servers of the work folder, which it
// takes from folders that it trusts, and from updating itself. Its file wins over its user's,
// where Gemini CLI takes it: 0.61.0 does only if root owns the folder that it is in.
func setGemini(job Job, out *Command) error {
	if !filepath.IsAbs(job.StateDir) || job.Uses.Settings {
		return nil
	}
	settings, err := json.Marshal(map[string]any{
		"general":  map[string]any{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
		"security": map[string]any{"folderTrust": map[string]any{"enabled": true}, "disableYoloMode": true},
		"privacy":  map[string]any{"usageStatisticsEnabled": false},
	}, json.Deterministic(true), jsontext.Multiline(true))
	if err != nil {
		return fmt.Errorf("encode the settings for Gemini CLI: %w", err)
	}
	out.Files = map[string]string{"gemini.json": string(settings)}
	out.Env = []string{"GEMINI_CLI_SYSTEM_SETTINGS_PATH=" + filepath.Join(job.StateDir, "gemini.json")}
	return nil
}

// acpUnheld says which parts of the policy nothing enforces here.
func acpUnheld(job Job, program api.ACPProgram) []string {
	name := or(program.Word, "This program")
	if program.Name == "opencode" && !job.Uses.Settings {
		return []string{"opencode has no sandbox: a command that is allowed can do whatever the worker's user can. Give it a wrapper, such as bubblewrap, to fence it in."}
	}
	out := []string{name + " asks only before what its own settings make it ask, and has no sandbox that the worker knows of: whatever it does without asking is not judged. Give it a wrapper, such as bubblewrap, to fence it in."}
	if program.Name == "gemini" && !job.Uses.Settings && os.Geteuid() != 0 {
		// Seen of 0.61.0, which says so itself ("Skipping system settings file").
		out = append(out, "Gemini CLI takes the worker's settings for it only from a folder that root owns: whether it trusts the work folder, whose settings can start programs, is as your own settings of it say. By themselves they don't.")
	}
	return out
}

// acpName is what people know the program of a job by.
func acpName(job Job) string {
	if p, known := api.ACPProgramOf(job.Executable); known {
		return p.Word
	}
	if len(job.Executable) > 0 {
		return strings.TrimSpace(filepath.Base(job.Executable[0]))
	}
	return "The program"
}

// Held is part of [Agent].
func (ACP) Held() []Hold {
	return []Hold{
		{Filesystem, "What the program asks about is judged by the files that it names, links resolved. What it does without asking, and what its commands do, nothing holds: give it a wrapper."},
		{Shell, "A command that the program asks about is judged before it runs, taken apart as a shell would. opencode is set up to ask about each; others ask as their own settings say."},
		{Network, "Addresses that the program asks about are judged, and of commands the usual programs are recognised. Nothing else holds: give it a wrapper without a network."},
		{Workspace, "Calls of Stint's own tools are judged where the program asks about them; what a session may do there at all is the coordinator's to say."},
		{SideEffects, "Commits, pushes, pull requests and publishing are recognised by the usual programs in commands that are asked about. A script that pushes is not: keep the keys away."},
	}
}
