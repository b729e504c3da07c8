package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"stint/api"
	"stint/web"
)

// agentFlags are the settings of an agent as flags. Only those that were given go into a body,
// so that the coordinator's defaults apply to the others.
type agentFlags struct {
	fields []agentField // those whose flag is their value

	slug, kind, run, check, expect, folder, prompt, overlap string
	labels, env, updates                                    []string
	paused, strict                                          bool

	preset, executable, model, permissions string // of agents that converse
	effort                                 string
	planMode                               bool
	models                                 []string
	target, branch                         string
	unattended                             bool
	maxTurns, sessionLimit, dailyLimit     int64
	rules                                  []api.RunRule
}

// agentField is a field of an agent that a flag sets as it stands.
type agentField struct {
	flag, name string
	value      func() any
}

func (f *agentFlags) text(flags *pflag.FlagSet, flag, field, usage string) {
	value := flags.String(flag, "", usage)
	f.fields = append(f.fields, agentField{flag, field, func() any { return *value }})
}

func (f *agentFlags) number(flags *pflag.FlagSet, flag, field, usage string) {
	value := flags.Int64(flag, 0, usage)
	f.fields = append(f.fields, agentField{flag, field, func() any { return *value }})
}

func (f *agentFlags) seconds(flags *pflag.FlagSet, flag, field, usage string) {
	var value int64
	flags.Var(seconds{&value}, flag, usage)
	f.fields = append(f.fields, agentField{flag, field, func() any { return value }})
}

func (f *agentFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.kind, "type", "", "the `TYPE` of agent: "+api.AgentTypeNames())
	flags.StringVar(&f.run, "run", "", "the command and its arguments as one `TEXT`, quoted as in a\nshell; no shell reads it")
	flags.StringVar(&f.check, "check", "", "a command that is run after it ended well and decides\nwhether that counts, as one `TEXT`")
	flags.StringVar(&f.expect, "expect", "", "what must come of a run, else it is marked:\nchanges in its repository, or output:`PATTERN`")
	flags.BoolVar(&f.strict, "strict", false, "a run without what is expected fails")
	flags.StringVar(&f.folder, "work-folder", "", "the `DIR` it runs in (this one)")
	f.addTalk(flags)
	f.text(flags, "schedule", "schedule", "when it runs: a cron `EXPR`, @daily, @every 90m")
	f.text(flags, "tz", "timeZone", "the `ZONE` the schedule is read in (this machine's)")
	flags.StringVar(&f.prompt, "prompt", "", "the `TEXT` for each run that brings no prompt of its own; - reads stdin")
	f.text(flags, "name", "name", "a `NAME` for people")
	f.text(flags, "description", "description", "a `TEXT` that says what it is for")
	f.text(flags, "instructions", "instructions", "a trusted `TEXT` for the agent")
	f.text(flags, "catch-up", "catchUp", "slots missed while away: latest or none")
	f.seconds(flags, "catch-up-window", "catchUpWindowSeconds", "how old a missed slot may be; 0 is no limit")
	flags.StringVar(&f.overlap, "overlap", "", "a slot during a run: skip, queue_one, allow, replace")
	f.seconds(flags, "jitter", "jitterSeconds", "delay each scheduled run by up to this")
	f.number(flags, "max-concurrent", "maxConcurrent", "how many sessions run at once")
	f.number(flags, "priority", "priority", "higher goes first")
	flags.StringArrayVar(&f.labels, "label", nil, "a `LABEL` that its workers must have; repeat for more")
	f.seconds(flags, "lease", "leaseSeconds", "how long a claim lasts without renewal")
	f.seconds(flags, "reclaim-delay", "reclaimDelaySeconds", "how long a lapsed session waits for its next claim")
	f.seconds(flags, "turn-timeout", "turnTimeoutSeconds", "the longest turn; 0 is off")
	f.seconds(flags, "stall-timeout", "stallTimeoutSeconds", "the longest silence; 0 is off")
	f.seconds(flags, "queue-timeout", "queueTimeoutSeconds", "the longest wait for a worker; 0 is none")
	f.number(flags, "max-lapses", "maxLapses", "after how many lapses a session ends in error")
	flags.StringSliceVar(&f.updates, "task-updates", nil, "what of its sessions may change the state of their tasks:\n"+joined(api.TaskUpdates)+" (all)")
	flags.StringArrayVar(&f.env, "env", nil, "the `NAME` of a variable to pass on; repeat for more")
	flags.BoolVar(&f.paused, "paused", false, "make or leave it paused")
}

