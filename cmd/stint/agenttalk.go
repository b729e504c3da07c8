package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"stint/api"
)

// addTalk are the flags of agents that converse, and of what they may spend.
func (f *agentFlags) addTalk(flags *pflag.FlagSet) {
	flags.StringVar(&f.preset, "preset", "", "rules with a `NAME`: ask, unattended, autonomous")
	flags.Var(ruleFlag{&f.rules, api.RulingAllow}, "allow", "a rule `AREA:PATTERN` that allows: 'shell:make *'; the areas are\nfilesystem, shell, network, workspace, side_effects;\nall rules given replace those there are")
	flags.Var(ruleFlag{&f.rules, api.RulingAsk}, "ask", "a rule `AREA:PATTERN` that asks a person")
	flags.Var(ruleFlag{&f.rules, api.RulingDeny}, "deny", "a rule `AREA:PATTERN` that refuses, and the run goes on")
	flags.Var(ruleFlag{&f.rules, api.RulingDenyStop}, "deny-stop", "a rule `AREA:PATTERN` that ends the run")
	flags.StringVar(&f.permissions, "permissions", "", "approval (ask to leave the sandbox) or autonomous (never)")
	flags.BoolVar(&f.unattended, "unattended", false, "nobody is asked: what neither sandbox nor rule\nallows is refused")
	flags.StringVar(&f.model, "model", "", "the `MODEL` (the program's own choice)")
	flags.StringSliceVar(&f.models, "models", nil, "the `MODELS` that a run may choose, with commas (any)")
	flags.StringVar(&f.effort, "effort", "", "how much the model is to think, such as `HIGH`")
	flags.BoolVar(&f.planMode, "plan-mode", false, "it only looks and plans, and changes nothing")
	flags.StringVar(&f.executable, "executable", "", "the `PROGRAM` (the type's own, from PATH); for acp\nopencode, gemini, copilot, qwen, goose, kimi, cursor;\nany other with its arguments as --run")
	flags.Int64Var(&f.maxTurns, "max-turns", 0, "rounds with the model in one turn; 0 is 200")
	flags.StringVar(&f.target, "workspace-mode", "", "folder (itself) or worktree (one per thread)")
	flags.StringVar(&f.branch, "base-branch", "", "the `BRANCH` that worktrees begin at")
	flags.Var(dollars{&f.sessionLimit}, "session-limit", "what one session may cost; 0 is no limit")
	flags.Var(dollars{&f.dailyLimit}, "daily-limit", "what all of a day may cost; 0 is no limit")
}

// talkBlock puts what the flags say about a conversing agent into the run block. A preset
// comes first, other flags override it.
func (f *agentFlags) talkBlock(flags *pflag.FlagSet, run map[string]any, what string) error {
	set := func(flag, member string, value any) {
		if flags.Changed(flag) {
			run[member] = value
		}
	}
	rules := f.rules
	if flags.Changed("preset") {
		preset, known := api.PresetNamed(f.preset)
		if !known {
			return usage(what, fmt.Sprintf("--preset %q is none", f.preset), "--preset ask, unattended or autonomous")
		}
		p := preset.Run
		run["permissions"], run["unattended"] = p.Permissions, p.Unattended
		rules = append(p.Rules, rules...)
		run["rules"] = append([]api.RunRule{}, rules...)
	}
	if len(f.rules) > 0 {
		run["rules"] = rules
	}
	set("permissions", "permissions", f.permissions)
	set("unattended", "unattended", f.unattended)
	set("model", "model", f.model)
	set("models", "models", f.models)
	set("effort", "effort", f.effort)
	set("plan-mode", "planMode", f.planMode)
	set("executable", "executable", f.executable)
	set("max-turns", "maxTurns", f.maxTurns)
	set("workspace-mode", "workspace", f.target)
	set("base-branch", "baseBranch", f.branch)
	return nil
}

// ruleFlag gathers rules in the order of their flags.
type ruleFlag struct {
	to     *[]api.RunRule
	ruling api.Ruling
}

// String is empty: no rule is a default.
func (r ruleFlag) String() string { return "" }

// Set takes AREA:PATTERN, or AREA alone for all of it.
func (r ruleFlag) Set(text string) error {
	area, pattern, _ := strings.Cut(text, ":")
	if area == "" {
		return fmt.Errorf("%q names no area", text)
	}
	*r.to = append(*r.to, api.RunRule{Area: api.Area(strings.ReplaceAll(area, "-", "_")), Pattern: pattern, Ruling: r.ruling})
	return nil
}

// Type is what the help calls the value.
func (r ruleFlag) Type() string { return "rule" }

// dollars is a flag for an amount, stored in millionths of a US dollar.
type dollars struct{ micros *int64 }

// String is the amount as people write it.
func (d dollars) String() string {
	if d.micros == nil || *d.micros == 0 {
		return ""
	}
	text := strconv.FormatFloat(float64(*d.micros)/1e6, 'f', -1, 64)
	if _, cents, ok := strings.Cut(text, "."); !ok {
		text += ".00"
	} else if len(cents) == 1 {
		text += "0"
	}
	return "$" + text
}

// Set takes 5, 2.50 or $2.50.
func (d dollars) Set(text string) error {
	n, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(text), "$"), 64)
	if err != nil || n < 0 || n > 1e9 || math.IsNaN(n) {
		return fmt.Errorf("%q is no amount of US dollars", text)
	}
	*d.micros = int64(math.Round(n * 1e6))
	return nil
}

// Type is what the help calls the value.
func (d dollars) Type() string { return "dollars" }

// talkFacts are what an agent's record says about its conversations and costs.
func talkFacts(f *facts, a api.Agent) {
	f.add("model", plain(a.Run.Model))
	f.add("effort", plain(a.Run.Effort))
	if a.Run.PlanMode {
		f.add("plan mode", "yes: it only looks and plans")
	}
	f.add("models of runs", plain(strings.Join(a.Run.Models, ", ")))
	f.add("executable", plain(a.Run.Executable))
	f.add("permissions", a.Run.Permissions)
	if a.Run.Unattended {
		f.add("unattended", "yes: nobody is asked")
	}
	var rules []string
	for _, r := range a.Run.Rules {
		rules = append(rules, strings.TrimSuffix(string(r.Ruling)+" "+string(r.Area)+":"+r.Pattern, ":"))
	}
	f.add("rules", plain(strings.Join(rules, "; ")))
	f.add("workspace mode", a.Run.Workspace)
	f.add("base branch", plain(a.Run.BaseBranch))
	if a.Run.MaxTurns > 0 {
		f.add("at most turns", strconv.FormatInt(a.Run.MaxTurns, 10))
	}
	f.add("session limit", dollars{&a.SessionSpendLimitMicros}.String())
	f.add("daily limit", dollars{&a.DailySpendLimitMicros}.String())
	f.add("spent today", dollars{&a.SpentTodayMicros}.String())
}