// agentBody is the JSON of the flags that were given.
func (c *cli) agentBody(flags *pflag.FlagSet, f *agentFlags, what string) (map[string]any, error) {
	body := map[string]any{}
	set := func(flag, member string, value any) {
		if flags.Changed(flag) {
			body[member] = value
		}
	}
	for _, field := range f.fields {
		set(field.flag, field.name, field.value())
	}
	set("slug", "slug", f.slug)
	set("type", "type", strings.ReplaceAll(f.kind, "-", "_"))
	set("overlap", "overlap", strings.ReplaceAll(f.overlap, "-", "_"))
	set("label", "labels", nonEmpty(f.labels))
	set("task-updates", "taskUpdates", nonEmpty(strings.Split(strings.ReplaceAll(strings.Join(f.updates, ","), "-", "_"), ",")))
	set("paused", "paused", f.paused)
	set("session-limit", "sessionSpendLimitMicros", f.sessionLimit)
	set("daily-limit", "dailySpendLimitMicros", f.dailyLimit)
	if flags.Changed("prompt") {
		text, err := c.promptText(f.prompt)
		if err != nil {
			return nil, usage(what, "--prompt: "+err.Error(), "")
		}
		body["prompt"] = text
	}
	run, err := c.runBlock(flags, f, what)
	if err != nil {
		return nil, err
	}
	if len(run) > 0 {
		body["run"] = run
	}
	return body, nil
}

// runBlock is the part of the body that says what is executed.
func (c *cli) runBlock(flags *pflag.FlagSet, f *agentFlags, what string) (map[string]any, error) {
	run := map[string]any{}
	if flags.Changed("run") {
		words, err := web.SplitCommand(f.run)
		if err != nil {
			return nil, usage(what, "--run: "+err.Error(), `quote it as in a shell: --run "sh -c 'make && make install'"`)
		}
		if len(words) == 0 {
			return nil, usage(what, "--run names no command", "--run 'COMMAND ARG…'")
		}
		c.warnShell(words)
		run["command"] = words
	}
	if flags.Changed("check") {
		words, err := web.SplitCommand(f.check)
		if err != nil {
			return nil, usage(what, "--check: "+err.Error(), "--check 'COMMAND ARG…'")
		}
		c.warnShell(words)
		if run["check"] = words; len(words) == 0 {
			run["check"] = nil // cleared
		}
	}
	if flags.Changed("expect") {
		run["expect"] = f.expect
	}
	if flags.Changed("strict") {
		run["strict"] = f.strict
	}
	if flags.Changed("work-folder") {
		abs, err := filepath.Abs(f.folder)
		if err != nil || f.folder == "" {
			return nil, usage(what, "--work-folder names no folder", "--work-folder DIR")
		}
		c.warnFolder(abs)
		run["workFolder"] = abs
	}
	if flags.Changed("env") {
		run["env"] = nonEmpty(f.env)
	}
	return run, f.talkBlock(flags, run, what)
}

// proposeFolder suggests running an agent in the current folder, unless a flag says where.
func (c *cli) proposeFolder(body map[string]any) {
	run, ok := body["run"].(map[string]any)
	converses := body["type"] != nil && body["type"] != string(api.TypeCommand)
	if !ok && converses {
		run = map[string]any{}
		body["run"] = run
	}
	if run["workFolder"] != nil || run["command"] == nil && !converses {
		return
	}
	if here, err := os.Getwd(); err == nil {
		run["workFolder"] = here
	}
}

// proposeZone reads a schedule in this machine's zone, unless a flag says which.
func (c *cli) proposeZone(body map[string]any) {
	if body["schedule"] != nil && body["schedule"] != "" && body["timeZone"] == nil {
		body["timeZone"] = c.machineZone()
	}
}

// warnShell warns people who write shell syntax that no shell will read it.
func (c *cli) warnShell(words []string) {
	for _, w := range words {
		switch w {
		case "|", "||", "&&", ";", "&", ">", ">>", "<", "2>&1":
			c.hint("%s", c.errLook.sgr("33", fmt.Sprintf("! %s is passed on as an argument: no shell reads the command. Write --run \"sh -c '…'\" if you want one.", w)))
			return
		}
	}
}

// warnFolder warns early of a folder that doesn't exist; the worker checks it again at each
// run.
func (c *cli) warnFolder(folder string) {
	if c.env("STINT_URL") != "" {
		return // the worker may be on another machine
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		c.hint("%s", c.errLook.sgr("33", fmt.Sprintf("! %s is no folder now; runs fail until it is.", plain(folder))))
	}
}

// longestPrompt is the most that the coordinator accepts as the body of a request.
const longestPrompt = 1 << 20

// promptText is a prompt given as an argument; "-" reads it from stdin.
func (c *cli) promptText(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	text, err := io.ReadAll(io.LimitReader(c.in, longestPrompt+1))
	if err != nil {
		return "", fmt.Errorf("read it from stdin: %w", err)
	}
	if len(text) > longestPrompt {
		return "", errors.New("it is over 1 MiB: pass a file's name instead of its text")
	}
	return string(text), nil
}

// nonEmpty leaves out the empty words, so that --label ” clears a list.
func nonEmpty(words []string) []string {
	out := []string{}
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}
